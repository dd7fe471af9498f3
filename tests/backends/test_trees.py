"""What was changed in a copy and in the original since is merged path by path, and nothing is overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents.backends.trees import (
    Entry,
    FileEntry,
    LinkEntry,
    OtherEntry,
    merge_entries,
    put_entry,
    read_entry,
)


def file(text: str | bytes, mode: int = 0o644) -> FileEntry:
    return FileEntry(text.encode() if isinstance(text, str) else text, mode)


BASE = file("a\nb\nc\nd\ne\n")
LINK = LinkEntry("b")


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged", "fits"),
    [
        (BASE, BASE, file("x\n"), file("x\n"), True),
        (BASE, file("x\n"), BASE, file("x\n"), True),
        (BASE, file("A\nb\nc\nd\ne\n"), file("a\nb\nc\nd\nE\n"), file("A\nb\nc\nd\nE\n"), True),
        (BASE, file("a\nX\nc\nd\ne\n"), file("a\nY\nc\nd\ne\n"), file("a\nX\nc\nd\ne\n"), False),
        (BASE, file("x\n"), file("x\n"), file("x\n"), True),
        (BASE, file("a\nb\nc\nd\ne\n", 0o755), file("A\nb\nc\nd\ne\n"), file("A\nb\nc\nd\ne\n", 0o755), True),
        (BASE, file("A\nb\nc\nd\ne\n"), file("a\nb\nc\nd\ne\n", 0o755), file("A\nb\nc\nd\ne\n", 0o755), True),
        (BASE, BASE, None, None, True),
        (BASE, file("x\n"), None, file("x\n"), False),
        (BASE, None, file("x\n"), None, False),
        (BASE, None, None, None, True),
        (None, None, file("x\n"), file("x\n"), True),
        (None, file("y\n"), file("x\n"), file("y\n"), False),
        (file(b"\0a"), file(b"\0b"), file(b"\0c"), file(b"\0b"), False),
        (file(b"\0a"), file(b"\0a"), file(b"\0c"), file(b"\0c"), True),
        (file("a\r\nb\r\n\r\n"), file("A\r\nb\r\n\r\n"), file("a\r\nb\r\nC"), file("A\r\nb\r\nC"), True),
        (LINK, LINK, LinkEntry("c"), LinkEntry("c"), True),
        (LINK, LinkEntry("d"), LinkEntry("c"), LinkEntry("d"), False),
        (BASE, BASE, LINK, LINK, True),
        (BASE, BASE, OtherEntry(), OtherEntry(), False),
    ],
)  # fmt: skip
def test_three_states_of_a_path_become_one(
    base: Entry, ours: Entry, theirs: Entry, merged: Entry, fits: bool
) -> None:
    assert merge_entries(base, ours, theirs) == (merged, fits)


def test_an_entry_is_put_only_where_it_is_as_it_was_found(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("mine\n")

    assert not put_entry(tmp_path, "a.md", file("x\n"), found=file("other\n"))
    assert not put_entry(tmp_path, "a.md", file("x\n"), found=None)
    assert not put_entry(tmp_path, "a.md/b", file("x\n"), found=None)
    assert (tmp_path / "a.md").read_text() == "mine\n"
    assert put_entry(tmp_path, "new/deep/b.sh", file("x\n", 0o755), found=None)
    assert put_entry(tmp_path, "new/link", LinkEntry("deep"), found=None)
    assert read_entry(tmp_path, "new/deep/b.sh") == file("x\n", 0o755)
    assert (tmp_path / "new/link").readlink() == Path("deep")
    assert put_entry(tmp_path, "new/link", None, found=LinkEntry("deep"))
    assert put_entry(tmp_path, "new/deep/b.sh", None, found=file("x\n", 0o755))
    assert [each.name for each in tmp_path.iterdir()] == ["a.md"], "no folder is left empty"


def test_nothing_is_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/secret").write_text("x\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/way").symlink_to(tmp_path / "out")

    assert read_entry(tmp_path / "in", "way/secret") is None
    assert not put_entry(tmp_path / "in", "way/secret", file("y\n"), found=None)
    assert not put_entry(tmp_path / "in", "way/new", file("y\n"), found=None)
    assert [each.read_text() for each in (tmp_path / "out").iterdir()] == ["x\n"]

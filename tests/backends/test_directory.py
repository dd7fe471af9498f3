"""An open directory: names mean what it holds, and no link is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepagents.backends._directory import Directory, open_directory


@pytest.fixture(params=[True, False], ids=["by handle", "by path"])
def by_handle(request: pytest.FixtureRequest) -> bool:
    return request.param


def content(directory: Directory, name: str) -> bytes:
    fd = directory.open(name)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


def test_names_are_made_moved_read_and_removed(tmp_path: Path, by_handle: bool) -> None:
    with open_directory(tmp_path, by_handle=by_handle) as top:
        top.mkdir("d")
        below = top.child("d")
        fd = below.open("f", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"text")
        os.close(fd)
        below.rename("f", "g")
        below.sync()

        assert content(below, "g") == b"text"
        assert below.stat("g").st_size == 4
        assert below.may_write("g")
        with below.scan() as entries:
            assert [entry.name for entry in entries] == ["g"]
        below.unlink("g")
        below.close()
        top.remove_tree("d")

    assert list(tmp_path.iterdir()) == []


def test_no_operation_follows_a_link(tmp_path: Path, by_handle: bool) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_text("text")
    (tmp_path / "to-d").symlink_to("d")
    (tmp_path / "to-f").symlink_to("f")

    with open_directory(tmp_path, by_handle=by_handle) as top:
        with pytest.raises(NotADirectoryError):
            top.child("to-d")
        with pytest.raises(NotADirectoryError):
            top.child("f")
        with pytest.raises(OSError, match="[Ll]ink"):
            top.open("to-f")
        assert top.readlink("to-f") == "f"
        assert top.readlink("f") is None
        top.unlink("to-f")

    assert (tmp_path / "f").read_text() == "text"


def test_a_root_that_is_a_link_is_opened_where_it_leads(tmp_path: Path, by_handle: bool) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_text("text")
    (tmp_path / "link").symlink_to("real")

    with open_directory(tmp_path / "link", by_handle=by_handle) as top:
        assert content(top, "f") == b"text"


def test_a_held_directory_stays_the_same_when_its_path_changes_hands(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("mine")
    with open_directory(tmp_path / "d") as held:
        (tmp_path / "d").rename(tmp_path / "moved")
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "f").write_text("theirs")

        assert content(held, "f") == b"mine"


def test_a_pipe_does_not_hold_up_whoever_opens_it(tmp_path: Path, by_handle: bool) -> None:
    os.mkfifo(tmp_path / "pipe")

    with open_directory(tmp_path, by_handle=by_handle) as top:
        assert content(top, "pipe") == b""

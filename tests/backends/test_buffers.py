"""Files that another program shows: its text counts where it differs from what is saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents.backends.filesystem import Buffers, FilesystemBackend


class Shown(Buffers):
    """Texts by path; what is written is kept and not saved, unless it `saves`, or `becomes` another text."""

    def __init__(self, *, saves: bool = False) -> None:
        self.texts: dict[Path, str] = {}
        self.saves = saves
        self.becomes: str | None = ""
        self.asked: list[Path] = []

    def read(self, path: Path) -> str | None:
        self.asked.append(path)
        return self.texts.get(path)

    def write(self, path: Path, text: str) -> bool:
        if self.becomes is None:
            return True
        text = self.becomes or text
        self.texts[path] = text
        if self.saves:
            path.write_text(text, newline="")
        return True


@pytest.fixture
def shown() -> Shown:
    """What an editor shows."""
    return Shown()


@pytest.fixture
def files(tmp_path: Path, shown: Shown) -> FilesystemBackend:
    """A directory that an editor shows."""
    made = FilesystemBackend(tmp_path)
    made.use_buffers(shown)
    return made


def _text(files: FilesystemBackend, path: str, offset: int = 0, limit: int = 100) -> str:
    found = files.read(path, offset, limit)
    assert found.file_data is not None, found.error
    return str(found.file_data["content"])


def test_a_page_and_a_download_are_of_what_is_shown(
    files: FilesystemBackend, shown: Shown, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("saved\n")
    shown.texts[path] = "one\ntwo\nthree\n"

    assert _text(files, "/a.txt", 1, 1) == "two\n"
    assert files.download_files(["/a.txt"])[0].content == b"one\ntwo\nthree\n"
    assert files.read("/a.txt", 9, 1).code == "invalid_argument"


def test_other_line_ends_and_a_byte_order_mark_are_no_difference(
    files: FilesystemBackend, shown: Shown, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    shown.texts[path] = "one\ntwo\n"

    assert files.download_files(["/a.txt"])[0].content == b"\xef\xbb\xbfone\r\ntwo\r\n"
    assert files.edit("/a.txt", "two", "2").error is None
    assert shown.texts[path] == "\ufeffone\r\n2\r\n"


def test_a_change_that_was_not_seen_is_refused(
    files: FilesystemBackend, shown: Shown, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("saved\n")
    shown.texts[path] = "typed\n"
    version = files.read("/a.txt").version

    shown.texts[path] = "typed on\n"
    assert files.write("/a.txt", "anew\n", expected_version=version).code == "stale_version"
    assert files.edit("/a.txt", "typed", "said", expected_version=version).code == "stale_version"
    assert shown.texts[path] == "typed on\n"


@pytest.mark.parametrize("saves", [True, False])
def test_a_version_holds_whether_it_is_saved_at_once_or_later(
    files: FilesystemBackend, shown: Shown, tmp_path: Path, saves: bool
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    shown.saves = saves

    version = files.write("/a.txt", "two\n").version
    assert path.read_text() == ("two\n" if saves else "one\n")
    if not saves:
        path.write_text("two\n")

    assert files.edit("/a.txt", "two", "three", expected_version=version).error is None
    assert shown.texts[path] == "three\n"


def test_what_was_not_kept_is_an_error_and_what_was_formatted_is_named(
    files: FilesystemBackend, shown: Shown, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    shown.becomes = None
    assert files.edit("/a.txt", "one", "two").code == "io_error"
    assert files.write("/new.txt", "new\n").code == "io_error"
    shown.texts[path] = "one\n"
    assert files.write("/a.txt", "two\n").code == "io_error"
    assert path.read_text() == "one\n"

    for saves, text in ((True, "ONE\n"), (False, "Two\n")):
        shown.saves, shown.becomes = saves, text
        edited = files.edit("/a.txt", "one" if saves else "ONE", "two")
        assert "another text" in edited.note
        again = files.write("/a.txt", "three\n", expected_version=edited.version)
        assert again.code == "stale_version"


def test_bytes_media_and_other_encodings_are_those_of_the_disk(
    files: FilesystemBackend, shown: Shown, tmp_path: Path
) -> None:
    contents = {"a.png": b"\x89PNG", "b.bin": b"a\0b", "c.txt": "größer".encode("latin-1")}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        shown.texts[tmp_path / name] = "shown"

    found = files.download_files([f"/{name}" for name in contents])
    assert [each.content for each in found] == [*contents.values()]
    assert files.edit("/c.txt", "shown", "anew").error is not None
    assert shown.texts[tmp_path / "c.txt"] == "shown"


def test_files_of_the_harness_are_not_shown(tmp_path: Path, shown: Shown) -> None:
    class WithArtifacts(FilesystemBackend):
        artifacts_folder = ".own"

    files = WithArtifacts(tmp_path)
    files.use_buffers(shown)

    files.write("/.own/large.txt", "one\n")
    files.write("/.own/large.txt", "two\n")

    assert _text(files, "/.own/large.txt") == "two\n"
    assert shown.asked == []
    assert shown.texts == {}

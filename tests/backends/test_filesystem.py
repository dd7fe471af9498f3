"""Files on disk below one root: what each operation does and says."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends._bytes import temporary_name
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.filesystem.writing import FORGOTTEN_AFTER


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def backend(root: Path) -> FilesystemBackend:
    return FilesystemBackend(root)


def content(result: Any) -> str:
    assert result.error is None, result.error
    return result.file_data["content"]


def paths(result: Any) -> list[str]:
    found = result.entries if hasattr(result, "entries") else result.matches
    return [each["path"] for each in found]


def test_a_listing_shows_sizes_times_and_kinds(backend: Any, root: Path) -> None:
    (root / "b.txt").write_text("12345")
    os.utime(root / "b.txt", (0, 0))
    (root / "a").mkdir()
    os.mkfifo(root / "pipe")
    (root / temporary_name()).touch()

    directory, file = backend.ls("/").entries or []

    assert (directory["path"], directory.get("is_dir"), directory.get("size")) == ("/a/", True, 0)
    assert file == {
        "path": "/b.txt",
        "is_dir": False,
        "size": 5,
        "modified_at": "1970-01-01T00:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("operation", "code", "said"),
    [
        (("ls", "/none"), "file_not_found", "Path '/none': path_not_found"),
        (("ls", "/a.txt"), "not_a_directory", "'/a.txt' is a file, not a directory"),
        (("read", "/none"), "file_not_found", "File '/none' not found"),
        (("read", "/a.txt/b"), "not_a_directory", "Error reading file '/a.txt/b': Not a directory"),
        (("read", "/dir"), "is_directory", "File '/dir' not found: it is a directory"),
        (("read", "/pipe"), "invalid_path", "not a regular file"),
        (("write", "/dir", "x"), "is_directory", "it is a directory"),
        (("write", "/pipe", "x"), "invalid_path", "not a regular file"),
        (("write", "/a.txt/b", "x"), "not_a_directory", "Not a directory"),
        (("write", "/" + "n" * 300, "x"), "invalid_path", "File name too long"),
        (("edit", "/blob", "a", "b"), "invalid_encoding", "Cannot edit binary files"),
        (("delete", "/none"), "file_not_found", "'/none' not found"),
        (("delete", "/"), "invalid_path", "root cannot be deleted"),
    ],
)
def test_what_cannot_be_done_is_a_result_with_a_code(
    backend: Any, root: Path, operation: tuple[Any, ...], code: str, said: str
) -> None:
    (root / "dir").mkdir()
    (root / "a.txt").write_text("text\n")
    (root / "blob").write_bytes(b"a\0b")
    os.mkfifo(root / "pipe")
    method, *args = operation

    result = getattr(backend, method)(*args)

    assert (result.code, said in result.error) == (code, True), result.error
    assert str(root) not in result.error


def test_up_to_a_thousand_found_files_are_described(backend: Any, root: Path) -> None:
    for number in range(1000):
        (root / f"{number}.txt").write_text("12")
    (root / "link.md").symlink_to("1.txt")

    assert {each.get("size") for each in backend.glob("*.txt").matches or []} == {2}
    assert [each.get("size") for each in backend.glob("*.md").matches or []] == [2]
    assert {each.get("size") for each in backend.glob("*").matches or []} == {None}


def test_less_context_than_none_is_misuse(backend: Any) -> None:
    with pytest.raises(ValueError, match="-1"):
        backend.grep("w", context_lines=-1)


def test_a_search_says_what_it_could_not_look_into(root: Path) -> None:
    backend: Any = FilesystemBackend(root, max_file_size_mb=0.001)
    backend.upload_files([("/big.txt", b"needle" * 1000), ("/small.txt", b"needle\n")])

    found = backend.grep("needle")

    assert paths(found) == ["/small.txt"]
    assert found.error is not None
    assert "- /big.txt: may match" in found.error


def test_an_edit_keeps_mode_line_ends_and_bytes_that_are_not_text(backend: Any, root: Path) -> None:
    file = root / "run.sh"
    before = b"#!/bin/sh\r\n" + b"# filler\r\n" * 1000 + b"echo caf\xe9\r\nexit\r\n"
    file.write_bytes(before)
    file.chmod(0o751)

    result = backend.edit("/run.sh", "exit\n", "exit 1\n")

    assert result.error is None
    assert file.read_bytes() == before.replace(b"exit\r\n", b"exit 1\r\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o751


def test_a_write_keeps_mode_and_line_ends_of_what_it_replaces(backend: Any, root: Path) -> None:
    file = root / "a.bat"
    file.write_bytes(b"one\r\ntwo\r\n")
    file.chmod(0o700)

    backend.write("/a.bat", "drei\nvier\n")

    assert file.read_bytes() == b"drei\r\nvier\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o700


def test_a_new_file_gets_the_mode_that_the_umask_leaves(backend: Any, root: Path) -> None:
    before = os.umask(0o027)
    try:
        backend.write("/a", "x")
    finally:
        os.umask(before)

    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o640


def test_a_write_through_a_link_changes_the_target_and_keeps_the_link(backend: Any, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "real").write_text("old")
    (root / "link").symlink_to("d/real")
    (root / "dangling").symlink_to("d/new")

    backend.write("/link", "new")
    backend.write("/dangling", "made")

    assert (root / "link").is_symlink()
    assert (root / "d" / "real").read_text() == "new"
    assert (root / "d" / "new").read_text() == "made"


def test_a_file_with_several_names_is_read_but_not_written(backend: Any, root: Path) -> None:
    (root / "a").write_text("text")
    os.link(root / "a", root / "b")

    assert content(backend.read("/a")) == "text"
    assert backend.write("/a", "x").code == "permission_denied"
    assert backend.edit("/a", "text", "x").code == "permission_denied"
    assert backend.delete("/a").error is None
    assert backend.write("/b", "x").error is None


def test_equal_content_written_again_is_another_version(backend: Any) -> None:
    versions = {backend.write("/a", "same").version for _ in range(50)}

    assert len(versions) == 50


def test_a_page_from_the_middle_of_a_large_file_reads_no_further(backend: Any, root: Path) -> None:
    with (root / "big.log").open("wb") as file:
        for number in range(300_000):
            file.write(b"line %d\r\n" % number)
        file.truncate(1 << 40)

    page = backend.read("/big.log", 150_000, 10)

    assert content(page).split("\n") == [*(f"line {150_000 + n}" for n in range(10)), ""]
    assert (page.start_line, page.end_line, page.next_offset) == (150_001, 150_010, 150_010)
    assert page.total_lines is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", ["", "unended"])
def test_pages_of_a_large_file_are_those_of_a_small_one(root: Path, end: str, last: str) -> None:
    lines = [f"{number} " + "x" * (number % 90) for number in range(40_000)]
    (root / "big").write_bytes((end.join([*lines, last])).encode())
    total = len(lines) + bool(last)
    backend: Any = FilesystemBackend(root)

    for offset, limit in [
        (0, 5),
        (20_000, 100),
        (total - 3, 3),
        (total - 3, 100),
        (total - 1, 1),
        (0, total),
        (0, 10**30),
    ]:
        page = backend.read("/big", offset, limit)
        expected = [*lines, last][: total if last else len(lines)][offset : offset + limit]
        at_end = offset + limit >= total

        assert content(page) == "\n".join(expected) + ("" if at_end and last else "\n")
        assert (page.start_line, page.end_line) == (offset + 1, offset + len(expected))
        assert (page.total_lines, page.next_offset) == ((total, None) if at_end else (None, offset + limit))
    assert backend.read("/big", 10**30, 10**30).code == "invalid_argument"
    beyond = backend.read("/big", total, 1)
    assert (beyond.code, f"({total} lines)" in str(beyond.error)) == ("invalid_argument", True)
    assert backend.read("/big", 0, 0).no_lines_requested


def test_one_endless_line_is_not_taken_into_memory(root: Path) -> None:
    (root / "one-line").write_bytes(b"x" * (3 << 20))
    backend: Any = FilesystemBackend(root, max_file_size_mb=1)

    assert backend.read("/one-line").code == "too_large"


def test_media_over_the_limit_are_neither_read_nor_edited(root: Path) -> None:
    backend: Any = FilesystemBackend(root, max_file_size_mb=0.001)
    (root / "big.pdf").write_bytes(b"x" * 2000)

    assert backend.read("/big.pdf").code == "too_large"
    assert backend.edit("/big.pdf", "x", "y").code == "too_large"


def test_a_character_across_the_first_block_is_still_text(backend: Any) -> None:
    text = "x" * 8191 + "€ and more"
    backend.write("/a", text)

    assert content(backend.read("/a")) == text


def test_bytes_far_into_a_text_that_are_not_utf8_show_as_replaced(backend: Any, root: Path) -> None:
    (root / "a").write_bytes(b"line\n" * 2000 + b"caf\xe9\n")

    assert content(backend.read("/a", 2000, 1)) == "caf\ufffd\n"


def test_a_host_path_is_answered_with_the_path_to_use(backend: Any, root: Path) -> None:
    (root / "a.txt").write_text("text")
    host_path = (root / "a.txt").as_posix()

    for result in (backend.read(host_path), backend.write(host_path, "x"), backend.edit(host_path, "a", "b")):
        assert "Paths are relative to the root: use '/a.txt'." in str(result.error)
    assert [each.name for each in root.iterdir()] == ["a.txt"]


def test_a_directory_below_the_root_may_be_named_like_the_root(tmp_path: Path) -> None:
    root = tmp_path / "app"
    inside = root.joinpath(*tmp_path.parts[1:], "app")
    inside.mkdir(parents=True)
    backend: Any = FilesystemBackend(root)

    assert backend.write(f"{root.as_posix()}/a.txt", "x").error is None
    assert (inside / "a.txt").read_text() == "x"


def test_leftovers_of_killed_writers_are_hidden_and_go_after_an_hour(backend: Any, root: Path) -> None:
    old, young = root / temporary_name(), root / temporary_name()
    for leftover in (old, young):
        leftover.write_text("needle")
    os.utime(old, (0, old.stat().st_mtime - FORGOTTEN_AFTER - 1))

    assert paths(backend.ls("/")) == paths(backend.glob("**")) == paths(backend.grep("needle")) == []
    assert backend.write(f"/{young.name}", "x").code == "invalid_path"
    backend.write("/a", "x")
    assert (old.exists(), young.exists()) == (False, True)


def test_the_root_is_made_by_the_first_write(tmp_path: Path) -> None:
    backend: Any = FilesystemBackend(tmp_path / "new" / "root")

    assert backend.ls("/").code == "file_not_found"
    assert backend.write("/a", "x").error is None
    assert paths(backend.ls("/")) == ["/a"]


def test_without_virtual_mode_paths_are_those_of_the_machine(root: Path, tmp_path: Path) -> None:
    backend: Any = FilesystemBackend(root, virtual_mode=False)
    outside = tmp_path / "outside.txt"

    assert backend.write(str(outside), "x").path == outside.as_posix()
    assert backend.write("sub/in.txt", "x").path == (root / "sub/in.txt").as_posix()
    assert content(backend.read("../outside.txt")) == "x"
    assert paths(backend.glob("*.txt")) == paths(backend.glob("*.txt", "/")) == [f"{root}/sub/in.txt"]
    assert paths(backend.grep("x", str(tmp_path))) == [f"{outside}", f"{root}/sub/in.txt"]
    assert paths(backend.ls(str(root))) == [f"{root}/sub/"]


def test_without_virtual_mode_links_lead_anywhere(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("x")
    (root / "link").symlink_to(tmp_path / "outside")
    backend: Any = FilesystemBackend(root, virtual_mode=False)

    assert content(backend.read(str(root / "link"))) == "x"
    assert backend.write("link", "y").error is None
    assert (tmp_path / "outside").read_text() == "y"


def test_without_virtual_mode_neither_the_working_directory_nor_what_holds_it_is_deleted(root: Path) -> None:
    backend: Any = FilesystemBackend(root, virtual_mode=False)

    for path in (".", "", str(root), str(root.parent), "..", "/", "../.."):
        assert backend.delete(path).code == "invalid_path"
    assert root.is_dir()


def test_it_says_what_it_can_do_and_where_its_own_files_may_go(root: Path) -> None:
    virtual: Any = FilesystemBackend(root).capabilities()
    host: Any = FilesystemBackend(root, virtual_mode=False).capabilities()

    assert (virtual.delete, virtual.versions, virtual.execute) == (True, True, False)
    assert virtual.artifacts_root == "/"
    assert host.artifacts_root == root.as_posix()


def test_a_real_path_is_told_without_links(backend: Any, root: Path) -> None:
    (root / "secrets").mkdir()
    (root / "open").symlink_to("secrets")
    (root / "dangling").symlink_to("secrets/missing/file")

    assert backend.real_path("/open/key") == "/secrets/key"
    assert backend.real_path("/open/new/key") == "/secrets/new/key"
    assert backend.real_path("/dangling") == "/secrets/missing/file"
    assert backend.real_path("/none/at/all") == "/none/at/all"
    assert backend.real_path("/") == "/"


def test_no_mode_at_all_means_the_default_and_warns(root: Path) -> None:
    with pytest.warns(DeprecationWarning, match="virtual_mode"):
        backend = FilesystemBackend(root, None)

    assert backend.virtual_mode is True


def test_the_documented_attributes_are_there(root: Path) -> None:
    backend: Any = FilesystemBackend(root, True, 2)

    assert (backend.cwd, backend.max_file_size_bytes) == (root.resolve(), 2 * 1024 * 1024)

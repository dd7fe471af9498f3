"""Files in a mapping: what paths imply, and what is wrong with some."""

from __future__ import annotations

from typing import Any

import pytest

from deepagents._paths import is_within
from deepagents.backends._search import Query
from deepagents.backends.file_mapping import (
    MappingSearch,
    file_at,
    find_files,
    list_directory,
    search_files,
)
from deepagents.backends.filedata import read_page
from deepagents.backends.results import LsResult, errors_as_result
from deepagents.errors import BackendError, ErrorCode

FILES: dict[str, Any] = {
    "/a": {"content": "key and directory"},
    "/a/b/c.txt": {"content": "c", "modified_at": None},
    "/ab": {"content": "ü"},
    "/pic.png": {"content": "text"},
}


def code_of(work: Any, *args: Any) -> ErrorCode:
    with pytest.raises(BackendError) as caught:
        work(*args)
    return caught.value.code


def shown(found: LsResult) -> list[str]:
    return [entry["path"] for entry in found.entries or []]


class Below:
    """Allows what lies below one directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.asked: list[str] = []

    def __call__(self, path: str) -> bool:
        self.asked.append(path)
        return is_within(path, self.directory)

    def all_below(self, directory: str) -> bool:
        return is_within(directory, self.directory)


def test_what_is_not_allowed_is_passed_over() -> None:
    assert shown(list_directory(FILES, "/", Below("/a"))) == ["/a", "/a/"]
    assert shown(list_directory(FILES, "/", Below("/a/b"))) == []
    assert [match["path"] for match in find_files(FILES, "*", "/", Below("/a")).matches or []] == [
        "/a",
        "/a/b/c.txt",
    ]
    found = search_files(FILES, "/", MappingSearch(Query.of("c"), max_count=1), Below("/a/b"))
    assert ([match["path"] for match in found.matches or []], found.truncated) == (["/a/b/c.txt"], False)
    assert search_files(FILES, "/ab", MappingSearch(Query.of("ü")), Below("/a")).matches == []


def test_one_question_is_enough_where_all_is_allowed() -> None:
    allowed = Below("/a")

    assert len(find_files(FILES, "*", "/a", allowed).matches or []) == 1
    assert allowed.asked == []


def test_a_file_of_a_wrong_type_is_reported_and_hides_no_other() -> None:
    bad: dict[str, Any] = {f"/bad{n:02}": {"content": 5} for n in range(12)}
    files: dict[str, Any] = {**bad, "/good": {"content": "x", "modified_at": 7}}

    listed, globbed = list_directory(files, "/"), find_files(files, "*", "/")

    assert shown(listed) == ["/good"]
    assert [match["path"] for match in globbed.matches or []] == ["/good"]
    for found in (listed, globbed, search_files(files, "/", MappingSearch(Query.of("x")))):
        assert found.code == "io_error"
        assert "/bad00" in (found.error or "")
        assert "and 2 more" in (found.error or "")
        assert "/bad11" not in (found.error or "")


def test_paths_imply_directories() -> None:
    assert shown(list_directory(FILES, "/")) == ["/a", "/a/", "/ab", "/pic.png"]
    assert list_directory(FILES, "/a").entries == [
        {"path": "/a/b/", "is_dir": True, "size": 0, "modified_at": ""}
    ]
    assert list_directory(FILES, "/nowhere").entries == []
    assert code_of(list_directory, FILES, "/ab") == "not_a_directory"


def test_a_file_is_found_at_its_path_alone() -> None:
    assert file_at(FILES, "/ab") is FILES["/ab"]
    assert code_of(file_at, FILES, "/a/b") == "is_directory"
    assert code_of(file_at, FILES, "/abc") == "file_not_found"


def test_a_description_has_everything() -> None:
    assert find_files(FILES, "c.*", "/").matches == [
        {"path": "/a/b/c.txt", "is_dir": False, "size": 1, "modified_at": ""}
    ]
    assert code_of(find_files, FILES, "../x", "/") == "invalid_pattern"


def test_text_under_the_name_of_a_picture_comes_as_bytes() -> None:
    assert read_page("/pic.png", FILES["/pic.png"], 0, 1).file_data == {
        "content": "dGV4dA==",
        "encoding": "base64",
    }
    assert code_of(read_page, "/x", {"content": None}, 0, 1) == "io_error"


def test_errors_become_results() -> None:
    @errors_as_result(LsResult)
    def ls(path: str) -> LsResult:
        raise BackendError("invalid_path", f"no {path}")

    assert ls("/x") == LsResult(error="no /x", code="invalid_path")

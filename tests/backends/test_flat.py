"""Files in a mapping: what paths imply, and what is wrong with some."""

from __future__ import annotations

from typing import Any

import pytest

from deepagents.backends._flat import answering, entries, found_at, matching, page
from deepagents.backends.results import LsResult
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


def test_paths_imply_directories() -> None:
    assert [entry["path"] for entry in entries(FILES, "/")] == ["/a", "/a/", "/ab", "/pic.png"]
    assert entries(FILES, "/a") == [{"path": "/a/b/", "is_dir": True, "size": 0, "modified_at": ""}]
    assert entries(FILES, "/nowhere") == []
    assert code_of(entries, FILES, "/ab") == "not_a_directory"


def test_a_file_is_found_at_its_path_alone() -> None:
    assert found_at(FILES, "/ab") is FILES["/ab"]
    assert code_of(found_at, FILES, "/a/b") == "is_directory"
    assert code_of(found_at, FILES, "/abc") == "file_not_found"


def test_a_description_has_everything() -> None:
    assert matching(FILES, "c.*", "/") == [
        {"path": "/a/b/c.txt", "is_dir": False, "size": 1, "modified_at": ""}
    ]
    assert code_of(matching, FILES, "../x", "/") == "invalid_pattern"


def test_text_under_the_name_of_a_picture_comes_as_bytes() -> None:
    assert page("/pic.png", FILES["/pic.png"], 0, 1).file_data == {
        "content": "dGV4dA==",
        "encoding": "base64",
    }
    assert code_of(page, "/x", {"content": None}, 0, 1) == "io_error"


def test_errors_become_results() -> None:
    @answering(LsResult)
    def ls(path: str) -> LsResult:
        raise BackendError("invalid_path", f"no {path}")

    assert ls("/x") == LsResult(error="no /x", code="invalid_path")

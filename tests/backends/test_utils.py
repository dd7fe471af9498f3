"""The older import path still does what it did."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from deepagents.backends import utils
from deepagents.backends.utils import (
    EMPTY_CONTENT_WARNING,
    InvalidGlobPatternError,
    build_grep_results_dict,
    check_empty_content,
    compile_grep_include_glob,
    format_content_with_line_numbers,
    format_grep_matches,
    grep_matches_from_files,
    normalize_read_bounds,
    perform_string_replacement,
    sanitize_tool_call_id,
    slice_read_response,
    to_posix_path,
    truncate_if_too_long,
    validate_path,
)

FILES: dict[str, Any] = {
    "/a.txt": {"content": "one\ntwo\n", "modified_at": "1"},
    "/d/b.md": {"content": ["two", "three"], "modified_at": "2"},
    "/c.bin": {"content": "dHdv", "encoding": "base64"},
}


def test_the_names_that_others_import_are_there() -> None:
    wanted = """
        EMPTY_CONTENT_WARNING MAX_LINE_LENGTH TOOL_RESULT_TOKEN_LIMIT TRUNCATION_GUIDANCE
        MAX_VIDEO_INPUT_BYTES TRUNCATION_MARKER_TEMPLATE InvalidGlobPatternError compile_recursive_glob
        create_file_data
        file_data_to_string update_file_data regex_literal_hint _get_file_type _get_backend_read_file_type
    """
    module = import_module("deepagents.backends.utils")

    assert [name for name in wanted.split() if not hasattr(module, name)] == []
    assert [name for name in utils.__all__ if not hasattr(module, name)] == []


def test_ids_of_tool_calls_become_file_names() -> None:
    assert sanitize_tool_call_id("call.1/2\\3") == "call_1_2_3"
    assert sanitize_tool_call_id("ü" * 64) == "ü" * 64
    assert len(sanitize_tool_call_id("ü" * 65)) == len("call-") + 64


def test_lines_are_numbered_from_text_and_from_lists() -> None:
    assert format_content_with_line_numbers("a\nb\n", 9) == "     9\ta\n    10\tb"
    assert format_content_with_line_numbers(["a", ""]) == "     1\ta\n     2\t"


def test_blank_content_is_reminded_of() -> None:
    assert check_empty_content(" \n") == EMPTY_CONTENT_WARNING
    assert check_empty_content("a") is None


def test_bounds_are_never_negative() -> None:
    assert normalize_read_bounds(-1, -5) == (0, 0)
    assert normalize_read_bounds(3, 4) == (3, 4)


def test_a_read_response_is_a_window() -> None:
    found = slice_read_response({"content": "a\r\nb\r\nc", "encoding": "utf-8", "created_at": "then"}, 1, 1)

    assert found.file_data == {"content": "b\n", "encoding": "utf-8", "created_at": "then"}
    assert (found.start_line, found.end_line, found.total_lines, found.next_offset) == (2, 2, 3, 2)
    assert slice_read_response({"content": "a"}, 0, 0).no_lines_requested
    assert slice_read_response({"content": " "}, 9, 0).file_data == {"content": " "}
    assert "exceeds file length (1 lines)" in (slice_read_response({"content": "a"}, 1, 1).error or "")


def test_replacement_returns_text_or_a_sentence() -> None:
    assert perform_string_replacement("a b", "a", "x") == ("x b", 1)
    assert "appears 2 times" in perform_string_replacement("a a", "a", "x")
    assert perform_string_replacement("a a", "a", "x", True) == ("x x", 2)


def test_long_results_are_cut() -> None:
    cut = truncate_if_too_long("x" * 100_000)

    assert isinstance(cut, str)
    assert len(cut) == 80_000
    assert truncate_if_too_long("short") == "short"
    assert truncate_if_too_long(["a", "b"]) == ["a", "b"]
    assert truncate_if_too_long(["x" * 70_000, "y" * 70_000]) == ["x" * 70_000, utils.TRUNCATION_GUIDANCE]


def test_paths_are_validated() -> None:
    assert validate_path("a\\b") == "/a/b"
    assert validate_path("/data/x", allowed_prefixes=["/data"]) == "/data/x"
    assert to_posix_path("a\\b") == "a/b"
    with pytest.raises(ValueError, match="Path traversal not allowed"):
        validate_path("../x")
    with pytest.raises(ValueError, match="Path must start with one of"):
        validate_path("/x", allowed_prefixes=["/data"])


def test_files_in_a_mapping_are_searched() -> None:
    found = grep_matches_from_files(FILES, "two")

    assert build_grep_results_dict(found.matches or []) == {"/a.txt": [(2, "two")], "/d/b.md": [(1, "two")]}
    assert format_grep_matches(found.matches or []) == "/a.txt\n/d/b.md"
    assert grep_matches_from_files(FILES, "two", "../x").matches == []
    assert grep_matches_from_files(FILES, "two", glob="../x").error
    assert len(grep_matches_from_files(FILES, "two", glob="*.md").matches or []) == 1
    assert grep_matches_from_files(FILES, "two", max_count=1).truncated


def test_one_pattern_is_compiled_once() -> None:
    assert compile_grep_include_glob("*.md") is compile_grep_include_glob("*.md")
    with pytest.raises(InvalidGlobPatternError):
        compile_grep_include_glob("../*.md")

"""Results carry text for readers and a code for programs."""

from __future__ import annotations

from typing import Any

import pytest

from deepagents.backends.results import EditResult, GlobResult, GrepResult, ReadResult, WriteResult


@pytest.mark.parametrize(
    "fields",
    [
        {"start_line": 1},
        {"end_line": 1},
        {"no_lines_requested": True, "error": "x"},
        {"no_lines_requested": True, "start_line": 1, "end_line": 1},
        {"no_lines_requested": True, "total_lines": 1},
        {"next_offset": 1},
        {"total_lines": 1},
        {"start_line": 0, "end_line": 1},
        {"start_line": 2, "end_line": 1},
        {"start_line": 1, "end_line": 2, "total_lines": 1},
        {"start_line": 1, "end_line": 2, "next_offset": 1},
    ],
)
def test_a_window_cannot_contradict_itself(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="ReadResult"):
        ReadResult(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"error": "x", "code": "io_error"},
        {"no_lines_requested": True},
        {"start_line": 1, "end_line": 2},
        {"start_line": 1, "end_line": 2, "total_lines": 2},
        {"start_line": 1, "end_line": 2, "total_lines": 9, "next_offset": 2, "version": "v"},
    ],
)
def test_a_sound_window_is_taken(fields: dict[str, Any]) -> None:
    assert {key: getattr(ReadResult(**fields), key) for key in fields} == fields


def test_fields_keep_their_places() -> None:
    assert WriteResult("error", "/a") == WriteResult(error="error", path="/a")
    assert EditResult(None, "/a", 2) == EditResult(path="/a", occurrences=2)
    assert GrepResult(None, [], True).truncated
    assert GlobResult(None, [], True, "budget").truncation_reason == "budget"

"""A call and its result are told in a line each."""

from __future__ import annotations

import pytest

from deepagents_cli.session.display.lines import call_line, result_line


def test_what_a_command_has_printed_is_counted_without_what_is_added_for_the_model() -> None:
    for printed, expected in {"one": "one", "one\ntwo": "one (+1 line)", "": ""}.items():
        result = f"{printed}\n[Command succeeded with exit code 0]"
        assert result_line("execute", "success", result, exit_code=0) == expected
    failed = "\n[Command failed with exit code 2]"
    assert result_line("execute", "error", failed, exit_code=2) == "exit code 2"
    killed = "one\nExit code: 137 (128 + 9: a process was killed by SIGKILL)"
    assert result_line("execute", "error", killed, exit_code=137) == "exit code 137: one"


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("read_file", {"offset": 3, "file_path": "/a"}, "read_file /a"),
        ("grep", {"pattern": "x", "glob": "*.py"}, "grep x *.py"),
        ("execute", {"command": "a\nb"}, "execute a b"),
        ("own_tool", {"first": 1, "second": 2}, "own_tool 1"),
        ("own_tool", {}, "own_tool"),
    ],
)
def test_a_call_is_told_by_what_tells_most(name: str, args: dict[str, object], expected: str) -> None:
    assert call_line(name, args) == expected


@pytest.mark.parametrize(
    ("name", "status", "text", "expected"),
    [
        ("write_file", "success", "Updated file /a", ""),
        (
            "write_file",
            "success",
            "A person changed this call.\nUpdated file /b",
            "A person changed this call. (+1 line)",
        ),
        ("write_file", "error", "Error:\n no", "Error: no"),
        ("grep", "success", "No matches found", "No matches found"),
        (
            "glob",
            "success",
            "/a\n/b\n\n17,814 more files match.\n\nA note.",
            "2 paths, 17,814 more",
        ),
        ("glob", "success", "/1 more file\n/b", "2 paths"),
        ("execute", "success", "one\n\ntwo\n", "one (+1 line)"),
        ("own_tool", "success", "", ""),
    ],
)
def test_a_result_is_shortened(name: str, status: str, text: str, expected: str) -> None:
    assert result_line(name, status, text) == expected

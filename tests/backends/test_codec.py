"""An operation is a command line that no shell expands, and an answer counts only when it is whole."""

from __future__ import annotations

import ast
import builtins
import json
import shlex
from typing import get_args

import pytest

from deepagents.backends.results import ExecuteResponse
from deepagents.backends.sandbox.codec import MARK, ProgramName, command, decode, program, split
from deepagents.errors import BackendError

OPERATIONS: tuple[ProgramName, ...] = get_args(ProgramName)
HOSTILE = "a'b\"c$(id)`id`\\\n;&|<>*?!~#"


def printed(*records: object, truncated: bool = False, exit_code: int | None = 0) -> ExecuteResponse:
    lines = [f"{MARK}{json.dumps(record)}" for record in records]
    return ExecuteResponse("\n".join(["bash: warning: setlocale", *lines, ""]), exit_code, truncated)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_in_a_command_line_is_expanded(operation: ProgramName) -> None:
    line = command(operation, {"path": HOSTILE, "texts": {"content": HOSTILE}})

    assert set("$`\\\n*?!#~").isdisjoint(line)
    assert HOSTILE not in line
    assert shlex.split(line)[:3] == ["if", "command", "-v"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_program_needs_nothing_newer_than_python_3_6(operation: ProgramName) -> None:
    tree = ast.parse(program(operation), feature_version=(3, 6))

    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= {
        "binascii", "codecs", "errno", "fcntl", "json", "os", "re", "select", "shutil", "signal", "stat",
        "subprocess", "sys", "time", "zlib",
    }  # fmt: skip
    assert "deepagents.backends" not in program(operation)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_program_has_every_name_that_it_uses(operation: ProgramName) -> None:
    tree = ast.parse(f"{program(operation)}\nanswer({operation}, {{}})")
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {
        *(node.id for node in names if not isinstance(node.ctx, ast.Load)),
        *(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)),
        *(node.asname or node.name for node in ast.walk(tree) if isinstance(node, ast.alias)),
        *(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)),
        *(str(node.name) for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)),
        *dir(builtins),
    }

    assert {node.id for node in names} - bound == set()


def test_a_program_takes_what_a_statement_binds_however_deep_it_stands() -> None:
    module = """\
if SLOW:
    def first(): return LIMIT
else:
    from quick import first
SHOWN = "\f"
@cache
def second(): return first()
"""
    found = {name: each for each in split(module) for name in each.binds}

    assert set(found) == {"first", "SHOWN", "second"}
    assert found["first"].uses == {"SLOW", "LIMIT"}
    assert found["second"].source == "@cache\ndef second(): return first()\n"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_program_is_small_enough_for_any_command_line(operation: ProgramName) -> None:
    assert len(command(operation, {"text": "x" * 50_000})) < 100_000


@pytest.mark.parametrize(
    "response",
    [
        ExecuteResponse("", 0),
        ExecuteResponse("", None),
        ExecuteResponse("Traceback: no", 1),
        ExecuteResponse("sh: killed", 137, truncated=True),
        printed({"items": 2}, ["x"]),
        printed(["x"]),
        ExecuteResponse(f'{MARK}{{"items": ', 0, truncated=True),
    ],
    ids=["nothing", "no code", "failed", "killed", "unsaid loss", "no head", "torn head"],
)
def test_an_answer_that_is_not_there_is_an_error(response: ExecuteResponse) -> None:
    with pytest.raises(BackendError, match="unexpected server response") as raised:
        decode(response)

    assert raised.value.code == "io_error"


def test_an_error_shows_what_was_said_but_not_where_the_root_lies() -> None:
    with pytest.raises(BackendError) as raised:
        decode(ExecuteResponse("cannot open /srv/box/x: disk on fire", 1), "/srv/box")

    assert "cannot open /x: disk on fire" in raised.value.text
    assert "/srv/box" not in raised.value.text

"""An operation becomes a command line, and what the command printed becomes an answer."""

from __future__ import annotations

import ast
import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from deepagents.backends.results import ExecuteResponse
from deepagents.errors import BackendError

ProgramName = Literal["ls", "read", "glob", "grep", "write", "append", "edit", "delete", "where", "capture"]

MARK: Final = "@deepagents:"
_SCRIPTS: Final = "deepagents.backends.sandbox.scripts"
_SCRIPT_OF: Final[Mapping[ProgramName, str]] = MappingProxyType(
    {
        **dict.fromkeys(("ls", "read", "where"), "read"),
        **dict.fromkeys(("glob", "grep"), "search"),
        **dict.fromkeys(("write", "append", "edit"), "change"),
        "delete": "remove",
        "capture": "capture",
    }
)
# The program is an argument and not a file: nothing is left behind, and nothing must be writable.
_BOOT: Final = "import sys,zlib,base64;exec(zlib.decompress(base64.b64decode(sys.argv[1])).decode())"
_NO_PYTHON: Final = json.dumps({"code": "no_python"})
# Linux takes at most 128 KiB in one argument, and the line becomes one argument of `sh -c`.
_MOST: Final = 120_000
_NEEDS_PYTHON: Final = (
    "The sandbox has no python3, which every file operation needs. Install Python 3.6 or newer in it, or use "
    "execute with plain commands."
)
_SHOWN: Final = 300


class NoAnswerError(BackendError):
    """A command succeeded and printed nothing, as it does where `execute` is a stand-in."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a program in the sandbox; `whole` unless something was lost on the way."""

    end: Mapping[str, Any]
    items: Sequence[Any] = field(default_factory=tuple[Any, ...])
    whole: bool = True


def command(name: ProgramName, params: Mapping[str, Any]) -> str:
    """Write the command line for an operation: POSIX shell, and nothing in it that a shell expands.

    The mark stands in it in two halves, so that a terminal that repeats the command says nothing.

    Raises:
        BackendError: when the parameters are too long for a command line.
    """
    # -I and -S: what lies in the directory or is installed must not change what the program does.
    run = f"python3 -I -S -c '{_BOOT}' {_pack_program(name)} {pack(json.dumps(params))}"
    line = (
        f"if command -v python3 >/dev/null 2>&1; then {run}; "
        f"else echo '{MARK[:4]}''{MARK[4:]}{_NO_PYTHON}'; fi"
    )
    if len(line) > _MOST:
        raise BackendError(
            "invalid_argument",
            f"What {name} was asked makes a command of {len(line):,} characters, over the limit of "
            f"{_MOST:,}. Give a shorter pattern or path.",
        )
    return line


@cache
def _pack_program(name: ProgramName) -> str:
    return pack(program(name))


@cache
def program(name: ProgramName) -> str:
    """Return the source of a program with all that it imports from this package."""
    source = "".join(_sources(f"{_SCRIPTS}.{_SCRIPT_OF[name]}", set()))
    return f"{source}\nanswer({name})\n"


def decode(response: ExecuteResponse, root: str = "/") -> Answer:
    """Read what a program printed, among whatever else the command or the shell printed.

    Raises:
        BackendError: when the program could not be run, or its answer did not arrive.
    """
    records = [each for each in _records(response.output) if not isinstance(each, str)]
    end = records[0] if records else None
    if isinstance(end, dict):
        about = cast("dict[str, Any]", end)
        items = [cast("list[Any]", each) for each in records if isinstance(each, list)]
        if about.get("code") == "no_python":
            raise BackendError("not_supported", _NEEDS_PYTHON)
        whole = len(items) == about.get("items")
        # Items that are missing without a cut mean that the answer is damaged.
        if whole or response.truncated:
            return Answer(about, items, whole)
    is_silent = not response.output.strip() and response.exit_code == 0
    text = f"The sandbox gave an unexpected server response: {_describe_response(response, root)}"
    raise (NoAnswerError if is_silent else BackendError)("io_error", text)


def join_chunks(answer: Answer) -> bytes:
    """Join the chunks of an answer, up to the first that did not arrive."""
    chunks = takewhile(lambda each: each[0] == each[1][0], enumerate(answer.items))
    return b"".join(unpack(data) for _, (_, data) in chunks)


def pieces(output: str) -> list[str]:
    """Return what a program passed on of its command's output while that ran."""
    return [each for each in _records(output) if isinstance(each, str)]


def unpack(data: str) -> bytes:
    """Return the bytes that a program packed."""
    return zlib.decompress(base64.b64decode(data))


def pack(text: str) -> str:
    """Compress a text for a command line, with nothing in it that a shell expands."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def _sources(module: str, sent: set[str]) -> Iterator[str]:
    """Yield a module after those of this package that it imports, each once, without these imports."""
    sent.add(module)
    package, _, name = module.rpartition(".")
    source = resources.files(package).joinpath(f"{name}.py").read_text("utf-8")
    lines = source.splitlines(keepends=True)
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("deepagents."):
            needed = str(node.module)
            if needed not in sent:
                yield from _sources(needed, sent)
            # Blank lines instead, so that the line numbers of the following nodes stay right.
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
    yield "".join(lines)


def _records(output: str) -> Iterator[Any]:
    """Yield what stands behind the mark; `None` for a line that was torn."""
    for line in output.split("\n"):
        _, marked, rest = line.partition(MARK)
        if marked:
            try:
                yield json.loads(rest)
            except ValueError:
                yield None


def _describe_response(response: ExecuteResponse, root: str) -> str:
    printed = " ".join(line for line in response.output.split("\n") if MARK not in line).strip()
    if root.strip("/"):
        printed = printed.replace(root.rstrip("/"), "")
    shown = repr(printed if len(printed) <= _SHOWN else f"...{printed[-_SHOWN:]}") if printed else "no answer"
    lost = ", and the output was truncated: ask for less" if response.truncated else ""
    return f"{shown} (exit code {response.exit_code}{lost})"

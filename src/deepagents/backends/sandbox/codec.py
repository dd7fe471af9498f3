"""Turn an operation into a command line, and what the command printed into an answer."""

from __future__ import annotations

import ast
import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from deepagents._values import field, valueclass
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
# Of binascii and not of base64, for that imports `re`, which takes as long as the start of Python.
_BOOT: Final = (
    "import sys,zlib,binascii;"
    "exec(b''.join(zlib.decompress(binascii.a2b_base64(each)) for each in sys.argv[1:]))"
)
_NO_PYTHON: Final = json.dumps({"code": "no_python"})
# Linux takes at most 128 KiB in one argument, and the line becomes one argument of `sh -c`.
_MOST: Final = 120_000
_NEEDS_PYTHON: Final = (
    "The sandbox has no python3, which every file operation needs. Install Python 3.6 or newer in it, or use "
    "execute with plain commands."
)
_SHOWN: Final = 300
_OWN_MODULE: Final = re.compile(r"from (deepagents\.\S+) import ")


class NoAnswerError(BackendError):
    """A command succeeded without an answer of its program, as it does where `execute` is a stand-in."""


@valueclass
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
    run = f'python3 -I -S -c "{_BOOT}" {_pack_program(name)} {pack(_call(name, params))}'
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
    """Return the source of a program, with all that it uses of this package and nothing more."""
    statements = list(_statements(f"{_SCRIPTS}.{_SCRIPT_OF[name]}", set()))
    used = {"answer", name}
    count = 0
    while len(used) > count:
        count = len(used)
        used.update(*(each.uses for each in statements if each.binds & used))
    return "".join(each.source for each in statements if each.binds & used)


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
    was_not_run = MARK not in response.output and response.exit_code == 0 and not response.truncated
    text = f"The sandbox gave an unexpected server response: {_describe_response(response, root)}"
    raise (NoAnswerError if was_not_run else BackendError)("io_error", text)


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


def _call(name: ProgramName, params: Mapping[str, Any]) -> str:
    """Write the call that ends a program."""
    # By way of JSON, for a subclass of `str` may have a `repr` of its own.
    return f"answer({name}, {json.loads(json.dumps(params))!a})\n"


@valueclass
class Statement:
    """A statement of a module, the names that it binds there, and all names in it that are read."""

    source: str
    binds: frozenset[str]
    uses: frozenset[str]


def _statements(module: str, sent: set[str]) -> Iterator[Statement]:
    """Yield a module's statements after those of the modules of this package that it imports, each once."""
    sent.add(module)
    package, _, name = module.rpartition(".")
    source = resources.files(package).joinpath(f"{name}.py").read_text("utf-8")
    for each in split(source):
        imported = _OWN_MODULE.match(each.source)
        if imported is None:
            yield each
        elif imported[1] not in sent:
            yield from _statements(imported[1], sent)


def split(source: str) -> Iterator[Statement]:
    """Yield the statements of a module."""
    # Not `splitlines`, which also splits where Python's own lines go on, at a form feed for example.
    lines = source.split("\n")
    for node in ast.parse(source).body:
        decorated = [each.lineno for each in getattr(node, "decorator_list", ())]
        text = "\n".join(lines[min([node.lineno, *decorated]) - 1 : node.end_lineno]) + "\n"
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        uses = frozenset(each.id for each in names if isinstance(each.ctx, ast.Load))
        yield Statement(text, frozenset(_bound(node)), uses)


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds in its module, at whatever depth."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.alias():
            yield node.asname or node.name
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case _:
            pass
    for each in ast.iter_child_nodes(node):
        yield from _bound(each)


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

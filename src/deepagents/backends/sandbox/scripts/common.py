"""Share what all programs need: parameters in, records out, paths below a root."""

import binascii
import os
import stat
import sys
import zlib

from deepagents.backends._bytes import code_of, reason_of

try:
    # Of the module `json` itself, which also imports `re`: that takes as long as the start of Python.
    from _json import encode_basestring_ascii as quote
except ImportError:
    from json.encoder import encode_basestring_ascii as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

MARK = "@deepagents:"
LARGEST = 10 << 20
CHUNK = 1 << 14


class Refused(Exception):
    """A request that cannot be met; the answer says why."""

    def __init__(self, code: str, **more: "Any") -> None:
        Exception.__init__(self, code)
        self.answer = dict(more, code=code)


def answer(
    main: "Callable[[dict[str, Any]], tuple[Iterable[Any], dict[str, Any]]]", params: "dict[str, Any]"
) -> None:
    """Run a program on its parameters: print one object, then items as arrays, one a line."""
    items: list[Any] = []
    try:
        found, end = main(params)
        items.extend(found)
    except Refused as refused:
        end = refused.answer
    except OSError as error:
        end = {"code": code_of(error), "text": reason_of(error)}
    lines = [MARK + to_json(dict(end, items=len(items)))]
    lines.extend(MARK + to_json(item) for item in items)
    sys.stdout.write("\n" + "\n".join(lines) + "\n")


def to_json(value: "Any") -> str:
    """Write a value of an answer as JSON."""
    kind = value.__class__
    if kind is str:
        return quote(value)
    if kind is dict:
        return "{" + ",".join(quote(key) + ":" + to_json(each) for key, each in value.items()) + "}"
    if kind in (list, tuple):
        return "[" + ",".join(map(to_json, value)) + "]"
    if value is None:
        return "null"
    return repr(value).lower() if kind is bool else repr(value)


def printable(name: bytes) -> str:
    """Show a name; what is not UTF-8 in it is replaced."""
    return name.decode("utf-8", "replace")


def pack(data: bytes) -> str:
    """Make bytes fit for a line of JSON."""
    return binascii.b2a_base64(zlib.compress(data, 1), newline=False).decode("ascii")


def chunks(data: bytes) -> "list[Any]":
    """Part bytes into numbered items, so that the first are of use when the last are lost on their way."""
    return [[at // CHUNK, pack(data[at : at + CHUNK])] for at in range(0, len(data), CHUNK)]


class Root:
    """A directory whose content the caller names from `/`; no link leads out of it."""

    def __init__(self, root: str) -> None:
        self.base = root.encode("utf-8").rstrip(b"/")
        self.real = os.path.realpath(self.base or b"/").rstrip(b"/")

    def holds(self, real: bytes) -> bool:
        """Return whether a resolved path lies below the root."""
        return self.is_root(real) or real.startswith(self.real + b"/")

    def is_root(self, real: bytes) -> bool:
        """Return whether a resolved path is the root itself."""
        return real == (self.real or b"/")

    def find(self, path: str, expected: "str | None" = None) -> bytes:
        """Resolve every link on the way to a path; refuse any other path than the one expected."""
        return self._check(os.path.realpath(self.base + path.encode("utf-8")), expected)

    def find_itself(self, path: str, expected: "str | None" = None) -> bytes:
        """Resolve every link on the way to a path, but not the last one."""
        above, name = os.path.split(self.base + path.encode("utf-8"))
        if name in (b"", b".", b".."):
            return self.find(path, expected)
        return self._check(os.path.join(os.path.realpath(above), name), expected)

    def show(self, real: bytes) -> str:
        """Return what the caller calls a resolved path."""
        return printable(real[len(self.real) :]) or "/"

    def _check(self, real: bytes, expected: "str | None") -> bytes:
        if not self.holds(real):
            raise Refused("invalid_path", text="a link leads out of the root")
        if expected is not None and self.show(real) != expected:
            raise Refused("permission_denied", text="the path has just come to lead elsewhere")
        return real


def check_regular(about: os.stat_result) -> None:
    """Refuse what has no content: directories, pipes, devices."""
    if stat.S_ISDIR(about.st_mode):
        raise Refused("is_directory", text="it is a directory")
    if not stat.S_ISREG(about.st_mode):
        raise Refused("invalid_path", text="it is not a regular file")


def open_regular(path: bytes) -> int:
    """Open a regular file to read; a pipe does not block."""
    check_regular(os.stat(path))
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        check_regular(os.fstat(fd))
    except BaseException:
        os.close(fd)
        raise
    return fd


def content_of(path: bytes) -> bytes:
    """Read a regular file whole."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read()

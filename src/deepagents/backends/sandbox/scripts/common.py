"""Share what all programs need: parameters in, records out, paths below a root."""

import base64
import codecs
import errno
import json
import os
import re
import stat
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

MARK = "@deepagents:"
BINARY_HEAD = 8192
LARGEST = 10 << 20
CHUNK = 1 << 14
TEMPORARY = re.compile(rb"\.deepagents-[0-9a-f]{16}\.tmp")
CODES = (
    ("file_not_found", (errno.ENOENT,)),
    ("not_a_directory", (errno.ENOTDIR, errno.EEXIST)),
    ("is_directory", (errno.EISDIR,)),
    ("permission_denied", (errno.EACCES, errno.EPERM, errno.EROFS)),
    ("invalid_path", (errno.ELOOP, errno.EXDEV, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)),
    ("timeout", (errno.ETIMEDOUT,)),
)


class Refused(Exception):
    """A request that cannot be met; the answer says why."""

    def __init__(self, code: str, **more: "Any") -> None:
        Exception.__init__(self, code)
        self.answer = dict(more, code=code)


def answer(main: "Callable[[dict[str, Any]], tuple[Iterable[Any], dict[str, Any]]]") -> None:
    """Run a program on the parameters of this process: print one object, then items as arrays, one a line."""
    params = json.loads(zlib.decompress(base64.b64decode(sys.argv[2])).decode("utf-8"))
    items: list[Any] = []
    try:
        found, end = main(params)
        items.extend(found)
    except Refused as refused:
        end = refused.answer
    except OSError as error:
        end = {"code": code_of(error), "text": reason_of(error)}
    lines = [MARK + json.dumps(dict(end, items=len(items)))]
    lines.extend(MARK + json.dumps(item) for item in items)
    sys.stdout.write("\n" + "\n".join(lines) + "\n")


def code_of(error: OSError) -> str:
    """Return the code for a failure of the system."""
    for code, numbers in CODES:
        if error.errno in numbers:
            return code
    return "io_error"


def reason_of(error: OSError) -> str:
    """Return what failed, in the words of the system, which name no path."""
    return os.strerror(error.errno) if error.errno else type(error).__name__


def printable(name: bytes) -> str:
    """Show a name; what is not UTF-8 in it is replaced."""
    return name.decode("utf-8", "replace")


def version_of(about: os.stat_result) -> str:
    """Return the content of a file: a write always changes this."""
    return f"{about.st_mtime_ns:x}-{about.st_size:x}-{about.st_ino:x}"


def is_binary(head: bytes) -> bool:
    """Judge by the first bytes of a file; a character may be cut off at their end."""
    if b"\0" in head[:BINARY_HEAD]:
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head[:BINARY_HEAD], len(head) < BINARY_HEAD)
    except UnicodeDecodeError:
        return True
    return False


def pack(data: bytes) -> str:
    """Make bytes fit for a line of JSON."""
    return base64.b64encode(zlib.compress(data, 1)).decode("ascii")


def chunks(data: bytes) -> "list[Any]":
    """Part bytes into numbered items, so that the first are of use when the last are lost on their way."""
    return [[at // CHUNK, pack(data[at : at + CHUNK])] for at in range(0, len(data), CHUNK)]


def whole_characters(data: bytes) -> bytes:
    """Drop a character that was cut at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
    return data


def to_lf(data: bytes) -> bytes:
    """End every line with a plain newline."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


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

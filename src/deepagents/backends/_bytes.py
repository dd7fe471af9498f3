"""Read files as the system has them: their bytes and lines, errors and versions.

Sandboxes run this too: nothing newer than Python 3.6.
"""

import codecs
import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepagents.errors import ErrorCode

_BLOCK = 1 << 18
BINARY_HEAD = 8192
"""How many of a file's first bytes say whether it is text."""
_PREFIX, _SUFFIX, _HEX = ".deepagents-", ".tmp", b"0123456789abcdef"
_CODES: "tuple[tuple[ErrorCode, tuple[int, ...]], ...]" = (
    ("file_not_found", (errno.ENOENT,)),
    ("not_a_directory", (errno.ENOTDIR, errno.EEXIST)),
    ("is_directory", (errno.EISDIR,)),
    ("permission_denied", (errno.EACCES, errno.EPERM, errno.EROFS)),
    ("invalid_path", (errno.ELOOP, errno.EXDEV, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)),
    ("timeout", (errno.ETIMEDOUT,)),
)


def code_of(error: OSError) -> "ErrorCode":
    """Return the code for a failure of the system."""
    for code, numbers in _CODES:
        if error.errno in numbers:
            return code
    return "io_error"


def reason_of(error: OSError) -> str:
    """Return what went wrong in the system's words, which name no path."""
    return os.strerror(error.errno) if error.errno else type(error).__name__


def version_of(about: os.stat_result) -> str:
    """Return a name for the content of a file, which every write changes."""
    return f"{about.st_mtime_ns:x}-{about.st_size:x}-{about.st_ino:x}"


def temporary_name() -> str:
    """Make a name for a file that is still being written."""
    return f"{_PREFIX}{os.urandom(8).hex()}{_SUFFIX}"


def is_temporary(name: "str | bytes") -> bool:
    """Return whether a name is one of those, which no listing shows."""
    # Without `re`, which takes a program longer to import than to run.
    if name[:1] not in (".", b"."):
        return False
    bare = os.fsencode(name)
    begin, end = _PREFIX.encode(), _SUFFIX.encode()
    middle = bare[len(begin) : -len(end)]
    return bare == begin + middle + end and len(middle) == 16 and not middle.strip(_HEX)


def is_binary(head: bytes) -> bool:
    """Return whether a file is binary, by its first bytes; at their end a character may be cut."""
    if b"\0" in head[:BINARY_HEAD]:
        return True
    try:
        # An incremental decoder forgives a character that the end of the head cuts in two.
        codecs.getincrementaldecoder("utf-8")().decode(head[:BINARY_HEAD], len(head) < BINARY_HEAD)
    except UnicodeDecodeError:
        return True
    return False


def lf_bytes(data: bytes) -> bytes:
    """End every line with `\\n`."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def after_lines(block: bytes, lines: int) -> int:
    """Return where the next line starts after so many, or the end of the block."""
    rest = block.split(b"\n", lines)
    return len(block) if len(rest) <= lines else len(block) - len(rest[-1])


def whole_characters(data: bytes) -> bytes:
    """Drop a character that was cut at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
    return data


def write_all(fd: int, data: bytes) -> None:
    """Write all of some bytes, for the system may take a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def append_whole(fd: int, data: bytes) -> str:
    """Add bytes at the end of an open file, take them back if not all fit, and return the new version."""
    size = os.fstat(fd).st_size
    try:
        write_all(fd, data)
        os.fsync(fd)
    except BaseException:
        # A full disk may have taken a part, and half an addition is worse than none.
        _truncate(fd, size)
        raise
    return version_of(os.fstat(fd))


def _truncate(fd: int, size: int) -> None:
    """Cut a file, where the system lets us."""
    try:
        os.ftruncate(fd, size)
    except OSError:
        return


class Blocks:
    """Reads a file in blocks, with every line ended by `\\n`; `position` is the offset of what comes next."""

    def __init__(self, fd: int, position: int = 0) -> None:
        self.fd = fd
        self._held = b""
        self.position = position
        os.lseek(fd, position, os.SEEK_SET)

    def __iter__(self) -> "Iterator[bytes]":
        return self

    def __next__(self) -> bytes:
        """Return the next block."""
        for raw in iter(lambda: os.read(self.fd, _BLOCK), b""):
            data = self._held + raw
            # A `\r` at the end may be the first half of a line end, so it waits for the next block.
            self._held = b"\r" if data.endswith(b"\r") else b""
            data = data[: len(data) - len(self._held)]
            self.position += len(data)
            if data:
                return lf_bytes(data)
        if not self._held:
            raise StopIteration
        self._held = b""
        self.position += 1
        return b"\n"


def take_lines(first: bytes, blocks: "Iterator[bytes]", limit: int, most: int) -> "tuple[bytes, bool]":
    """Collect lines until there are enough, or more than `most` bytes; tell whether anything follows."""
    parts: list[bytes] = []
    taken = size = 0
    block = first
    while block:
        cut = after_lines(block, limit - taken)
        parts.append(block[:cut])
        taken += parts[-1].count(b"\n")
        size += cut
        # Asked block by block: one line can be gigabytes, and would be in memory before a check at the end.
        if taken == limit or size > most:
            return b"".join(parts), cut < len(block) or next(blocks, None) is not None
        block = next(blocks, b"")
    return b"".join(parts), False

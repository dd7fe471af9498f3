"""Read a window of a text file, or anything else whole."""

import os

from deepagents.backends.sandbox.scripts.common import (
    BINARY_HEAD,
    Refused,
    Root,
    chunks,
    is_binary,
    open_regular,
    to_lf,
    version_of,
    whole_characters,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

READ_WHOLE = 1 << 20
BLOCK = 1 << 18
MOST_SKIPPED = 1 << 30


def read(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Return the content with what is known of it."""
    root = Root(params["root"])
    real = root.find(params["path"])
    fd = open_regular(real)
    try:
        about = os.fstat(fd)
        known = {"real": root.show(real), "version": version_of(about), "modified": about.st_mtime}
        found = content(fd, about.st_size, params)
    finally:
        os.close(fd)
    return chunks(found.pop("data", b"")), dict(known, **found)


def content(fd: int, size: int, params: "dict[str, Any]") -> "dict[str, Any]":
    """Read what was asked of a text, or all of a binary file."""
    most = params["most"]
    head = os.read(fd, BINARY_HEAD)
    os.lseek(fd, 0, os.SEEK_SET)
    if params["media"] or is_binary(head):
        if size > most:
            raise Refused("too_large", most=most)
        return {"kind": "binary", "data": b"".join(iter(lambda: os.read(fd, BLOCK), b""))}
    total = None
    if size <= READ_WHOLE:
        data = b"".join(iter(lambda: os.read(fd, BLOCK), b""))
        if len(data) <= most and not data.decode("utf-8", "replace").strip():
            return {"kind": "blank", "data": data}
        text = to_lf(data)
        total = text.count(b"\n") + (not text.endswith(b"\n"))
        blocks = iter([text])
    else:
        blocks = lf_blocks(fd)
    if params["limit"] <= 0:
        return {"kind": "none"}
    return page(blocks, params["offset"], params["limit"], most, total)


def page(
    blocks: "Iterator[bytes]", offset: int, limit: int, most: int, total: "int | None"
) -> "dict[str, Any]":
    """Take at most `most` bytes of whole lines; only a first line that is longer is cut."""
    data, more = take(skip(blocks, offset), blocks, limit, most)
    clipped = False
    if len(data) > most:
        fits = data.rfind(b"\n", 0, most) + 1
        clipped = fits == 0
        more = after_first_line(data, blocks, more) if clipped else True
        data = data[:fits] if fits else whole_characters(data[:most])
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    end = offset + lines
    return {
        "kind": "text", "data": data, "start": offset + 1, "end": end, "clipped": clipped,
        "total": total if more else end, "next": end if more else None,
    }  # fmt: skip


def skip(blocks: "Iterator[bytes]", offset: int) -> bytes:
    """Go to the start of a line and return what was read beyond it."""
    passed, last, left = 0, b"", MOST_SKIPPED
    for block in blocks:
        left -= len(block)
        if left < 0:
            raise Refused("too_far", line=offset + 1, most=MOST_SKIPPED >> 30)
        lines = block.count(b"\n")
        if passed + lines >= offset:
            rest = block[after_lines(block, offset - passed) :] or next(blocks, b"")
            if rest:
                return rest
        passed, last = passed + lines, block
    raise Refused("past_end", offset=offset, total=passed + (not last.endswith(b"\n")))


def take(first: bytes, blocks: "Iterator[bytes]", limit: int, most: int) -> "tuple[bytes, bool]":
    """Collect lines until there are enough or they are too long; tell whether more follow."""
    parts: list[bytes] = []
    taken = size = 0
    block = first
    while block:
        cut = after_lines(block, limit - taken)
        parts.append(block[:cut])
        taken += parts[-1].count(b"\n")
        size += cut
        if taken == limit or size > most:
            return b"".join(parts), cut < len(block) or next(blocks, None) is not None
        block = next(blocks, b"")
    return b"".join(parts), False


def after_first_line(data: bytes, blocks: "Iterator[bytes]", more: bool) -> bool:
    """Return whether anything follows the first line."""
    at = data.find(b"\n")
    if at >= 0:
        return more or at + 1 < len(data)
    for block in blocks:
        at = block.find(b"\n")
        if at >= 0:
            return at + 1 < len(block) or next(blocks, None) is not None
    return False


def lf_blocks(fd: int) -> "Iterator[bytes]":
    """Read on, with every line ended by a plain newline."""
    held = b""
    for raw in iter(lambda: os.read(fd, BLOCK), b""):
        data = held + raw
        held = b"\r" if data.endswith(b"\r") else b""
        data = to_lf(data[: len(data) - len(held)])
        if data:
            yield data
    if held:
        yield b"\n"


def after_lines(block: bytes, lines: int) -> int:
    """Find where the next line starts after so many, or the end of the block."""
    rest = block.split(b"\n", lines)
    return len(block) if len(rest) <= lines else len(block) - len(rest[-1])

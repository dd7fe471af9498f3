"""List a directory, tell where a path leads, read a window of a text file or anything else whole."""

import os
import stat
from itertools import islice

from deepagents.backends._bytes import (
    BINARY_HEAD,
    Blocks,
    after_lines,
    is_binary,
    is_temporary,
    lf_bytes,
    reason_of,
    take_lines,
    version_of,
    whole_characters,
)
from deepagents.backends.sandbox.scripts.common import Refused, Root, chunks, open_regular, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

READ_WHOLE = 1 << 20
BLOCK = 1 << 18
MOST_SKIPPED = 1 << 30


def ls(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Return name, kind, size, time, and where a link leads, for each entry."""
    root = Root(params["root"])
    directory = root.find(params["path"])
    items: list[Any] = []
    problems: list[list[str]] = []
    with os.scandir(directory) as entries:
        for entry in islice(entries, params.get("looked_at")):
            if is_temporary(entry.name):
                continue
            try:
                item = describe_entry(root, entry)
            except FileNotFoundError:
                continue
            except OSError as error:
                problems.append([printable(entry.name), reason_of(error)])
                continue
            if item:
                items.append(item)
    return items, {"real": root.show(directory), "problems": sorted(problems)}


def describe_entry(root: Root, entry: "os.DirEntry[bytes]") -> "list[Any] | None":
    """Describe an entry: of a link what it leads to, and nothing when it leads nowhere or out."""
    real = os.path.realpath(entry.path) if entry.is_symlink() else None
    if real is not None and not (root.holds(real) and os.path.exists(real)):
        return None
    about = entry.stat()
    is_directory = stat.S_ISDIR(about.st_mode)
    if not (is_directory or stat.S_ISREG(about.st_mode)):
        return None
    size = 0 if is_directory else about.st_size
    leads_to = None if real is None else root.show(real)
    return [printable(entry.name), is_directory, size, about.st_mtime, leads_to]


def where(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Resolve a path, with the last link or without."""
    root = Root(params["root"])
    real = (root.find_itself if params.get("itself") else root.find)(params["path"])
    if params.get("make_parents"):
        os.makedirs(os.path.dirname(real), exist_ok=True)
    try:
        mode = os.lstat(real).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    end = {
        "real": root.show(real),
        "exists": mode is not None,
        "is_dir": bool(mode and stat.S_ISDIR(mode)),
    }
    if params.get("stage"):
        end["staged"] = root.show(make_stage(real, params["stage"], mode))
    return [], end


def make_stage(real: bytes, name: str, mode: "int | None") -> bytes:
    """Return the file for an uploaded text next to the target; for a private target it is private too."""
    staged_path = os.path.join(os.path.dirname(real), name.encode("utf-8"))
    if mode is None or mode & 0o004:
        return staged_path
    os.mkdir(staged_path, 0o700)
    return os.path.join(staged_path, b"texts")


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
        text = lf_bytes(data)
        total = text.count(b"\n") + (not text.endswith(b"\n"))
        blocks = iter([text])
    else:
        blocks = Blocks(fd)
    if params["limit"] <= 0:
        return {"kind": "none"}
    return page(blocks, params["offset"], params["limit"], most, total)


def page(
    blocks: "Iterator[bytes]", offset: int, limit: int, most: int, total: "int | None"
) -> "dict[str, Any]":
    """Take at most `most` bytes of whole lines; only a first line that is longer is cut."""
    data, more = take_lines(skip(blocks, offset), blocks, limit, most)
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

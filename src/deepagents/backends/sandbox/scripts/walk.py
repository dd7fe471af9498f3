"""TreeWalk over the regular files below a directory, entering no link; find those that match a pattern."""

import os
import re
import stat
import time
from itertools import islice, takewhile

from deepagents.backends.sandbox.scripts.common import TEMPORARY, Root, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

NOT_FILES = (b"/proc", b"/sys", b"/dev")
CHECK_EVERY = 256


class TreeWalk:
    """A walk with what it missed: directories that it could not read, and whether time ran out."""

    def __init__(self, seconds: float, excluded: "list[str]") -> None:
        self.ends = time.monotonic() + seconds
        self.excluded = {name.encode("utf-8") for name in excluded}
        self.unread: list[bytes] = []
        self.timed_out = False

    def files(self, base: bytes, depth: "int | None") -> "Iterator[tuple[bytes, os.DirEntry[bytes]]]":
        """Yield the files and links down to a depth, by their path from the base."""
        ahead = [(base, b"", 1)]
        while ahead and not self.timed_out:
            directory, prefix, level = ahead.pop()
            below: list[tuple[bytes, bytes, int]] = []
            for entry in self._scan(directory, prefix):
                if not entry.is_dir(follow_symlinks=False):
                    yield prefix + entry.name, entry
                elif self._enters(entry) and (depth is None or level < depth):
                    below.append((entry.path, prefix + entry.name + b"/", level + 1))
            ahead.extend(below)

    def _scan(self, directory: bytes, prefix: bytes) -> "Iterator[os.DirEntry[bytes]]":
        try:
            with os.scandir(directory) as entries:
                in_time = takewhile(self._is_in_time, enumerate(entries))
                yield from (entry for _, entry in in_time if not TEMPORARY.fullmatch(entry.name))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:
            self.unread.append(prefix.rstrip(b"/"))

    def _is_in_time(self, numbered: "tuple[int, object]") -> bool:
        self.timed_out = numbered[0] % CHECK_EVERY == 0 and time.monotonic() >= self.ends
        return not self.timed_out

    def _enters(self, entry: "os.DirEntry[bytes]") -> bool:
        return entry.name not in self.excluded and entry.path not in NOT_FILES


def matcher(wanted: "dict[str, Any] | None") -> "Callable[[bytes], bool]":
    """Make the test that a path from the base must pass, out of an expression made elsewhere.

    Before Python 3.11 there are no atomic groups, which only save time.
    """
    if wanted is None:
        return lambda path: True
    try:
        fits = re.compile(wanted["expression"], re.DOTALL).fullmatch
    except re.error:
        fits = re.compile(wanted["expression"].replace("(?>", "(?:"), re.DOTALL).fullmatch
    by_name = wanted["by_name"]

    def matches(path: bytes) -> bool:
        text = (path.rpartition(b"/")[2] if by_name else path).decode("utf-8", "surrogateescape")
        return fits(text) is not None

    return matches


def start(root: Root, params: "dict[str, Any]") -> "tuple[bytes, str]":
    """Find where a search begins, and what that is called: where commands run, when nothing is named."""
    if params["path"] is not None:
        return root.find(params["path"]), params["path"]
    here = os.path.realpath(os.getcwdb())
    real = here if root.holds(here) else root.find("/")
    return real, root.show(real)


def glob(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Return path, size, time, and where a link leads, for each file."""
    root = Root(params["root"])
    real, shown = start(root, params)
    walk = TreeWalk(params["seconds"], [])
    items = list(islice(find(root, walk, real, params["glob"]), params["most"] + 1))
    end = {"base": shown, "real": root.show(real), "unread": len(walk.unread)}
    cut = walk.timed_out or len(items) > params["most"]
    return sorted(items[: params["most"]]), dict(end, cut=cut)


def find(root: Root, walk: TreeWalk, real: bytes, wanted: "dict[str, Any]") -> "Iterator[list[Any]]":
    """Describe the files that match, from the directory on below which they all lie."""
    matches = matcher(wanted)
    names = [name for name in wanted["below"].encode("utf-8").split(b"/") if name]
    prefix = b"".join(name + b"/" for name in names)
    base = os.path.join(real, *names)
    if os.path.realpath(base) != base:
        return
    depth = None if wanted["depth"] is None else wanted["depth"] - len(names)
    for path, entry in walk.files(base, depth):
        item = describe_file(root, entry) if matches(prefix + path) else None
        if item:
            yield [printable(prefix + path)] + item


def describe_file(root: Root, entry: "os.DirEntry[bytes]") -> "list[Any] | None":
    """Describe a file, or the file inside the root that a link leads to; nothing for anything else."""
    leads_to = None
    try:
        if entry.is_symlink():
            real = os.path.realpath(entry.path)
            if not root.holds(real):
                return None
            leads_to = root.show(real)
        about = entry.stat()
    except OSError:
        return None
    return [about.st_size, about.st_mtime, leads_to] if stat.S_ISREG(about.st_mode) else None

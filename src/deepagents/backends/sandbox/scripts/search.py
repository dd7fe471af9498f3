"""Find files below a directory by a pattern, and the lines in them that hold a text; enter no link."""

import os
import stat
import time
from itertools import islice, takewhile

from deepagents.backends._bytes import BINARY_HEAD, is_temporary, lf_bytes, reason_of
from deepagents.backends._ripgrep import find_candidates
from deepagents.backends.sandbox.scripts.common import LARGEST, Refused, Root, open_regular, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

NOT_FILES = (b"/proc", b"/sys", b"/dev")
CHECK_EVERY = 256
BLOCK = 1 << 20
EXPRESSION_SECONDS = 5.0
MOST_LOOKED_THROUGH = 64 << 20


class TreeWalk:
    """A walk with what it missed: directories that it could not read, and whether time ran out."""

    def __init__(self, seconds: float, excluded: "list[str]", looked_at: "int | None" = None) -> None:
        self.ends = time.monotonic() + seconds
        self.left = float("inf") if looked_at is None else looked_at
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
                yield from (entry for _, entry in in_time if not is_temporary(entry.name))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:
            self.unread.append(prefix.rstrip(b"/"))

    def _is_in_time(self, numbered: "tuple[int, object]") -> bool:
        self.left -= 1
        is_late = numbered[0] % CHECK_EVERY == 0 and time.monotonic() >= self.ends
        self.timed_out = is_late or self.left < 0
        return not self.timed_out

    def _enters(self, entry: "os.DirEntry[bytes]") -> bool:
        return entry.name not in self.excluded and entry.path not in NOT_FILES


def matcher(wanted: "dict[str, Any] | None") -> "Callable[[bytes], bool]":
    """Make the test that a path from the base must pass, out of an expression made elsewhere.

    Before Python 3.11 there are no atomic groups, which only save time, and before 3.7 no ASCII ones.
    """
    if wanted is None:
        return lambda path: True
    import re

    try:
        fits = re.compile(wanted["expression"], re.DOTALL).fullmatch
    except re.error:
        older = wanted["expression"].replace("(?>", "(?:").replace("(?ai:", "(?i:")
        fits = re.compile(older, re.DOTALL).fullmatch
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
    walk = TreeWalk(params["seconds"], [], params.get("looked_at"))
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


class LineSearch:
    """One search: what it looks for, what it found, and what it could not look into."""

    def __init__(self, params: "dict[str, Any]") -> None:
        self.pattern: str = params["pattern"]
        self.needle = None if params["regex"] else self.pattern.encode("utf-8", "surrogatepass")
        self.context: int = params["context"]
        self.room = float("inf") if params["max_count"] is None else params["max_count"]
        self.bytes_left: int = params["most"]
        self.ends = time.monotonic() + params["seconds"]
        seconds = min(params["seconds"], EXPRESSION_SECONDS)
        self.fits = expression(self.pattern, seconds) if params["regex"] else self._holds
        self.items: list[Any] = []
        self.unread: list[list[str]] = []
        self.truncated = False

    def _holds(self, line: str) -> bool:
        return self.pattern in line

    @property
    def over(self) -> bool:
        """Return whether there is no room or no time for more."""
        if time.monotonic() >= self.ends:
            self.truncated = True
        return self.truncated

    def stop_clock(self) -> None:
        """Let what is left to do take the time that it takes."""
        if self.needle is None:
            import signal

            signal.setitimer(signal.ITIMER_PROF, 0)

    def look_into(self, real: bytes, path: str) -> None:
        """Take the matching lines of one file."""
        try:
            if not stat.S_ISREG(os.lstat(real).st_mode):
                return
            with os.fdopen(open_regular(real), "rb", 0) as file:
                data = file.read(BLOCK)
                if os.fstat(file.fileno()).st_size > LARGEST:
                    self._pass_over(file, data, path)
                    return
                data += b"".join(iter(lambda: file.read(BLOCK), b""))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.unread.append([path, reason_of(error)])
            return
        if (self.needle is None or self.needle in data) and b"\0" not in data[:BINARY_HEAD]:
            self._take(lines_of(data), path)

    def _take(self, lines: "list[str]", path: str) -> None:
        for index, line in enumerate(lines):
            if not self.fits(line):
                continue
            if len(self.items) >= self.room or self.bytes_left < 0:
                self.truncated = True
                return
            before, after = self._around(lines, index) if self.context else ([], [])
            self.items.append([path, index + 1, line, before, after])
            self.bytes_left -= len(line) + sum(len(text) for _, text in before + after) + len(path) + 20

    def _around(self, lines: "list[str]", index: int) -> "tuple[list[Any], list[Any]]":
        first, last = max(0, index - self.context), min(index + 1 + self.context, len(lines))
        return self._others(lines, first, index), self._others(lines, index + 1, last)

    def _others(self, lines: "list[str]", first: int, last: int) -> "list[Any]":
        return [[at + 1, lines[at]] for at in range(first, last) if not self.fits(lines[at])]

    def _pass_over(self, file: "Any", block: bytes, path: str) -> None:
        """Report a file that is too large to show lines of, when there may be some."""
        if b"\0" in block[:BINARY_HEAD]:
            return
        size, kept, left = os.fstat(file.fileno()).st_size, b"", MOST_LOOKED_THROUGH
        while self.needle is not None and self.needle not in kept + block and left > 0:
            kept, left = block[-len(self.needle) :], left - len(block)
            block = file.read(BLOCK)
            if not block or time.monotonic() >= self.ends:
                return
        reason = f"may match, but its {size:,} bytes are over the limit of {LARGEST:,}"
        self.unread.append([path, reason])


def grep(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Return path, number, text and the lines around, for each line."""
    root = Root(params["root"])
    real, shown = start(root, params)
    search = LineSearch(params)
    is_file = os.path.isfile(real)
    if is_file:
        if matcher(params["glob"])(os.path.basename(shown.encode("utf-8"))):
            search.look_into(real, "")
    elif "\n" not in search.pattern or search.needle is None:
        for path in candidates(real, search, params):
            if search.over:
                break
            search.look_into(os.path.join(real, path), printable(path))
    search.stop_clock()
    end = {"base": shown, "real": root.show(real), "is_file": is_file, "cut": search.truncated}
    return search.items, dict(end, unread=search.unread)


def candidates(base: bytes, search: LineSearch, params: "dict[str, Any]") -> "Iterable[bytes]":
    """Return the files to look into, in order."""
    matches = matcher(params["glob"])
    excluded = {name.encode("utf-8") for name in params["excluded"]}
    walk = TreeWalk(max(search.ends - time.monotonic(), 0), params["excluded"])
    narrowed = None
    if search.needle and params["only"] is None and base not in (b"/",) + NOT_FILES and has_ripgrep():
        narrowed = find_candidates("rg", base, search.needle, LARGEST, search.ends)
    if narrowed is None:
        found = set(files_below(base, walk, [""] if params["only"] is None else params["only"]))
        search.truncated = walk.timed_out
    else:
        found, is_complete = narrowed
        search.truncated = not is_complete
    search.unread += [[printable(path), "cannot be read"] for path in walk.unread]
    return sorted(path for path in found if matches(path) and excluded.isdisjoint(path.split(b"/")[:-1]))


def has_ripgrep() -> bool:
    """Return whether ripgrep is installed; what starts it takes long to import."""
    directories = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(os.path.join(each, "rg"), os.X_OK) for each in directories)


def files_below(base: bytes, walk: TreeWalk, only: "list[str]") -> "Iterator[bytes]":
    """Yield the files below some paths from the base, or that these are, but enter no link."""
    for each in only:
        name = each.encode("utf-8")
        path = os.path.join(base, name) if name else base
        if not os.path.isdir(path):
            yield name
        elif not (name and os.path.islink(path)):
            prefix = name + b"/" if name else b""
            for below, _ in walk.files(path, None):
                yield prefix + below


def expression(pattern: str, seconds: float) -> "Callable[[str], bool]":
    """Compile a regular expression that is stopped when it takes too long."""
    import re
    import signal

    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise Refused("invalid_pattern", text=str(error)) from error

    def stop(*signalled: object) -> None:
        raise Refused("timeout", seconds=seconds)

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)

    def fits(line: str) -> bool:
        try:
            return compiled.search(line) is not None
        except MemoryError as error:
            text = f"it needs too much memory for a line of {len(line)} characters"
            raise Refused("invalid_pattern", text=text) from error

    return fits


def lines_of(data: bytes) -> "list[str]":
    """Split text at its line ends: newline, return, or both together."""
    lines = lf_bytes(data).decode("utf-8", "replace").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines

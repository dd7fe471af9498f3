"""Walk over the regular files below a directory; directories that are links are not entered."""

import os
import re
import time
from itertools import takewhile

from deepagents.backends.sandbox.scripts.common import TEMPORARY, Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

NOT_FILES = (b"/proc", b"/sys", b"/dev")
CHECK_EVERY = 256


class Walk:
    """What a walk found out beside the files: directories it could not read, and whether time ran out."""

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


def start(places: Places, params: "dict[str, Any]") -> "tuple[bytes, str]":
    """Find where a search begins, and what that is called: where commands run, when nothing is named."""
    if params["path"] is not None:
        return places.find(params["path"]), params["path"]
    here = os.path.realpath(os.getcwdb())
    real = here if places.holds(here) else places.find("/")
    return real, places.shown(real)

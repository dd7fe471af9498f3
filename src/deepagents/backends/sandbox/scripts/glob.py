"""Find files whose path from the start matches an expression."""

import os
import stat
from itertools import islice

from deepagents.backends.sandbox.scripts.common import Places, printable
from deepagents.backends.sandbox.scripts.walk import Walk, matcher, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def main(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Give path, size, time, and where a link leads, for each file."""
    places = Places(params["root"])
    real, shown = start(places, params)
    walk = Walk(params["seconds"], [])
    items = list(islice(found(places, walk, real, params["glob"]), params["most"] + 1))
    end = {"base": shown, "real": places.shown(real), "unread": len(walk.unread)}
    cut = walk.timed_out or len(items) > params["most"]
    return sorted(items[: params["most"]]), dict(end, cut=cut)


def found(places: Places, walk: Walk, real: bytes, wanted: "dict[str, Any]") -> "Iterator[list[Any]]":
    """Describe the files that match, from the directory on below which they all lie."""
    matches = matcher(wanted)
    names = [name for name in wanted["below"].encode("utf-8").split(b"/") if name]
    prefix = b"".join(name + b"/" for name in names)
    base = os.path.join(real, *names)
    if os.path.realpath(base) != base:
        return
    depth = None if wanted["depth"] is None else wanted["depth"] - len(names)
    for path, entry in walk.files(base, depth):
        item = described(places, entry) if matches(prefix + path) else None
        if item:
            yield [printable(prefix + path)] + item


def described(places: Places, entry: "os.DirEntry[bytes]") -> "list[Any] | None":
    """Describe a file, or the file inside the root that a link leads to; nothing for anything else."""
    leads_to = None
    try:
        if entry.is_symlink():
            real = os.path.realpath(entry.path)
            if not places.holds(real):
                return None
            leads_to = places.shown(real)
        about = entry.stat()
    except OSError:
        return None
    return [about.st_size, about.st_mtime, leads_to] if stat.S_ISREG(about.st_mode) else None

"""List one directory."""

import os
import stat

from deepagents.backends.sandbox.scripts.common import TEMPORARY, Places, printable, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Give name, kind, size, time, and where a link leads, for each entry."""
    places = Places(params["root"])
    directory = places.find(params["path"])
    items: list[Any] = []
    problems: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if TEMPORARY.fullmatch(entry.name):
                continue
            try:
                item = described(places, entry)
            except FileNotFoundError:
                continue
            except OSError as error:
                problems.append(f"{printable(entry.name)}: {reason_of(error)}")
                continue
            if item:
                items.append(item)
    return items, {"real": places.shown(directory), "problems": sorted(problems)}


def described(places: Places, entry: "os.DirEntry[bytes]") -> "list[Any] | None":
    """Describe an entry: of a link what it leads to, and nothing when it leads nowhere or out."""
    real = os.path.realpath(entry.path) if entry.is_symlink() else None
    if real is not None and not (places.holds(real) and os.path.exists(real)):
        return None
    about = entry.stat()
    is_directory = stat.S_ISDIR(about.st_mode)
    if not (is_directory or stat.S_ISREG(about.st_mode)):
        return None
    size = 0 if is_directory else about.st_size
    leads_to = None if real is None else places.shown(real)
    return [printable(entry.name), is_directory, size, about.st_mtime, leads_to]

"""List a directory; tell where a path leads."""

import os
import stat

from deepagents.backends.sandbox.scripts.common import TEMPORARY, Root, printable, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def ls(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Return name, kind, size, time, and where a link leads, for each entry."""
    root = Root(params["root"])
    directory = root.find(params["path"])
    items: list[Any] = []
    problems: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if TEMPORARY.fullmatch(entry.name):
                continue
            try:
                item = describe_entry(root, entry)
            except FileNotFoundError:
                continue
            except OSError as error:
                problems.append(f"{printable(entry.name)}: {reason_of(error)}")
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

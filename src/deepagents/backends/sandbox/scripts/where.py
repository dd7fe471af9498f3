"""Tell where a path leads and what is there; make the directories above it when asked."""

import os
import stat

from deepagents.backends.sandbox.scripts.common import Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Resolve a path, with the last link or without."""
    places = Places(params["root"])
    real = (places.find_itself if params.get("itself") else places.find)(params["path"])
    if params.get("make_parents"):
        os.makedirs(os.path.dirname(real), exist_ok=True)
    try:
        mode = os.lstat(real).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    end = {
        "real": places.shown(real),
        "exists": mode is not None,
        "is_dir": bool(mode and stat.S_ISDIR(mode)),
    }
    if params.get("stage"):
        end["staged"] = places.shown(staged(real, params["stage"], mode))
    return [], end


def staged(real: bytes, name: str, mode: "int | None") -> bytes:
    """Name the file for an uploaded text next to the target; for a private target it is private too."""
    beside = os.path.join(os.path.dirname(real), name.encode("utf-8"))
    if mode is None or mode & 0o004:
        return beside
    os.mkdir(beside, 0o700)
    return os.path.join(beside, b"texts")

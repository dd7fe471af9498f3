"""Say where a path leads and what stands there; make the directories above it when asked."""

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
        about = os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        return [], {"real": places.shown(real), "exists": False, "is_dir": False}
    return [], {"real": places.shown(real), "exists": True, "is_dir": stat.S_ISDIR(about.st_mode)}

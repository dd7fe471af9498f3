"""Remove a file, a directory with all below it, or a link but not what it leads to."""

import os
import shutil
import stat

from deepagents.backends.sandbox.scripts.common import Places, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Remove what stands at the path; never the root, and no directory when only a file was meant."""
    places = Places(params["root"])
    target = places.find_itself(params["path"], params.get("expected"))
    if places.is_root(target):
        raise Refused("invalid_path", text="the root cannot be deleted")
    if not stat.S_ISDIR(os.lstat(target).st_mode):
        os.unlink(target)
    elif params.get("no_directory"):
        raise Refused("permission_denied", text="it has just become a directory")
    else:
        shutil.rmtree(target)
    return [], {}

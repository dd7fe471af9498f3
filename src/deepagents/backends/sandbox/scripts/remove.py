"""Delete a file or a directory."""

import errno
import os
import stat

from deepagents.backends.sandbox.scripts.common import Refused, Root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def delete(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Remove what stands at the path; never the root, and no directory when only a file was meant."""
    root = Root(params["root"])
    target = root.find_itself(params["path"], params.get("expected"))
    if root.is_root(target):
        raise Refused("invalid_path", text="the root cannot be deleted")
    if not stat.S_ISDIR(os.lstat(target).st_mode):
        os.unlink(target)
    elif params.get("no_directory"):
        raise Refused("permission_denied", text="it has just become a directory")
    else:
        remove_tree(target)
    return [], {}


def remove_tree(target: bytes) -> None:
    """Remove a directory; where it is too deep for Python, which keeps every level open, by `rm`."""
    import shutil
    import subprocess

    try:
        shutil.rmtree(target)
    except (RecursionError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.EMFILE, errno.ENAMETOOLONG):
            raise
        subprocess.run(
            ["rm", "-rf", "--", target], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        if os.path.lexists(target):
            raise

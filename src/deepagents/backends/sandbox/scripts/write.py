"""Create a file or replace it whole."""

import os

from deepagents.backends.sandbox.scripts.common import LARGEST, Places, Refused, content_of, is_binary
from deepagents.backends.sandbox.scripts.replacing import Change, line_ending, taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Write text with the line ends of what stood there, unless that changed since a version."""
    places = Places(params["root"])
    content = taken(places, params)["content"]
    target = places.find(params["path"], params.get("expected"))
    if params.get("expected_version") is None:
        os.makedirs(os.path.dirname(target), exist_ok=True)
    elif not os.path.isdir(os.path.dirname(target)):
        raise Refused("stale_version", happened="was deleted")
    with Change(target, params.get("expected_version")) as change:
        may_change = "\n" in content and "\r" not in content and not params.get("media")
        if may_change and change.before and change.before.st_size <= LARGEST:
            old = content_of(target)
            ending = None if is_binary(old) else line_ending(old.decode("latin-1"))
            content = content.replace("\n", "\r\n") if ending == "\r\n" else content
        version = change.replace(content.encode("utf-8"))
    return [], {"version": version}

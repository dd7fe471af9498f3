"""Add to the end of a file, all of it or nothing."""

import base64
import os
from contextlib import suppress

from deepagents.backends.sandbox.scripts.common import Places, version_of
from deepagents.backends.sandbox.scripts.replacing import Change, taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Add bytes, or text as UTF-8, to a file; make it when it is not there."""
    places = Places(params["root"])
    texts = taken(places, params)
    data = base64.b64decode(texts["base64"]) if "base64" in texts else texts["content"].encode("utf-8")
    target = places.find(params["path"], params.get("expected"))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with Change(target, None) as change:
        version = change.replace(data) if change.before is None else extended(target, data)
    return [], {"version": version}


def extended(target: bytes, data: bytes) -> str:
    """Write at the end; take it back if not all of it fits."""
    fd = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(fd, size)
            raise
        return version_of(os.fstat(fd))
    finally:
        os.close(fd)

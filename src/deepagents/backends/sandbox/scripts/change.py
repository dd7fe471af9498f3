"""Write, edit and add to a file, each in one step: it holds its old content or its new one, whole."""

import binascii
import errno
import os
import stat
import time
from itertools import islice

from deepagents._text.endings import keep_line_endings, replace_text
from deepagents.backends._bytes import append_whole, is_binary, is_temporary, temporary_name, version_of
from deepagents.backends.sandbox.scripts.common import (
    LARGEST,
    Refused,
    Root,
    check_regular,
    content_of,
    pack,
)

try:
    import fcntl
except ImportError:
    fcntl = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEPT_MODE = 0o1777
LONGEST_WAIT = 20.0
LEFT_BEHIND = 3600.0
MOST_LOOKED_AT = 2000
MOST_EXPLAINED = 60000


class LockedChange:
    """Holds the lock of a directory while one file in it is looked at and replaced."""

    def __init__(self, target: bytes, expected_version: "str | None") -> None:
        self.target = target
        self.directory = os.path.dirname(target)
        self.expected = expected_version
        self.before: os.stat_result | None = None
        self.model: os.stat_result | None = None
        self.lock = -1

    def __enter__(self) -> "LockedChange":
        self.lock = os.open(self.directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._wait()
            self._look()
        except BaseException:
            os.close(self.lock)
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        os.close(self.lock)

    def _wait(self) -> None:
        last = time.monotonic() + LONGEST_WAIT
        while fcntl is not None:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > last:
                    raise Refused(
                        "timeout", text="another change to this directory takes too long"
                    ) from error
                time.sleep(0.005)
            except OSError:
                return
            else:
                return

    def _look(self) -> None:
        if is_temporary(os.path.basename(self.target)):
            raise Refused("invalid_path", text="it is a name kept for files that are being written")
        try:
            self.before = os.lstat(self.target)
        except FileNotFoundError:
            self.before = None
        if self.before is not None:
            check_regular(self.before)
            self._check_writable(self.before)
        self._check_version()

    def _check_writable(self, before: os.stat_result) -> None:
        if before.st_nlink > 1:
            raise Refused(
                "permission_denied",
                text=f"it has {before.st_nlink} names (hard links), and a write would part them; delete "
                "this name first, then write the file anew",
            )
        if not os.access(self.target, os.W_OK):
            raise Refused("permission_denied", text="it is read-only")

    def _check_version(self) -> None:
        if self.expected is None:
            return
        if self.before is None or version_of(self.before) != self.expected:
            raise Refused("stale_version", happened="was deleted" if self.before is None else "changed")

    def replace(self, data: bytes) -> str:
        """Put bytes there, keep mode and owner, and return the new version."""
        sweep(self.directory)
        temporary = os.path.join(self.directory, temporary_name().encode("ascii"))
        # Others must not read what is new in a private file meanwhile or after a kill: its mode comes last.
        mode = 0o600 if self.before or self.model else 0o644
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                self._dress(fd)
                os.fsync(fd)
                version = version_of(os.fstat(fd))
            try:
                os.rename(temporary, self.target)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                version = self._in_place(data)
                os.unlink(temporary)
        except BaseException:
            os.unlink(temporary)
            raise
        return version

    def _in_place(self, data: bytes) -> str:
        """Write over what stands there: a file that is mounted by itself cannot be replaced."""
        with os.fdopen(os.open(self.target, os.O_WRONLY | os.O_CLOEXEC), "wb") as file:
            file.write(data)
            file.truncate()
            os.fsync(file.fileno())
            now = int(time.time() * 1e9)
            os.utime(file.fileno(), ns=(now, now))
            return version_of(os.fstat(file.fileno()))

    def _dress(self, fd: int) -> None:
        """Give the new file the owner and mode of the old one, and a time that no earlier version had."""
        before = self.before or self.model
        if before is not None:
            own = os.fstat(fd)
            if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
                give_owner(fd, before)
            os.fchmod(fd, stat.S_IMODE(before.st_mode) & KEPT_MODE)
        now = int(time.time() * 1e9)
        os.utime(fd, ns=(now, now))


def give_owner(fd: int, before: os.stat_result) -> None:
    """Give a file the owner and group of another, where this user may."""
    try:
        os.fchown(fd, before.st_uid, before.st_gid)
    except OSError:
        return


def sweep(directory: bytes) -> None:
    """Remove what changes that broke off have left, once it is an hour old."""
    too_old = time.time() - LEFT_BEHIND
    try:
        with os.scandir(directory) as entries:
            left = [entry for entry in islice(entries, MOST_LOOKED_AT) if is_temporary(entry.name)]
        for entry in left:
            if entry.stat(follow_symlinks=False).st_mtime < too_old:
                os.unlink(entry.path)
    except OSError:
        return


def take_texts(root: Root, params: "dict[str, Any]") -> "dict[str, str]":
    """Return the texts to work with, out of the file that was uploaded for them if they are long."""
    if params.get("staged") is None:
        return params["texts"]
    import json

    staged = root.find(params["staged"])
    try:
        return json.loads(content_of(staged).decode("utf-8"))
    finally:
        os.unlink(staged)
        above = os.path.dirname(staged)
        if is_temporary(os.path.basename(above)):
            os.rmdir(above)


def write(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Write text with the line ends of what stood there, unless that changed since a version.

    A new file gets the mode of another one, where one is named.
    """
    root = Root(params["root"])
    content = take_texts(root, params)["content"]
    target = root.find(params["path"], params.get("expected"))
    new_folders = 0
    if params.get("expected_version") is None:
        new_folders = make_parents(target)
    elif not os.path.isdir(os.path.dirname(target)):
        raise Refused("stale_version", happened="was deleted")
    with LockedChange(target, params.get("expected_version")) as change:
        if change.before and params.get("creates"):
            raise Refused("already_exists")
        if params.get("mode_of"):
            change.model = stat_if_any(root.find(params["mode_of"]))
        may_change = "\n" in content and not params.get("media")
        if may_change and change.before and change.before.st_size <= LARGEST:
            old = content_of(target)
            content = content if is_binary(old) else keep_line_endings(old.decode("latin-1"), content)
        created = change.before is None
        version = change.replace(content.encode("utf-8"))
    return [], {"version": version, "created": created, "new_folders": new_folders}


def stat_if_any(path: bytes) -> "os.stat_result | None":
    """Return what the system knows of a file that may be gone."""
    try:
        return os.stat(path)
    except OSError:
        return None


def make_parents(target: bytes) -> int:
    """Make the directories above a file that are not there, and count them."""
    above, missing = os.path.dirname(target), 0
    directory = above
    while not os.path.lexists(directory):
        missing, directory = missing + 1, os.path.dirname(directory)
    os.makedirs(above, exist_ok=True)
    return missing


def edit(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Replace one text after the other; where that fails, return the file's so that it can be explained."""
    root = Root(params["root"])
    texts = take_texts(root, params)
    target = root.find(params["path"], params.get("expected"))
    with LockedChange(target, params.get("expected_version")) as change:
        if change.before is None:
            raise Refused("file_not_found")
        if change.before.st_size > LARGEST:
            raise Refused("too_large", size=change.before.st_size, most=LARGEST)
        data = content_of(target)
        if params.get("media") or is_binary(data):
            raise Refused("invalid_encoding")
        content, total = data.decode("utf-8", "surrogateescape"), 0
        for at, replace_all in enumerate(params["replace_all"]):
            content, count = replace_text(content, texts[f"old{at}"], texts[f"new{at}"])
            if count != 1 and not (count and replace_all):
                raise unclear(data, count, at)
            total += count
        version = change.replace(content.encode("utf-8", "surrogateescape"))
    return [], {"count": total, "version": version}


def unclear(data: bytes, count: int, at: int) -> Refused:
    """Report no occurrence, or more than one, with the text if it is not too long."""
    shown = pack(data)
    more = {"data": shown} if len(shown) <= MOST_EXPLAINED else {}
    return Refused("ambiguous_match" if count else "no_match", count=count, at=at, **more)


def append(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Add bytes, or text as UTF-8, to a file; make it when it is not there."""
    root = Root(params["root"])
    texts = take_texts(root, params)
    data = binascii.a2b_base64(texts["base64"]) if "base64" in texts else texts["content"].encode("utf-8")
    target = root.find(params["path"], params.get("expected"))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with LockedChange(target, None) as change:
        version = change.replace(data) if change.before is None else extend(target, data)
    return [], {"version": version}


def extend(target: bytes, data: bytes) -> str:
    """Write at the end; take it back if not all of it fits."""
    fd = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return append_whole(fd, data)
    finally:
        os.close(fd)

"""Check virtual paths: absolute, `/`-separated, with no way out of their root; and name them for commands."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from deepagents._values import valueclass
from deepagents.errors import BackendError, ConfigError

LARGE_RESULTS: Final = "large_tool_results"
HISTORY: Final = "conversation_history"
BLOBS: Final = "blobs"
ARTIFACT_FOLDERS: Final = (LARGE_RESULTS, HISTORY, BLOBS)
"""Where large results, earlier messages and media that messages refer to lie, below the artifacts root."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Halves of surrogate pairs, which no file system and no JSON encoder takes.
_HALF = re.compile(r"[\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")
# PATH_MAX of Linux; a longer path could not be opened anywhere.
_LONGEST = 4096
_DEEPEST = 256
# Home directories and drives too: what they name is refused later, by their own names.
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:")


# Each layer of a call normalises the path again, because each may be the one that a user calls.
@lru_cache(maxsize=1024)
def normalise(path: str) -> str:
    """Return the one spelling of a virtual path: `a\\b//c/.` is `/a/b/c`, and nothing is `/`.

    Raises:
        BackendError: `invalid_path`, when the path could leave its root or cannot name a file anywhere.
    """
    _check_characters(path)
    if path.startswith("~"):
        raise BackendError(
            "invalid_path", f"Path traversal not allowed: {path!r} names a home directory. Start at '/'."
        )
    if _DRIVE.match(path):
        raise BackendError(
            "invalid_path",
            f"Windows absolute paths are not supported: {path!r}. Use a path that starts at '/'.",
        )
    # Models write Windows paths too, and a backslash must not smuggle in a `..`.
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BackendError(
            "invalid_path",
            f"Path traversal not allowed: {path!r} has a '..' component. Name the file from '/'.",
        )
    if len(parts) > _DEEPEST:
        raise BackendError("invalid_path", f"{path[:80]!r}... lies deeper than {_DEEPEST} directories.")
    return "/" + "/".join(parts)


def normalise_if_valid(path: str) -> str | None:
    """Return the one spelling of a virtual path, `None` for what is none."""
    try:
        return normalise(path)
    except BackendError:
        return None


def refuse_home(path: str, what: str) -> None:
    """Refuse a path below a home directory while an agent is built: at run time it would only be missing.

    Raises:
        ConfigError: saying what to write instead.
    """
    if path.startswith("~"):
        below = f"/{path.partition('/')[2]}"
        raise ConfigError(
            f"{what} {path!r} names a home directory, which a backend does not know; give the path as the "
            f"backend sees it, such as {below!r} with FilesystemBackend(root_dir=Path.home())"
        )


def _check_characters(path: str) -> None:
    if len(path) > _LONGEST:
        raise BackendError("invalid_path", f"{path[:80]!r}... is longer than {_LONGEST} characters.")
    if _CONTROL.search(path):
        raise BackendError(
            "invalid_path", f"Control characters are not allowed in a path: {path!r}. Remove them."
        )
    if _HALF.search(path):
        raise BackendError("invalid_path", f"A path must be UTF-8: {path!r} holds half a character.")


def parent(path: str) -> str:
    """Return the directory that holds a normalised path; the root holds itself."""
    return path.rpartition("/")[0] or "/"


def name(path: str) -> str:
    """Return the last component of a normalised path, empty for the root."""
    return path.rpartition("/")[2]


def without_slash(path: str) -> str:
    """Return the path of an entry as rules know it."""
    return path.rstrip("/") or "/"


def is_within(path: str, root: str) -> bool:
    """Return whether a normalised path is `root` or lies below it, by whole components."""
    base = root.rstrip("/")
    return path.rstrip("/") == base or path.startswith(base + "/")


def overlap(a: str, b: str) -> bool:
    """Return whether one of two normalised paths is or lies within the other."""
    return is_within(a, b) or is_within(b, a)


@valueclass
class CommandPaths:
    """Translates between the paths of a backend and those by which its commands find the same files.

    `root` is where `/` of the backend lies for commands, and `start` where these start, as a search does that
    names no directory. What is in the directories `apart` commands do not find, and it keeps its names.
    """

    root: str = "/"
    apart: tuple[str, ...] = ()
    start: str | None = None

    def own(self, path: str) -> str:
        """Return the backend's path for one that a model wrote, in either form.

        A relative one starts where commands do.

        Raises:
            BackendError: `invalid_path`, for what can be no path, and for one of commands that leads below a
                directory which they see otherwise than the file tools.
        """
        if self.root == "/" and self.start and not _ABSOLUTE.match(path):
            return f"{self.start.rstrip('/')}/{path}"
        if self.root == "/" or not path.replace("\\", "/").startswith(self.root):
            return path
        where = normalise(path)
        if not is_within(where, self.root):
            return path
        own = where[len(self.root) :] or "/"
        hiding = next((each for each in self.apart if is_within(own, each)), None)
        if hiding is not None:
            raise BackendError(
                "invalid_path",
                f"Commands alone reach {path!r}; for the file tools other files are at {hiding!r}.",
            )
        return own

    def show(self, path: str) -> str:
        """Return what a model reads for a path of the backend, which works in a command where any does."""
        if self.root == "/" or not path.startswith("/") or any(is_within(path, each) for each in self.apart):
            return path
        return f"{self.root}{path}" if path != "/" else self.root

    def own_pattern(self, pattern: str, path: str | None) -> str:
        """Return a pattern as one below the path of a search, where a model began it with that directory."""
        base = self.start if path is None else self.show(path)
        is_below = base is not None and pattern.startswith(f"{base.rstrip('/')}/")
        return pattern[len(base.rstrip("/")) :] if base and is_below else pattern

    def reword(self, text: str, path: str) -> str:
        """Let a text that names a path of the backend name it as it is shown."""
        shown = self.show(path)
        if shown == path or path == "/":
            return text
        return re.sub(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", lambda _: shown, text)

"""Let a model have one name for a file, in commands and in file tools."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deepagents._paths import is_within, normalise
from deepagents.backends.capabilities import Capabilities
from deepagents.errors import BackendError

# Home directories and drives too: what they name is refused later, by their own names.
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class CommandPaths:
    """Translates between the paths of a backend and those by which its commands find the same files.

    `root` is where `/` of the backend lies for commands, and `start` where these start, as a search does that
    names no directory. What is in the directories `apart` commands do not find, and it keeps its names.
    """

    root: str = "/"
    apart: tuple[str, ...] = ()
    start: str | None = None

    @classmethod
    def of(cls, can: Capabilities) -> CommandPaths:
        """Return what a backend with these capabilities needs; without commands, nothing is translated."""
        if not can.execute:
            return cls()
        return cls(can.command_root.rstrip("/") or "/", can.apart, can.working_directory)

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

    def shown(self, path: str) -> str:
        """Return what a model reads for a path of the backend, which works in a command where any does."""
        if self.root == "/" or not path.startswith("/") or any(is_within(path, each) for each in self.apart):
            return path
        return f"{self.root}{path}" if path != "/" else self.root

    def own_pattern(self, pattern: str, path: str | None) -> str:
        """Return a pattern as one below the path of a search, where a model began it with that directory."""
        base = self.start if path is None else self.shown(path)
        is_below = base is not None and pattern.startswith(f"{base.rstrip('/')}/")
        return pattern[len(base.rstrip("/")) :] if base and is_below else pattern

    def reword(self, text: str, path: str) -> str:
        """Let a text that names a path of the backend name it as it is shown."""
        shown = self.shown(path)
        if shown == path or path == "/":
            return text
        return re.sub(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", lambda _: shown, text)

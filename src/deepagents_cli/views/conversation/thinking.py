"""Take what a model thinks before it answers: its end is shown meanwhile, and afterwards a fold or all."""

from __future__ import annotations

from typing import Final

from deepagents_cli.text import one_line

_FOLD: Final = 240
"""Characters that stay: about three lines."""
_MOST: Final = 2_000
"""Characters that are kept of the end, more than is shown of it."""
_NAME: Final = "thought: "


class Thinking:
    """Gives texts to show for good, each with whether it goes on with the one before.

    `shown` is "folded" for the beginning, with `hint` as the way to the rest, "all", or "off".
    """

    def __init__(self, shown: str = "folded", hint: str = "") -> None:
        self.tail = ""
        """The end of what is thought at the moment."""
        self._shown = shown
        self._hint = hint
        self._head = ""
        self._length = 0
        self._given = False

    def take(self, text: str) -> tuple[str, bool] | None:
        """Take a piece; return the lines that it ends, where all is shown."""
        if self._shown == "off":
            return None
        self._length += len(text)
        self._head += text[: _MOST - len(self._head)]
        if self._shown == "folded":
            self.tail = (self.tail + text)[-_MOST:]
            return None
        lines, newline, self.tail = (self.tail + text).rpartition("\n")
        if not newline and len(self.tail) > _MOST:
            lines, self.tail = self.tail, ""
        return self._give(lines) if lines.strip() else None

    def end(self) -> tuple[str, bool] | None:
        """Return what is left to be shown of a thought that has ended, and begin anew."""
        rest = self.tail if self._shown == "all" else self._fold()
        given = self._give(rest) if rest.strip() else None
        self.tail = self._head = ""
        self._length, self._given = 0, False
        return given

    def _give(self, text: str) -> tuple[str, bool]:
        before, self._given = self._given, True
        return text if before else f"{_NAME}{text.lstrip()}", before

    def _fold(self) -> str:
        head = one_line(self._head)
        if len(head) <= _FOLD and self._length <= _MOST:
            return head
        shown = head[:_FOLD].rpartition(" ")[0] or head[:_FOLD]
        more = f"about {max(self._length - len(shown), 1):,} more characters"
        return f"{shown}... ({'; '.join(filter(None, [more, self._hint]))})"

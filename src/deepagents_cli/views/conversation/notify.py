"""Call back a person who looks elsewhere, by a bell or a notice, when a conversation waits or is done."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Final

from deepagents_cli.protocol import Idle, ToScreen
from deepagents_cli.text import one_line
from deepagents_cli.views.conversation.chat import Chat

REPORT_FOCUS: Final = "\x1b[?1004h"
"""Asks a terminal to say when its window gets and loses the focus; others ignore it."""
REPORT_NO_FOCUS: Final = "\x1b[?1004l"
_FOCUS: Final = re.compile(r"\x1b\[([IO])")
_LONG: Final = 20.0
"""Seconds of work after which a person is called whose terminal does not tell where they look."""
_TAKE_OSC_9: Final = frozenset(
    {"iTerm.app", "WezTerm", "ghostty", "xterm-kitty", "xterm-ghostty", "foot", "foot-extra"}
)
"""Names of terminals whose documents list the sequence, in `TERM_PROGRAM` or `TERM`."""


def take_focus(text: str) -> tuple[str, bool | None, str]:
    """Take out of what was typed whether the window has the focus, whenever the terminal says so.

    Returns the rest, the focus (`None` where there was no report), and the beginning of a report.
    """
    found = _FOCUS.findall(text)
    text = _FOCUS.sub("", text)
    held = "\x1b[" if text.endswith("\x1b[") else ""
    return text.removesuffix(held) if held else text, found[-1] == "I" if found else None, held


class Notifier:
    """Looks at a conversation after each message, and calls by `write` where `how` is not "off"."""

    def __init__(
        self,
        how: str,
        place: str,
        write: Callable[[str], None],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.has_focus: bool | None = None
        """Whether the window has the focus, where the terminal has reported it."""
        self._how = how
        self._place = place
        self._write = write
        self._environment = environment
        self._asked: object = None

    def see(self, talk: Chat, message: ToScreen) -> None:
        """Call where this message has made the conversation wait, or ended its work."""
        asked, self._asked = self._asked, talk.question
        if talk.question is not None and talk.question is not asked:
            self._call("waits for your answer", talk.clock.turn)
        elif isinstance(message, Idle) and message.end != "stopped" and not talk.queued:
            self._call("has failed" if message.end == "failed" else "is done", talk.clock.turn)

    def _call(self, what: str, seconds: float) -> None:
        is_away = seconds >= _LONG if self.has_focus is None else not self.has_focus
        if is_away and self._how != "off":
            self._write(self._sequence(f"deepagents {what} in {one_line(self._place)}"))

    def _sequence(self, text: str) -> str:
        names = {self._environment.get(each, "") for each in ("TERM", "TERM_PROGRAM")}
        # tmux and screen would pass neither on; they do pass on a bell.
        if self._how != "desktop" or self._environment.get("TMUX") or self._environment.get("STY"):
            return "\a"
        if names & _TAKE_OSC_9:
            return f"\x1b]9;{text}\a"
        if any(each.startswith("rxvt-unicode") for each in names):
            return f"\x1b]777;notify;deepagents;{text}\a"
        return "\a"

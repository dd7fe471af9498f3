"""Find out what the terminal can show, and whether it is light or dark."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from deepagents._values import replace, valueclass
from deepagents_cli.views.terminal.startup import can_encode, prompt

THEMES: Final = ("light", "dark", "none")

_ASK_BACKGROUND: Final = "\x1b]11;?\x1b\\"
"""Asks a terminal for the colour of its background (OSC 11); one that does not know it stays silent."""
_ANSWER: Final = re.compile(r"\x1b\]11;(?P<colour>[^\x07\x1b]{0,64})(?:\x07|\x1b\\)")
_BEGUN: Final = re.compile(r"\x1b(?:\](?:1(?:1(?:;[^\x07\x1b]{0,64}\x1b?)?)?)?)\Z")
_RGB: Final = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")


@valueclass
class Look:
    """What the terminal shows: characters, styles such as bold, colours, and a theme for code."""

    colours: bool
    styled: bool
    dark: bool
    prompt: str
    done: str
    failed: str
    dot: str
    spinner: str

    @property
    def code(self) -> str:
        """Return the name of the theme for code, in the terminal's own 16 colours."""
        return "ansi_dark" if self.dark else "ansi_light"

    def themed(self, theme: str) -> Look:
        """Return this look in another theme."""
        return replace(self, colours=theme != "none", dark=theme != "light")


def find_look(theme: str = "auto", environment: Mapping[str, str] = os.environ) -> Look:
    """Return the look for this terminal: by the theme that was set, else as far as its variables tell."""
    rich_characters = can_encode("✓✗·⠋")
    marks = ("✓", "✗", "·", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") if rich_characters else ("ok", "!!", "-", "|/-\\")
    has_colours = not environment.get("NO_COLOR")
    look = Look(has_colours, True, _is_dark(environment.get("COLORFGBG", "")), prompt(), *marks)
    # NO_COLOR wins, as all of the environment does.
    return look.themed(theme) if has_colours and theme != "auto" else look


def ask_background(look: Look) -> str:
    """Return what asks the terminal for its background; `""` where the answer tells nothing."""
    knows = os.environ.get("TERM") not in ("linux", "vt100", "vt220")
    return _ASK_BACKGROUND if look.colours and knows else ""


def _is_dark(setting: str) -> bool:
    """Read `COLORFGBG`, such as `0;15`: its last number is the background's; dark where it says nothing."""
    last = setting.rpartition(";")[2]
    return not last.isdecimal() or int(last) in (0, 1, 2, 3, 4, 5, 6, 8)


def take_answer(text: str) -> tuple[str, bool | None, str]:
    """Take the terminal's answer out of what was typed, whenever it comes.

    Returns what was typed, whether the background is dark (`None` without an answer), and the beginning of an
    answer whose rest has not come yet.
    """
    dark = None
    for found in _ANSWER.finditer(text):
        dark = _is_dark_rgb(found["colour"])
    text = _ANSWER.sub("", text)
    begun = _BEGUN.search(text)
    # Escape alone is a key.
    if begun and len(begun[0]) > 1:
        return text[: begun.start()], dark, begun[0]
    return text, dark, ""


def _is_dark_rgb(text: str) -> bool | None:
    found = _RGB.fullmatch(text)
    if not found:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.5

"""Turn what is typed and pasted into a message: long pastes are folded, files and pictures attached."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from deepagents._programs import find_program

_FOLDED_LINES: Final = 8
_FOLDED_LENGTH: Final = 1000
_PICTURES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_MENTION: Final = re.compile(r"(?:^|(?<=\s))@(?:\"(?P<quoted>[^\"\n]+)\"|(?P<bare>\S+))")
_CLIPBOARDS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
_PATIENCE: Final = 3.0


class Composer:
    """Keeps what stands behind the marks in the input line."""

    def __init__(
        self,
        directory: Path,
        changeable: Sequence[Path] = (),
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._directory = directory
        self._changeable = (directory, *changeable)
        self._environment = environment
        self._pasted: dict[str, str] = {}
        self._pictures: dict[str, str] = {}

    def move(self, directory: Path) -> None:
        """Find files in this directory from now on."""
        self._directory = directory
        self._changeable = (directory, *self._changeable)

    def paste(self, text: str) -> str:
        """Return what stands in the input line for a pasted text."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if picture := self._find_picture(text):
            return self._attach(picture)
        lines = len(text.rstrip("\n").split("\n"))
        if lines < _FOLDED_LINES and len(text) < _FOLDED_LENGTH:
            return text
        mark = f"[pasted {lines:,} lines #{len(self._pasted) + 1}]"
        self._pasted[mark] = text
        return mark

    def paste_picture(self) -> str | None:
        """Attach the picture that is in the clipboard; `None` where there is none, or no program for it."""
        for variable, command in _CLIPBOARDS:
            if variable and not self._environment.get(variable):
                continue
            program = find_program(command[0], self._changeable)
            if program and (picture := _run((program, *command[1:]))):
                handle, name = tempfile.mkstemp(prefix="deepagents-", suffix=".png")
                with os.fdopen(handle, "wb") as file:
                    file.write(picture)
                return self._attach(Path(name))
        return None

    def expand(self, text: str) -> tuple[str, list[str]]:
        """Return the message that a text in the input line stands for, and the paths of its attachments."""
        attached = [path for mark, path in self._pictures.items() if mark in text]
        # Only what was typed: a text that was pasted, or that a file holds, names no file to be sent.
        mentioned = (each["quoted"] or each["bare"].rstrip(".,;:!?)") for each in _MENTION.finditer(text))
        attached += [name for name in mentioned if _is_file(self._directory / name)]
        for mark, pasted in self._pasted.items():
            text = text.replace(mark, pasted)
        return text, list(dict.fromkeys(attached))

    def _attach(self, picture: Path) -> str:
        mark = f"[picture #{len(self._pictures) + 1}]"
        self._pictures[mark] = str(picture)
        return mark

    def _find_picture(self, text: str) -> Path | None:
        """Return the picture whose path a text is, as terminals paste the path of a dropped file."""
        text = text.strip()
        if not text or "\n" in text or Path(text.rstrip("'\"")).suffix.lower() not in _PICTURES:
            return None
        if text.startswith("file://"):
            text = unquote(urlsplit(text).path)
        else:
            try:
                words = shlex.split(text)
            except ValueError:
                return None
            text = words[0] if len(words) == 1 else text
        path = self._directory / Path(text).expanduser()
        return path if _is_file(path) else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _run(command: Sequence[str]) -> bytes:
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return ended.stdout if ended.returncode == 0 else b""

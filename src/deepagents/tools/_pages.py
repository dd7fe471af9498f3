"""Turn what was fetched into text: in a process of its own, which a hostile page can end and not outlast."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, Final, Literal, TypeAlias

from deepagents._text import format_size
from deepagents._values import field, valueclass
from deepagents.errors import ToolFailure
from deepagents.tools._http import Content, show

Kind: TypeAlias = Literal["html", "pdf", "text"]

_PROGRAM: Final = str(Path(__file__).with_name("_page_text.py"))
_SECONDS: Final = 20
"""How long turning a page into text may take."""
_MEMORY: Final = 2**30
_PAGES: Final = 200
"""How many pages of a PDF are read."""
_CHARACTERS: Final = 2_000_000
_AT_ONCE: Final = 4
_ENVIRONMENT: Final = ("LD_LIBRARY_PATH", "PATH", "SYSTEMROOT")
_TEXT: Final = re.compile(
    r"text/.*|application/(.*\+)?(json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-sh|sql|rtf)"
)
_SIGXCPU: Final = 24
_HTML: Final = ("text/html", "application/xhtml+xml")
_UNSAID: Final = ("", "application/octet-stream", "binary/octet-stream")
_HEAD: Final = 1024
_BEGINS_HTML: Final = re.compile(rb"\s*<(!doctype html|html|head|body|!--)", re.IGNORECASE)


@valueclass
class PageText:
    """The text of a page, its title if it has one, and what of it is not there."""

    title: str
    text: str
    notes: Sequence[str]


def _new_turns() -> BoundedSemaphore:
    return BoundedSemaphore(_AT_ONCE)


@valueclass
class PageReader:
    """Turns what was fetched into Markdown or plain text, a few pages at a time.

    A page waits `patience` seconds for its turn.
    """

    patience: float
    seconds: int = _SECONDS
    _turns: BoundedSemaphore = field(default_factory=_new_turns)

    def read(self, content: Content) -> PageText:
        """Return a page as text.

        Raises:
            ToolFailure: `not_supported` for what is not text, `too_large` for a PDF that is not whole,
                `timeout`, also of its turn, and `tool_failed` for what cannot be read.
        """
        kind, size = find_kind(content), format_size(len(content.body))
        where = show(str(content.address))
        if kind is None:
            raise ToolFailure(
                "not_supported",
                f"{where} is {show(content.media_type) or 'no text'} ({size}), and not a page.",
            )
        if kind == "pdf" and content.is_cut:
            raise ToolFailure("too_large", f"{where} is a PDF of more than {size}, and was not read.")
        found = self._convert(kind, content)
        notes = {
            f"The page is longer: its first {size} were read.": content.is_cut,
            f"The text is longer: its first {_CHARACTERS:,} characters are here.": found.get("is_cut"),
            "Parts that are nested very deeply were left out.": found.get("left_out"),
            f"The PDF has {found.get('pages')} pages; the first {found.get('read')} were read.": (
                found.get("pages", 0) > found.get("read", 0)
            ),
            "The PDF holds no text; its pages may be pictures.": found.get("is_empty"),
        }
        return PageText(
            found.get("title", ""), found["text"], [note for note, holds in notes.items() if holds]
        )

    def _convert(self, kind: Kind, content: Content) -> dict[str, Any]:
        where, given = show(str(content.address)), {"kind": kind, "charset": content.charset}
        given |= {"url": str(content.address), "seconds": self.seconds, "memory": _MEMORY}
        given |= {"pages": _PAGES, "characters": _CHARACTERS}
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        if not self._turns.acquire(timeout=self.patience):
            raise ToolFailure(
                "timeout", f"{where} waited {self.patience:g} seconds for other pages to become text."
            )
        try:
            ended = subprocess.run(
                # Alone: nothing of the directory or of the environment has a say in it.
                [sys.executable, "-I", _PROGRAM],
                input=f"{json.dumps(given)}\n".encode() + content.body,
                capture_output=True,
                timeout=self.seconds,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise self._late(where) from error
        finally:
            self._turns.release()
        if ended.returncode == 0:
            return json.loads(ended.stdout)
        if ended.returncode == -_SIGXCPU:
            raise self._late(where)
        lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = show(lines[-1]) if lines else "it takes too much memory, or breaks what reads it"
        raise ToolFailure("tool_failed", f"{where} could not be turned into text: {reason}.")

    def _late(self, where: str) -> ToolFailure:
        return ToolFailure("timeout", f"{where} was not turned into text within {self.seconds:g} seconds.")


def find_kind(content: Content) -> Kind | None:
    """Return how to read what was fetched: by what its server says, or else by how it begins."""
    head = content.body[:_HEAD]
    if head.startswith(b"%PDF-"):
        return "pdf"
    if content.media_type in _HTML:
        return "html"
    if _TEXT.fullmatch(content.media_type):
        return "text"
    if content.media_type not in _UNSAID or b"\0" in head:
        return None
    return "html" if _BEGINS_HTML.match(head) else "text"

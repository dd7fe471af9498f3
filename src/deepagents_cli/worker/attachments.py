"""Put the files and pictures that were attached into a message."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from deepagents.models.traits import rejects_input
from deepagents_cli.errors import CommandError
from deepagents_cli.worker.workplace import Workplace

_LARGEST_TEXT: Final = 100_000
_LARGEST_IMAGE: Final = 5_000_000
"""Bytes; a provider refuses larger pictures."""
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def read_attachments(text: str, attached: Sequence[str], place: Workplace) -> str | list[Any]:
    """Return the content of a message.

    Raises:
        CommandError: for what cannot be put into it.
    """
    blocks = [_read(path, place) for path in dict.fromkeys(attached)]
    return [{"type": "text", "text": text}, *blocks] if blocks else text


def _read(name: str, place: Workplace) -> dict[str, Any]:
    path = (place.directory / Path(name).expanduser()).resolve()
    kind = mimetypes.guess_type(path)[0] or ""
    # A pasted picture lies where the screen has put it, and shows no file of this person.
    if not path.is_relative_to(place.directory.resolve()) and kind not in _IMAGES:
        raise CommandError(f"{name!r} lies outside {str(place.directory)!r}; copy it there")
    if not path.is_file():
        raise CommandError(f"{name!r} is no file")
    if kind in _IMAGES:
        return _read_image(name, path, kind, place)
    if path.stat().st_size > _LARGEST_TEXT:
        raise CommandError(
            f"{name!r} has over {_LARGEST_TEXT:,} bytes; ask the agent to read the parts it needs"
        )
    try:
        content = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{name!r} is neither text nor a picture that models take") from error
    return {"type": "text", "text": f'\n\n<file path="{name}">\n{content}\n</file>'}


def _read_image(name: str, path: Path, kind: str, place: Workplace) -> dict[str, Any]:
    if rejects_input(place.model, "image"):
        raise CommandError(f"{place.label} takes no pictures; choose another model with /model")
    if path.stat().st_size > _LARGEST_IMAGE:
        raise CommandError(f"{name!r} has over {_LARGEST_IMAGE / 1e6:g} MB; make it smaller")
    encoded = base64.b64encode(path.read_bytes()).decode()
    return {"type": "image", "base64": encoded, "mime_type": kind}

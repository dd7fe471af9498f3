"""Put the files and pictures that were attached into a message, and find the files in it again."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from deepagents.models.traits import rejects_input
from deepagents_cli.approval.guarded import kind_of
from deepagents_cli.errors import CommandError
from deepagents_cli.project.project import read_resolved
from deepagents_cli.session.workplace.workplace import Workplace

_LARGEST_TEXT: Final = 100_000
_LARGEST_IMAGE: Final = 5_000_000
"""Bytes; a provider refuses larger pictures."""
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
_FILE: Final = re.compile(
    r'\n\n<file path="([^"\n]*)">\n(.*?)\n</file>(?=\n\n<file path="|\n\n\[Not attached: |\Z)', re.DOTALL
)


def find_attachments(attached: Sequence[str], place: Workplace) -> dict[str, Path]:
    """Return where the files that were attached are, links resolved: once, before anybody is asked."""
    return {each: (place.directory / Path(each).expanduser()).resolve() for each in attached}


def looks_like_secret(name: str, path: Path) -> bool:
    """Return whether a file that was attached, or what it leads to, looks like a secret."""
    return any(kind_of(f"/{each}", writes=False) == "secrets" for each in (name, path.as_posix()))


def write_file(name: str, text: str) -> str:
    """Return a file as it stands behind the text of a message."""
    return f'\n\n<file path="{name}">\n{text}\n</file>'


def split_files(text: str) -> tuple[str, dict[str, str]]:
    """Return the text of a message without its files, and these by their names."""
    return _FILE.sub("", text), dict(_FILE.findall(text))


def read_attachments(
    text: str, attached: Mapping[str, Path], place: Workplace
) -> tuple[str | list[Any], Sequence[str]]:
    """Return the content of a message, and why files are not in it, which the model reads too."""
    blocks: list[dict[str, Any]] = []
    left_out: list[str] = []
    for name, path in attached.items():
        try:
            blocks.append(_read(name, path, place))
        except (CommandError, OSError) as error:
            left_out.append(str(error))
            blocks.append({"type": "text", "text": f"\n\n[Not attached: {error}]"})
    return ([{"type": "text", "text": text}, *blocks] if blocks else text), left_out


def _read(name: str, path: Path, place: Workplace) -> dict[str, Any]:
    top, kind = place.directory.resolve(), mimetypes.guess_type(path)[0] or ""
    # A pasted picture lies where the screen has put it, and shows no file of this person.
    if not path.is_relative_to(top):
        if kind not in _IMAGES:
            raise CommandError(f"{name!r} lies outside {str(place.directory)!r}; copy it there")
        top = path.parent
    if not path.is_file():
        raise CommandError(f"{name!r} is not a file")
    if kind in _IMAGES:
        return _read_image(name, path, top, kind, place)
    if path.stat().st_size > _LARGEST_TEXT:
        raise CommandError(
            f"{name!r} has over {_LARGEST_TEXT:,} bytes; ask the agent to read the parts it needs"
        )
    try:
        content = _read_bytes(name, path, top, _LARGEST_TEXT).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{name!r} is neither text nor a picture that models take") from error
    return {"type": "text", "text": write_file(name, content)}


def _read_image(name: str, path: Path, top: Path, kind: str, place: Workplace) -> dict[str, Any]:
    if rejects_input(place.model, "image"):
        raise CommandError(f"{place.label} takes no pictures; choose another model with /model")
    if path.stat().st_size > _LARGEST_IMAGE:
        raise CommandError(f"{name!r} has over {_LARGEST_IMAGE / 1e6:g} MB; make it smaller")
    encoded = base64.b64encode(_read_bytes(name, path, top, _LARGEST_IMAGE)).decode()
    return {"type": "image", "base64": encoded, "mime_type": kind}


def _read_bytes(name: str, path: Path, top: Path, most: int) -> bytes:
    try:
        return read_resolved(path, top, most)
    except OSError as error:
        raise CommandError(f"{name!r} is not read: {error}") from error

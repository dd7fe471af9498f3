"""Read what stands in a path, a query or a header, as endpoints say that it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from deepagents_server.errors import ApiError

_IDS: Final = ("thread_id", "run_id", "cron_id")
"""What a path names by its UUID; an assistant has a name too."""


@dataclass(frozen=True)
class Parameter:
    """A kind of text from a query: what documents say of it, and how its texts are read, given its name."""

    schema: Mapping[str, Any]
    read: Callable[[str, list[str]], Any] = lambda _, given: given[-1]


def number(highest: int) -> Parameter:
    """Make a parameter that is a whole number."""

    def read(name: str, given: list[str]) -> int:
        text = given[-1]
        if not (text.isascii() and text.isdigit() and len(text) < 20) or int(text) > highest:
            raise ApiError(422, f"{name}: {text[:40]!r} is not a number from 0 to {highest}.")
        return int(text)

    return Parameter({"type": "integer", "minimum": 0}, read)


def choice(*words: str) -> Parameter:
    """Make a parameter that is one of some words."""

    def read(name: str, given: list[str]) -> str:
        if given[-1] not in words:
            raise ApiError(422, f"{name}: {given[-1][:40]!r} is none of {', '.join(words)}.")
        return given[-1]

    return Parameter({"enum": [*words]}, read)


TEXT: Final = Parameter({"type": "string"})
TEXTS: Final = Parameter({"type": "array", "items": {"type": "string"}}, lambda _, given: given)
FLAG: Final = Parameter({"type": "boolean"}, lambda _, given: given[-1].lower() in ("1", "true"))


def read_path(given: Mapping[str, str]) -> dict[str, str]:
    """Return what a path names; ids as the tables have them.

    Raises:
        ApiError: for an id that is not a UUID.
    """
    return {name: parse_id(name, text) if name in _IDS else text for name, text in given.items()}


def parse_id(name: str, text: str) -> str:
    """Return an id as the tables have it.

    Raises:
        ApiError: if it is not a UUID.
    """
    try:
        return str(UUID(text))
    except ValueError as error:
        raise ApiError(422, f"{name}: {text!r} is not a UUID.") from error

"""Read what stands in a path, a query or a header, as endpoints say that it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from deepagents_server.errors import ApiError

_IDS: Final = ("thread_id", "run_id", "cron_id")
"""What a path names by its UUID; an assistant has a name too."""


@dataclass(frozen=True)
class Parameter:
    """A kind of text from a query: what documents say of it, and how it is read.

    `parse` raises a `ValueError` that says what the text is not.
    """

    schema: Mapping[str, Any]
    parse: Callable[[str], Any] = str
    many: bool = False

    def read(self, name: str, given: list[str]) -> Any:
        """Return the value, or all of them.

        Raises:
            ApiError: if a text has no such form.
        """
        try:
            return given if self.many else self.parse(given[-1])
        except ValueError as error:
            raise ApiError(422, f"{name}: {given[-1][:40]!r} {error}.") from error


def _parse_number(text: str, highest: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20) or int(text) > highest:
        raise ValueError(f"is not a number from 0 to {highest}")
    return int(text)


def choice(*words: str) -> Parameter:
    """Make a parameter that is one of some words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"is none of {', '.join(words)}")
        return text

    return Parameter({"enum": [*words]}, parse)


def parse_flag(text: str) -> bool:
    """Tell whether a text says yes."""
    return text.lower() in ("1", "true")


TEXT: Final = Parameter({"type": "string"})
TEXTS: Final = Parameter({"type": "array", "items": {"type": "string"}}, many=True)
FLAG: Final = Parameter({"type": "boolean"}, parse_flag)
LIMIT: Final = Parameter({"type": "integer", "minimum": 0}, partial(_parse_number, highest=1000))
OFFSET: Final = Parameter({"type": "integer", "minimum": 0}, partial(_parse_number, highest=2**62))


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

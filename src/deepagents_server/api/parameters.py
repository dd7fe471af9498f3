"""Read what stands in a path, a query or a header, as endpoints say that it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from deepagents_server.errors import ApiError

_IDS: Final = ("thread_id", "run_id", "cron_id")
"""What a path names by its UUID; an assistant has a name too."""


class Parameter:
    """What a query holds under a name: one value, or with `repeats` a list."""

    def __init__(self, kind: Any, *, repeats: bool = False) -> None:
        self._adapter, self._repeats = TypeAdapter[Any](kind), repeats
        self.schema = self._adapter.json_schema()

    def read(self, name: str, given: list[str]) -> Any:
        """Read the texts of a query; of one value the last counts.

        Raises:
            ApiError: if they are something else.
        """
        try:
            return self._adapter.validate_python(given if self._repeats else given[-1])
        except ValidationError as error:
            raise ApiError(422, f"{name}: {error.errors()[0]['msg']}.") from error


TEXT: Final = Parameter(str)
TEXTS: Final = Parameter(list[str], repeats=True)
FLAG: Final = Parameter(Annotated[bool, BeforeValidator(lambda text: text.lower() in ("1", "true"))])
LIMIT: Final = Parameter(Annotated[int, Field(ge=0, le=1000)])
OFFSET: Final = Parameter(Annotated[int, Field(ge=0, le=2**62)])


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

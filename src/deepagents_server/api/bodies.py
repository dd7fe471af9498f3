"""Check what requests may hold, once, where they come in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast
from uuid import UUID

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from starlette.requests import ClientDisconnect, Request

from deepagents_server.database.filters import clean_metadata
from deepagents_server.errors import ApiError
from deepagents_server.serialize import dump
from deepagents_server.server import Server, serving

Body = TypeVar("Body", bound=BaseModel)
_MAX_DEPTH = 200
_MAX_VALUES = 500_000
_VALUES = (b",", b"[", b"{")
"""What begins a further value, outside of strings."""
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

Metadata = dict[str, Any]
Id = Annotated[str, BeforeValidator(lambda value: str(UUID(str(value))))]
Limit = Annotated[int, Field(ge=1, le=1000)]
Offset = Annotated[int, Field(ge=0, le=2**62)]
Ids = Annotated[list[Id], Field(max_length=1000)]


_KINDS = {
    "configurable": (dict, "an object"),
    "metadata": (dict, "an object"),
    "tags": (list, "a list"),
    "recursion_limit": (int, "a whole number"),
    "max_concurrency": (int, "a whole number"),
    "run_name": (str, "text"),
}
"""What the fields of a configuration hold."""


def _check_config(given: dict[str, Any]) -> dict[str, Any]:
    for name, (kind, form) in _KINDS.items():
        if not isinstance(given.get(name), kind | None):
            raise ValueError(f"{name} must be {form}, not {given[name]!r:.100}")
    return given


def _check_checkpoint(given: dict[str, Any]) -> dict[str, Any]:
    inner = given.get("configurable")
    named = cast(dict[str, Any], inner) if isinstance(inner, dict) else given
    for name, kind in (("checkpoint_id", str), ("checkpoint_ns", str), ("checkpoint_map", dict)):
        if not isinstance(named.get(name), kind | None):
            raise ValueError(f"{name} has no such form")
    return named


Config = Annotated[dict[str, Any], AfterValidator(_check_config)]
Checkpoint = Annotated[dict[str, Any], AfterValidator(_check_checkpoint)]


Minutes = Annotated[float, Field(gt=0, le=10**8)]


class SearchBody(BaseModel):
    """What is common to searches."""

    metadata: Metadata | None = None
    limit: Limit = 10
    offset: Offset = 0
    sort_by: str | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = None


def check_body(model: type[Body], read: Any, *, needed: bool = False) -> Body:
    """Check what a body holds; nothing is an empty object, unless a body is `needed`.

    Raises:
        ApiError: if it is not what the endpoint takes.
    """
    if read is None and needed:
        raise ApiError(422, "The body is empty; send an object, such as {}.")
    try:
        return model.model_validate({} if read is None else read)
    except ValidationError as error:
        raise ApiError(422, describe(error, "the body")) from error


def describe(error: ValidationError, whole: str) -> str:
    """Say where the first thing that is wrong stands; `whole` is the name of all."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or whole}: {first['msg']}."


async def read_json(request: Request) -> Any:
    """Read the body of a request; nothing is `None`.

    Raises:
        ApiError: if it is too large, too deep, no JSON, or has too many values.
    """
    taken, most = bytearray(), serving(request).max_body
    try:
        async for chunk in request.stream():
            taken += chunk
            if len(taken) > most:
                raise ApiError(413, f"A body may have {most:,} bytes.")
    except ClientDisconnect as error:
        raise ApiError(400, "The request ended before its body.") from error
    if not taken:
        return None
    body = bytes(taken)
    if _has_many_values(body):
        raise ApiError(422, f"The body has more than {_MAX_VALUES:,} values.")
    try:
        read = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(422, f"The body is not JSON: {error.msg}.") from error
    if _is_deep(read):
        raise ApiError(422, f"The body is nested more than {_MAX_DEPTH} levels deep.")
    return read


def merge_metadata(server: Server, held: Mapping[str, Any], given: Metadata | None) -> dict[str, Any]:
    """Add to metadata; all of it together has the bound of a body.

    Raises:
        ApiError: if it is too large, or cannot be kept.
    """
    merged = {**held, **clean_metadata(given)}
    if len(dump(merged)) > server.max_body:
        raise ApiError(413, f"The metadata may have {server.max_body:,} bytes.")
    return merged


def _has_many_values(body: bytes) -> bool:
    """Tell whether JSON has so many values that others would wait for seconds while it is read."""
    if sum(map(body.count, _VALUES)) <= _MAX_VALUES:
        return False
    # Four for each value with a name. Texts are taken out only if there are few: that takes its time too.
    if body.count(b'"') - body.count(b'\\"') > 4 * _MAX_VALUES:
        return True
    return sum(map(_STRING.sub(b"", body).count, _VALUES)) > _MAX_VALUES


def _is_deep(value: Any) -> bool:
    """Tell whether a value has too many levels; what stores and shows it recurses."""
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast(dict[str, Any], value).values()
    return cast(list[Any], value) if isinstance(value, list) else ()

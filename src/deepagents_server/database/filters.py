"""Choose the rows that a request asks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from deepagents_server.errors import ApiError
from deepagents_server.serialize import dump_text

_MOST: Final = 100
_DEEPEST: Final = 20
"""How large a filter may be: each value becomes a condition, and each level a query inside."""


class contains(sa.ColumnElement[bool]):
    """Tell whether a JSON column holds every key and value that is asked for.

    Raises:
        ApiError: if more is asked for than a database answers at once.
    """

    inherit_cache = False
    type = sa.Boolean()

    def __init__(self, column: sa.ColumnElement[Any], wanted: Mapping[str, Any]) -> None:
        if _size(wanted) > _MOST:
            raise ApiError(422, f"A filter may have {_MOST} values, on {_DEEPEST} levels.")
        self.column = column
        self.wanted = wanted


def _size(wanted: Any, depth: int = 0) -> int:
    """Count the values of a filter; what is too deep counts as too many."""
    if depth > _DEEPEST:
        return _MOST + 1
    inner: Iterable[Any] = ()
    match wanted:
        case Mapping():
            inner = cast(Mapping[str, Any], wanted).values()
        case list():
            inner = cast(list[Any], wanted)
        case _:
            pass
    return 1 + sum(_size(each, depth + 1) for each in inner)


@compiles(contains, "postgresql")
def _contains_postgres(element: contains, compiler: SQLCompiler, **options: Any) -> str:
    wanted = sa.cast(sa.literal(dump_text(element.wanted), sa.Text), JSONB)
    return compiler.process(sa.cast(element.column, JSONB).op("@>")(wanted), **options)


@compiles(contains, "sqlite")
def _contains_sqlite(element: contains, compiler: SQLCompiler, **options: Any) -> str:
    names = (f"json_{number}" for number in itertools.count())
    conditions = list(_conditions(element.column, element.wanted, names))
    return compiler.process(sa.and_(sa.true(), *conditions), **options)


def _conditions(
    column: sa.ColumnElement[Any], wanted: Mapping[str, Any], names: Iterator[str]
) -> Iterator[sa.ColumnElement[bool]]:
    plain = [(key, *_plain(value)) for key, value in wanted.items() if not isinstance(value, dict | list)]
    if plain:
        # All at once: SQLite parses the text anew for each part of a query that looks into it.
        each = _look_into(column, names)
        found = sa.tuple_(each.c.key, *_plain_of(each.c)).in_(plain)
        yield sa.select(sa.func.count()).select_from(each).where(found).scalar_subquery() == len(plain)
    for key, value in wanted.items():
        if isinstance(value, dict | list):
            each = _look_into(column, names)
            found = sa.select(sa.literal(1)).select_from(each).where(each.c.key == key)
            yield sa.exists(found.where(*_equals(each.c, value, names)))


def _look_into(column: sa.ColumnElement[Any], names: Iterator[str]) -> Any:
    return sa.func.json_each(column).table_valued("key", "value", "type", name=next(names))


def _equals(found: Any, value: Any, names: Iterator[str]) -> Iterator[sa.ColumnElement[bool]]:
    match value:
        case dict():
            yield found.type == "object"
            yield from _conditions(found.value, cast(dict[str, Any], value), names)
        case list():
            yield found.type == "array"
            for item in cast(list[Any], value):
                each = _look_into(found.value, names)
                matching = sa.select(sa.literal(1)).select_from(each).where(*_equals(each.c, item, names))
                yield sa.exists(matching)
        case _:
            for there, wanted in zip(_plain_of(found), _plain(value), strict=True):
                yield there == wanted


def _plain_of(found: Any) -> tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]:
    """Return the kind and the value of what JSON holds, as `_plain` does."""
    kind = sa.case((found.type.in_(["integer", "real"]), "number"), else_=found.type)
    return kind, sa.func.coalesce(found.value, "")


def _plain(value: Any) -> tuple[str, Any]:
    match value:
        case bool():
            return ("true" if value else "false"), int(value)
        case None:
            return "null", ""
        case int() | float():
            # SQLite takes no whole numbers of more than 64 bits, and keeps them rounded.
            return "number", value if abs(value) < 2**63 else float(value)
        case _:
            return "text", str(value)


def clean_metadata(value: Any) -> dict[str, Any]:
    """Return metadata as both databases can keep and search it.

    Raises:
        ApiError: for a NUL, which PostgreSQL does not keep.
    """
    if value and "\\u0000" in dump_text(value):
        raise ApiError(422, "Metadata cannot hold a NUL character.")
    return dict(value or {})

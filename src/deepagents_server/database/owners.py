"""Keep to the rows of one owner: the only place that does, for every statement of a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, cast

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.sql import visitors

from deepagents._values import field, replace, valueclass
from deepagents_server.database.filters import contains
from deepagents_server.database.tables import METADATA, assistant_versions, assistants, runs, threads
from deepagents_server.errors import ApiError

SHARED: Final = "*"
"""The owner of what everybody may read and nobody change: the assistants of the graphs."""
_OPTION: Final = "deepagents_scope"
_SHARED_TABLES: Final = (assistants, assistant_versions)
# Whose rows these are, their parents say.
_PARENTS: Final = {
    "assistant_versions": assistants.c.assistant_id,
    "commands": runs.c.run_id,
    "leases": threads.c.thread_id,
    "runs": threads.c.thread_id,
    "run_events": runs.c.run_id,
}
# They belong to nobody, and no request has a reason to look at them.
_OF_SERVER: Final = ("api_keys", "webhooks", "workers")


@valueclass
class Scope:
    """Whose rows a request may see and change; without keys, those without an owner."""

    owner: str = ""
    user: Mapping[str, Any] | None = None
    """What is known about the one who asks; runs find it in their configuration."""
    wanted: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """What metadata must hold instead of the owner's name, where handlers of `auth` want it: by resource."""

    def narrow(self, resource: str, wanted: Mapping[str, Any] | None) -> Scope:
        """Return the same scope with what a handler wants of a resource."""
        return self if wanted is None else replace(self, wanted={**self.wanted, resource: wanted})


def bind(engine: AsyncEngine, scope: Scope) -> AsyncEngine:
    """Return the same engine, whose statements keep to the rows of an owner."""
    return engine.execution_options(**{_OPTION: scope})


def guard(engine: AsyncEngine) -> None:
    """Let an engine add the owner to each statement that is to keep to one."""
    event.listen(engine.sync_engine, "before_execute", _keep_to_owner, retval=True)


def _keep_to_owner(connection: sa.Connection, statement: Any, multi: Any, single: Any, options: Any) -> Any:
    scope: Scope | None = options.get(_OPTION)
    return (statement if scope is None else _add_scope(statement, scope)), multi, single


def _add_scope(statement: Any, scope: Scope) -> Any:
    """Return a statement that reads, changes and removes rows of an owner only, and adds them as his.

    Raises:
        RuntimeError: for text, whose tables are not known.
    """
    if not isinstance(statement, sa.SelectBase | sa.UpdateBase):
        raise RuntimeError("A request runs statements whose tables can be seen, not text.")
    if isinstance(statement, sa.Insert) and "owner" in statement.table.c:
        statement = statement.values(owner=scope.owner)
    if not _has_queries_inside(statement):
        # To copy a whole statement costs more than the rest of its execution.
        conditions = [] if isinstance(statement, sa.Insert) else _conditions(statement, scope)
        return cast(Any, statement).where(*conditions) if conditions else statement

    def narrow(part: Any) -> None:
        for condition in _conditions(part, scope):
            part.where.non_generative(part, condition)

    visits: Any = {"select": narrow, "update": narrow, "delete": narrow}
    return visitors.cloned_traverse(cast(Any, statement), {}, visits)


def _has_queries_inside(statement: Any) -> bool:
    parts = visitors.iterate(statement)
    return any(isinstance(part, sa.SelectBase | sa.UpdateBase) for part in parts if part is not statement)


def _tables(elements: Iterable[Any]) -> Iterator[sa.FromClause]:
    """Yield what a query reads from, without the queries inside, which are seen for themselves."""
    for element in elements:
        if isinstance(element, sa.Table | sa.Alias):
            yield element
        elif isinstance(element, sa.Column):
            yield element.table
        elif not isinstance(element, sa.SelectBase | sa.Subquery):
            yield from _tables(element.get_children())


def _conditions(statement: Any, scope: Scope) -> list[sa.ColumnElement[bool]]:
    """Say which of the rows that a statement reads or changes an owner has."""
    writes = not isinstance(statement, sa.SelectBase)
    found = [statement.table] if writes else dict.fromkeys(_tables(statement.get_children()))
    # The tables of savers and stores have no owners; their rows are reached by those that have.
    owned = [each for each in found if getattr(_table_of(each), "metadata", None) is METADATA]
    return [
        _condition(each, scope, writes=writes)
        if scope.wanted or not isinstance(each, sa.Table)
        else _plain_condition(cast(Any, each), scope.owner, writes=writes)
        for each in owned
    ]


def _table_of(source: Any) -> Any:
    return cast(Any, source).element if isinstance(source, sa.Alias) else source


def _condition(source: sa.FromClause, scope: Scope, *, writes: bool) -> sa.ColumnElement[bool]:
    """Say which rows of a table an owner has."""
    table: sa.Table = _table_of(source)
    if table.name in _OF_SERVER:
        return sa.false()
    parent = _PARENTS.get(table.name)
    if parent is not None and ("owner" not in table.c or parent.table.name in scope.wanted):
        # The one parent of each row, by its key: the list of all that an owner has grows for ever.
        of_row = parent.table.alias()
        whose = _condition(of_row, scope, writes=writes)
        return sa.exists().where(of_row.c[parent.name] == source.c[parent.name], whose).correlate(source)
    if table.name in scope.wanted:
        whose = sa.and_(*_hold(source.c.metadata, scope.wanted[table.name]))
    else:
        whose = source.c.owner == scope.owner
    shared = table in _SHARED_TABLES and not writes
    return sa.or_(source.c.owner == SHARED, whose) if shared else whose


@lru_cache(1000)
def _plain_condition(source: sa.Table, owner: str, *, writes: bool) -> sa.ColumnElement[bool]:
    return _condition(source, Scope(owner), writes=writes)


def _hold(metadata: sa.ColumnElement[Any], wanted: Mapping[str, Any]) -> Iterator[sa.ColumnElement[bool]]:
    """Read a filter: `{"owner": "a"}`, `{"owner": {"$eq": "a"}}`, `{"readers": {"$contains": "a"}}`.

    Raises:
        ApiError: for what is not a filter, so that nothing is shown by mistake.
    """
    yield sa.true()
    for name, value in wanted.items():
        match value:
            case {"$eq": plain}:
                yield contains(metadata, {name: plain})
            case {"$contains": one}:
                yield contains(metadata, {name: one if isinstance(one, list) else [one]})
            case {**operators} if any(key.startswith("$") for key in operators):
                raise ApiError(500, "The server failed: a handler of auth gave a filter that is none.")
            case plain:
                yield contains(metadata, {name: plain})

"""Measure how much an owner keeps, now and then: to add it up for each request would grow with it."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from deepagents_server.database.store import label_of
from deepagents_server.database.tables import quotas

_OF_ALL: Final = (
    'SELECT sum(SIZE("values") + SIZE(metadata)) FROM threads WHERE owner = :owner',
    "SELECT sum(SIZE(kwargs)) FROM runs WHERE owner = :owner",
    "SELECT sum(SIZE(events)) FROM run_events e JOIN runs r ON r.run_id = e.run_id WHERE r.owner = :owner",
    "SELECT sum(SIZE(c.checkpoint) + SIZE(c.metadata)) FROM checkpoints c JOIN threads t"
    " ON t.thread_id = c.thread_id WHERE t.owner = :owner",
    "SELECT sum(SIZE(value)) FROM store WHERE prefix LIKE :label",
)
_OF_SAVERS: Final = {
    "sqlite": (("writes", "value"),),
    "postgresql": (("checkpoint_writes", "blob"), ("checkpoint_blobs", "blob")),
}
_SIZE: Final = {"sqlite": "length", "postgresql": "pg_column_size"}
"""What tells the size of a value without reading it."""


def measure(engine: sa.Engine) -> None:
    """Write down how many bytes each owner keeps who may keep so many only."""
    limited = sa.select(quotas.c.owner).where(quotas.c.megabytes.is_not(None))
    with engine.connect() as connection:
        owners = [*connection.execute(limited).scalars()]
    for owner in owners:
        with engine.connect() as connection:
            kept = sum(_read_sizes(connection, owner))
        with engine.begin() as connection:
            connection.execute(quotas.update().where(quotas.c.owner == owner).values(kept_bytes=kept))


def _read_sizes(connection: sa.Connection, owner: str) -> list[int]:
    kind = connection.dialect.name
    of_savers = (
        f"SELECT sum(SIZE(w.{column})) FROM {table} w JOIN threads t"
        " ON t.thread_id = w.thread_id WHERE t.owner = :owner"
        for table, column in _OF_SAVERS[kind]
    )
    given = {"owner": owner, "label": f"{label_of(owner)}%"}
    texts = (sa.text(each.replace("SIZE", _SIZE[kind])) for each in (*_OF_ALL, *of_savers))
    return [int(connection.execute(text, given).scalar() or 0) for text in texts]

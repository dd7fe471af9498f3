"""Define the tables of the server, in the words of both databases; migrations.py makes them."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

METADATA: Final = sa.MetaData()
PENDING: Final[sa.ColumnElement[Any]] = sa.literal_column("'pending'")
"""The status of a run that waits, as a literal: of a parameter, SQLite does not know that an index has it."""


def _where(condition: str) -> dict[str, Any]:
    """Say of which rows an index knows."""
    return {f"{name}_where": sa.text(condition) for name in ("sqlite", "postgresql")}


def server_time(later: float = 0.0) -> sa.Function[str]:
    """Return the time of the database, or the time so many seconds later, as the tables have it.

    The clocks of the machines that share a PostgreSQL differ. A file has that of its one machine.
    """
    return sa.func.server_time(later, type_=sa.Text())


def _json(name: str, *, default: str = "{}") -> sa.Column[Any]:
    kind = sa.JSON().with_variant(JSONB(), "postgresql")
    return sa.Column(name, kind, nullable=False, server_default=default)


def _text(name: str, *, nullable: bool = False, default: str | None = None) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=nullable, server_default=default)


def _key(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, primary_key=True)


def _number(name: str, default: str | None = "0") -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=default is None, server_default=default)


def _make_configured_columns() -> list[sa.Column[Any]]:
    """Return the columns that an assistant and each of its versions have."""
    return [
        _text("graph_id"),
        _text("name", default=""),
        _text("description", nullable=True),
        _json("config"),
        _json("context"),
        _json("metadata"),
    ]


# Times are ISO 8601 in UTC with microseconds: such texts sort as the times do, and are what clients get.
assistants: Final = sa.Table(
    "assistants",
    METADATA,
    _key("assistant_id"),
    _text("owner", default=""),
    *_make_configured_columns(),
    _number("version", "1"),
    _text("created_at"),
    _text("updated_at"),
    sa.Index("assistants_by_graph", "graph_id"),
)

assistant_versions: Final = sa.Table(
    "assistant_versions",
    METADATA,
    _key("assistant_id"),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
    _text("owner", default=""),
    *_make_configured_columns(),
    _text("created_at"),
)

threads: Final = sa.Table(
    "threads",
    METADATA,
    _key("thread_id"),
    _text("owner", default=""),
    _text("status", default="idle"),
    _json("metadata"),
    _json("config"),
    # What a thread holds, as text: a NUL in a message is JSON, and PostgreSQL's JSONB refuses it.
    _text("values", nullable=True),
    _text("interrupts", default="{}"),
    _text("error", nullable=True),
    _text("created_at"),
    _text("updated_at"),
    _text("state_updated_at"),
    # A lifetime of its own, what happens at its end, and when old states were removed last.
    _number("ttl_seconds", None),
    _text("ttl_strategy", nullable=True),
    _text("thinned_at", nullable=True),
    sa.Index("threads_by_update", "owner", "updated_at"),
    sa.Index("threads_by_age", "updated_at"),
    sa.Index("threads_by_ttl", "ttl_seconds"),
    sa.Index("threads_by_status", "owner", "status", "updated_at"),
    sa.Index(
        "threads_by_metadata",
        "metadata",
        postgresql_using="gin",
        postgresql_ops={"metadata": "jsonb_path_ops"},
        # Otherwise each search reads through what came last.
        postgresql_with={"fastupdate": "off"},
    ).ddl_if(dialect="postgresql"),
)

# What the metadata of threads says in text, for SQLite, whose indexes cannot read JSON; triggers write it.
thread_labels: Final = sa.table(
    "thread_labels", *(sa.column(each, sa.Text) for each in ("thread_id", "name", "owner", "value"))
)

runs: Final = sa.Table(
    "runs",
    METADATA,
    _key("run_id"),
    _text("thread_id"),
    _text("owner", default=""),
    _text("assistant_id"),
    _text("graph_id"),
    _text("status", default="pending"),
    _json("metadata"),
    _text("kwargs"),
    _text("multitask_strategy", default="enqueue"),
    _number("priority"),
    # Of the code that is to run it; workers leave the runs of other versions alone.
    _text("version", default="1"),
    _number("attempt", "0"),
    # Why a run is to end early: interrupt, rollback or steer.
    _text("cancelled", nullable=True),
    _text("error", nullable=True),
    _text("due_at"),
    _text("created_at"),
    _text("updated_at"),
    # Grows with each run, by a trigger: what came first, and what is newest, follows from it alone.
    _number("number"),
    sa.Index("runs_by_number", "number"),
    sa.Index("runs_by_thread", "thread_id", "number"),
    sa.Index("runs_to_start", "status", "due_at"),
    # Without it, the first that waits on a thread is looked for among all that have ended there.
    sa.Index("runs_in_line", "thread_id", "number", **_where("status = 'pending'")),
    sa.Index("runs_of_owner", "owner", "status"),
    sa.Index("runs_by_age", "updated_at"),
)

leases: Final = sa.Table(
    "leases",
    METADATA,
    _key("thread_id"),
    # The run that is at work, with its worker, or waits for one.
    _text("run_id", nullable=True),
    _text("worker", nullable=True),
    # Grows with each owner; checkpoints that carry an older number are refused.
    _number("token"),
    # When the thread was removed; for a while, the lease still keeps old owners out.
    _text("removed_at", nullable=True),
    sa.Index("leases_by_worker", "worker", **_where("worker IS NOT NULL")),
    sa.Index("leases_by_removal", "removed_at"),
    sa.Index("leases_in_queue", "run_id", **_where("run_id IS NOT NULL AND worker IS NULL")),
)

run_events: Final = sa.Table(
    "run_events",
    METADATA,
    _key("run_id"),
    # Of the last event in the batch.
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    _text("events"),
    _text("created_at"),
    sa.Index("run_events_by_age", "created_at"),
)

# What is still to be posted about runs that are over.
webhooks: Final = sa.Table(
    "webhooks",
    METADATA,
    _key("run_id"),
    _text("address"),
    _text("body"),
    # How often it was begun to be sent, how often that failed, and when it may begin again.
    _number("attempt"),
    _number("failed"),
    _text("due_at"),
    sa.Index("webhooks_by_date", "due_at"),
)

# What the command tool of a run has begun, so that a crash does not let it begin twice.
commands: Final = sa.Table(
    "commands",
    METADATA,
    _key("run_id"),
    _key("call_id"),
    _number("attempt"),
    _text("began_at"),
    _text("ended_at", nullable=True),
    sa.Column("exit_code", sa.BigInteger, nullable=True),
)

crons: Final = sa.Table(
    "crons",
    METADATA,
    _key("cron_id"),
    _text("owner", default=""),
    _text("assistant_id"),
    _text("thread_id", nullable=True),
    _text("schedule"),
    _text("timezone", nullable=True),
    _text("payload"),
    _json("metadata"),
    sa.Column("enabled", sa.SmallInteger, nullable=False, server_default="1"),
    _text("on_run_completed", nullable=True),
    _text("end_time", nullable=True),
    _text("next_run_date", nullable=True),
    _text("created_at"),
    _text("updated_at"),
    sa.Index("crons_by_date", "enabled", "next_run_date"),
    sa.Index("crons_by_thread", "thread_id"),
    sa.Index("crons_of_owner", "owner"),
)

api_keys: Final = sa.Table(
    "api_keys",
    METADATA,
    _key("key_id"),
    _text("owner"),
    # Of the whole key, which is kept nowhere.
    _text("digest"),
    _text("created_at"),
    _text("expires_at", nullable=True),
    _text("revoked_at", nullable=True),
    sa.Index("api_keys_by_digest", "digest", unique=True),
)

quotas: Final = sa.Table(
    "quotas",
    METADATA,
    _key("owner"),
    # Runs at once, and tokens and money in so many seconds; NULL is as much as they like.
    _number("runs", None),
    _number("tokens", None),
    sa.Column("money", sa.Float, nullable=True),
    _number("schedules", None),
    _number("megabytes", None),
    # When somebody measured last.
    _number("kept_bytes"),
    _number("seconds", "86400"),
    # When the seconds began, and what was used since then.
    sa.Column("began_at", sa.Float, nullable=False, server_default="0"),
    _number("used_tokens"),
    sa.Column("used_money", sa.Float, nullable=False, server_default="0"),
)

workers: Final = sa.Table(
    "workers",
    METADATA,
    _key("worker_id"),
    sa.Column("seen_at", sa.Float, nullable=False),
    _text("host", default=""),
    # How many runs it works on at once.
    _number("slots"),
)

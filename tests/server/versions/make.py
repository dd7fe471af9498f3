"""Write the first step, and a database of the first version, anew: `python tests/server/versions/make.py`.

Only while nothing is released. After that the first step and its database stay as they are, and a change of
tables.py is a further step.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa
from langgraph_sdk import get_sync_client
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from deepagents_server.database import migrations  # noqa: E402
from deepagents_server.database.tables import METADATA  # noqa: E402
from tests import postgres  # noqa: E402
from tests.server.serving import serving  # noqa: E402
from tests.server.test_runs import say  # noqa: E402

_STEPS = Path(migrations.__file__).with_name("steps")
_ID = "00000000-0000-4000-8000-00000000000"
_FORGET = "DELETE FROM server_migrations WHERE version > 1;"


def write_step() -> None:
    """Write the tables in the words of each database."""
    for dialect in (sqlite.dialect(), postgresql.dialect()):
        made: list[sa.schema.ExecutableDDLElement] = []
        for table in METADATA.sorted_tables:
            made += [CreateTable(table), *(CreateIndex(each) for each in sorted(table.indexes, key=str))]
        texts = [re.sub(r"\s*\n\s*\n?", "\n", str(each.compile(dialect=dialect)).strip()) for each in made]
        (_STEPS / f"1_tables.{dialect.name}.sql").write_text("\n\n".join(texts) + "\n")


def fill(url: str) -> None:
    """Keep a state, an item of the store, and a run that waits."""
    with TemporaryDirectory() as name, ExitStack() as stack:
        address = stack.enter_context(serving(Path(name), url, slots=0))
        client = stack.enter_context(get_sync_client(url=address, api_key=None))
        thread = client.threads.create(thread_id=f"{_ID}1", graph_id="echo")["thread_id"]
        client.threads.update_state(thread, say("hello"), as_node="answer")
        client.store.put_item(["notes"], "tide", {"height": 13})
        waiting = client.threads.create(thread_id=f"{_ID}2")["thread_id"]
        client.runs.create(waiting, "echo", input=say("go on"))


def write_databases() -> None:
    """Write a database of the first version as text, for each kind."""
    with TemporaryDirectory() as name:
        file = Path(name) / "server.db"
        fill(f"sqlite:///{file}")
        with closing(sqlite3.connect(file)) as opened:
            opened.executescript(f"DROP TRIGGER checkpoints_are_fenced; {_FORGET}")
            (HERE / "1.sqlite.sql").write_text("\n".join(opened.iterdump()) + "\n")
    with postgres.server() as place:
        host = dict(part.split("=") for part in place.split())["host"]
        fill(f"postgresql://postgres@/postgres?host={host}")
        at = ["-h", host, "-U", "postgres"]
        gone = (
            f"DROP TRIGGER checkpoints_are_fenced ON checkpoints; DROP FUNCTION refuse_lost_lease; {_FORGET}"
        )
        subprocess.run(["psql", *at, "-qc", gone], check=True)
        dumped = subprocess.run(
            ["pg_dump", *at, "--inserts", "--no-owner", "--no-comments"],
            check=True,
            capture_output=True,
            text=True,
        )
        # Commands of psql alone, and remarks with the version of the program.
        lines = [line for line in dumped.stdout.splitlines() if line and not line.startswith(("--", "\\"))]
        (HERE / "1.postgresql.sql").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_step()
    write_databases()

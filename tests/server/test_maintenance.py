"""The database is looked after by command, while a server works on it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from langgraph_sdk import get_sync_client

from deepagents_cli.__main__ import main
from deepagents_server.database.migrations import STEPS
from tests.server.serving import serving, serving_apart
from tests.server.test_runs import say

pytestmark = pytest.mark.slow


@dataclass
class Served:
    """A server, and where it keeps things."""

    url: str
    database: str
    host: str = ""

    def db(self, action: str, *arguments: str) -> int:
        """Run a command on its database."""
        return main(["db", action, *arguments, "--database", self.database])

    def restore(self, copy: Path) -> str:
        """Make a database of a copy and return its address."""
        if not self.host:
            return f"sqlite:///{copy}"
        name = f"restored_{uuid4().hex}"
        place = ["-h", self.host, "-U", "postgres"]
        subprocess.run(["createdb", *place, name], check=True)
        subprocess.run(["pg_restore", *place, "-d", name, str(copy)], check=True)
        return f"postgresql://postgres@/{name}?host={self.host}"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("db")
    database, host = f"sqlite:///{directory / 'server.db'}", ""
    if request.param == "postgresql":
        host = dict(part.split("=") for part in request.getfixturevalue("postgres").split())["host"]
        database = f"postgresql://postgres@/postgres?host={host}"
    with serving_apart(directory, database) as url:
        yield Served(url, database, host)


def test_a_copy_holds_what_the_server_held(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    with get_sync_client(url=served.url, api_key=None) as client:
        thread = client.threads.create()["thread_id"]
        kept: Any = client.runs.wait(thread, "echo", input=say("keep this"))

    assert served.db("backup", str(copy)) == 0

    assert "Wrote" in capsys.readouterr().out
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [copy]
    with serving(tmp_path, served.restore(copy), slots=0) as url, get_sync_client(url=url) as client:
        state: Any = client.threads.get_state(thread)
        assert state["values"]["messages"] == kept["messages"]


def test_a_copy_is_whole_or_not_there(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert served.db("backup", str(there)) == 2
    assert "already" in capsys.readouterr().err
    assert served.db("backup", str(tmp_path / "gone" / "copy")) == 2
    assert "cannot be written" in capsys.readouterr().err
    if served.host:
        assert served.db("backup", str(tmp_path / "copy")) == 2
        assert "pg_dump is needed" in capsys.readouterr().err
    assert there.read_text() == "mine"
    assert [*tmp_path.iterdir()] == [there]


def test_the_space_of_what_was_removed_is_given_back(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    with get_sync_client(url=served.url, api_key=None) as client:
        threads = [client.threads.create()["thread_id"] for _ in range(3)]
        for thread in threads:
            client.runs.wait(thread, "echo", input=say("x" * 1_000_000))

        assert served.db("prune", "--keep-threads", "0", "--keep-runs", "1d", "--keep-events", "2h") == 0
        assert served.db("vacuum") == 0

        said = capsys.readouterr().out
        assert "Removed " in said
        assert "Removed 0 threads" not in said
        assert client.threads.search(ids=threads) == []
    if not served.host:
        path = Path(sa.make_url(served.database).database or "")
        files = [path, path.with_name(f"{path.name}-wal")]
        assert sum(each.stat().st_size for each in files) < 1_500_000


def test_a_database_that_is_up_to_date_stays_as_it_is(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    assert served.db("migrate") == 0
    assert capsys.readouterr().out == f"The database has version {len(STEPS)}.\n"

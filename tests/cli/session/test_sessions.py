"""The register of threads knows which directory each belongs to, and which was used last."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from deepagents_cli.errors import CommandError
from deepagents_cli.project.state import state_dir
from deepagents_cli.session.threads.sessions import Sessions
from tests.cli.conftest import Command

HERE, THERE = Path("/here"), Path("/there")


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "deep" / "state")


def test_where_nothing_can_be_kept_a_task_is_done_all_the_same(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.touch()
    monkeypatch.delenv("DEEPAGENTS_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "short"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "short").mkdir()

    ended = cli.run("-q", "hello", model=ScriptedModel("Hello."))

    assert (ended.code, ended.out) == (0, "Hello.\n")
    assert "sessions cannot be kept in" in ended.err
    assert ended.err.endswith("so this one is gone at its end\n")
    assert not [*(tmp_path / "short").iterdir()]
    assert "DEEPAGENTS_STATE" not in os.environ


def test_each_new_thread_has_a_name_of_its_own(sessions: Sessions) -> None:
    names = {sessions.choose(HERE, None, latest=False) for _ in range(20)}

    assert len(names) == 20


def test_the_latest_is_the_one_used_last_in_this_directory(sessions: Sessions) -> None:
    for name, directory in [("a", HERE), ("b", HERE), ("c", THERE), ("a", HERE)]:
        sessions.note(name, directory)

    assert sessions.choose(HERE, None, latest=True) == "a"
    assert sessions.choose(THERE, None, latest=True) == "c"


def test_the_latest_is_the_one_used_last_also_after_the_clock_was_set_back(sessions: Sessions) -> None:
    sessions.note("a", HERE)
    with closing(sqlite3.connect(sessions.path)) as database, database:
        database.execute("UPDATE deepagents_threads SET used = used + 3600")
    sessions.note("b", HERE)

    assert sessions.choose(HERE, None, latest=True) == "b"
    assert [each.id for each in sessions.find_all(HERE)] == ["b", "a"]


def test_the_lock_file_is_private(sessions: Sessions) -> None:
    with sessions.hold("t1"):
        assert sessions.path.with_suffix(".lock").stat().st_mode & 0o777 == 0o600


def test_a_place_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(CommandError, match=r"cannot be kept in .*file.*DEEPAGENTS_STATE"):
        Sessions(tmp_path / "file")


def test_a_file_of_before_all_columns_were_there_is_named_with_the_way_out(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "threads.sqlite")) as database:
        database.execute("CREATE TABLE deepagents_threads (thread_id TEXT, directory TEXT, used REAL)")

    with pytest.raises(CommandError, match=r"threads\.sqlite.*no such column.*DEEPAGENTS_STATE"):
        Sessions(tmp_path)


@pytest.mark.parametrize(
    ("table", "column"),
    [("threads", "turn"), ("queue", "source"), ("rewinds", "begun"), ("worktrees", "branch")],
)
@pytest.mark.parametrize("typed", ["sessions list", "--continue more", "undo --yes"])
def test_each_command_refuses_such_a_file_before_anything_happens(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch, table: str, column: str, typed: str
) -> None:
    monkeypatch.chdir(directory)
    write = call("write_file", file_path="made.txt", content="1\n")
    assert cli("run", "Make it", "--auto", model=ScriptedModel(write, "Done.")).code == 0
    with closing(sqlite3.connect(state_dir() / "threads.sqlite")) as database:
        database.execute(f"ALTER TABLE deepagents_{table} DROP COLUMN {column}")

    ended = cli(*typed.split(), model=ScriptedModel())

    # Some commands need no more than what is there.
    if ended.code:
        assert (ended.code, ended.err.count("\n")) == (1, 1)
        assert f"no such column: {column}" in ended.err
        assert (directory / "made.txt").exists()
    else:
        assert table in ("queue", "rewinds")


def test_a_damaged_file_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "threads.sqlite").write_text("this is not a database, " * 100)

    with pytest.raises(CommandError, match=r"threads\.sqlite.*DEEPAGENTS_STATE"):
        Sessions(tmp_path)


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({"DEEPAGENTS_STATE": "/here", "XDG_STATE_HOME": "/x"}, "linux", "/here"),
        ({"XDG_STATE_HOME": "/x"}, "linux", "/x/deepagents"),
        ({}, "linux", "~/.local/state/deepagents"),
        ({}, "darwin", "~/Library/Application Support/deepagents"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/deepagents"),
    ],
)
def test_threads_are_kept_where_the_platform_keeps_state(
    environment: dict[str, str], platform: str, expected: str
) -> None:
    assert state_dir(environment, platform) == Path(expected).expanduser()

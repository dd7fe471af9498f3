"""A directory to work on, a place for threads, and the command in this process or in a child."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deepagents.testing import ScriptedModel
from deepagents_cli.__main__ import main
from tests.cli.children import Child, Nursery


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """What `--json` wrote."""
        return [json.loads(line) for line in self.out.splitlines()]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind."""
        return [event for event in self.events if event["type"] == kind]


class Command:
    """The command, run in this process with a scripted model and no terminal."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self._capsys = capsys

    def __call__(self, *argv: str, model: ScriptedModel | None = None) -> Ended:
        """Run any command."""
        self._capsys.readouterr()
        code = main(argv, model=model)
        written = self._capsys.readouterr()
        return Ended(code, written.out, written.err)

    def run(self, *argv: str, model: ScriptedModel | None = None) -> Ended:
        """Run `deepagents run` on the directory."""
        return self("run", *argv, "--dir", str(self.directory), model=model)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with one file."""
    place = tmp_path / "files"
    place.mkdir()
    (place / "notes.md").write_text("first line\nsecond line\n")
    return place


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Threads and settings of each test are its own; nobody sits at a terminal."""
    place = tmp_path / "state"
    monkeypatch.setenv("DEEPAGENTS_STATE", str(place))
    monkeypatch.setenv("DEEPAGENTS_SETTINGS", str(tmp_path / "settings.toml"))
    # What fails here fails at once.
    monkeypatch.setenv("DEEPAGENTS_MODEL_RETRIES", "0")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return place


@pytest.fixture
def cli(directory: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process."""
    return Command(directory, capsys)


@pytest.fixture
def nursery(directory: Path, state: Path) -> Iterator[Nursery]:
    """Children that run the command on the directory; none outlives the test."""
    with Nursery(directory, {"DEEPAGENTS_STATE": str(state), "NO_COLOR": "1", "TERM": "xterm"}) as nursery:
        yield nursery


__all__ = ["Child", "Command", "Ended", "Nursery"]

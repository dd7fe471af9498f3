"""Flags and environment become the settings of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepagents_cli.args import parse
from deepagents_cli.errors import CommandError
from deepagents_cli.settings import run_settings, state_dir


def test_the_directory_is_absolute_and_there(tmp_path: Path) -> None:
    settings = run_settings(parse(["run", "go", "--dir", str(tmp_path / "x" / "..")]), {})

    assert settings.directory == tmp_path


def test_a_directory_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="'nowhere' is not a directory"):
        run_settings(parse(["run", "go", "--dir", "nowhere"]), {})


def test_flags_arrive(tmp_path: Path) -> None:
    settings = run_settings(
        parse(["run", "go", "--dir", str(tmp_path), "--yes", "--json", "--shell", "--thread", "t"]),
        {"DEEPAGENTS_STATE": "/kept"},
    )

    assert (settings.task, settings.thread, settings.state) == ("go", "t", Path("/kept"))
    assert settings.approve_all
    assert settings.as_json
    assert settings.shell


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

"""Decide what a run works with: flags first, then the environment, then defaults."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deepagents.limits import Limits
from deepagents_cli.errors import CommandError
from deepagents_cli.limits import limits_of


@dataclass(frozen=True, slots=True)
class Settings:
    """One run, decided."""

    directory: Path
    state: Path
    task: str | None = None
    model: str | None = None
    thread: str | None = None
    resume: bool = False
    approve_all: bool = False
    shell: bool = False
    as_json: bool = False
    limits: Limits | None = None


def run_settings(arguments: Namespace, environment: Mapping[str, str] = os.environ) -> Settings:
    """Merge flags and environment for `deepagents run`.

    Raises:
        CommandError: when the directory is none.
    """
    directory: Path = arguments.dir.expanduser().resolve()
    if not directory.is_dir():
        raise CommandError(f"{str(arguments.dir)!r} is not a directory")
    return Settings(
        directory=directory,
        state=state_dir(environment),
        task=arguments.task,
        model=arguments.model,
        thread=arguments.thread,
        resume=arguments.resume,
        approve_all=arguments.yes,
        shell=arguments.shell,
        as_json=arguments.json,
        limits=limits_of(arguments),
    )


def state_dir(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return where threads are kept: `DEEPAGENTS_STATE`, or the user's state directory."""
    if chosen := environment.get("DEEPAGENTS_STATE"):
        return Path(chosen).expanduser()
    if chosen := environment.get("XDG_STATE_HOME"):
        return Path(chosen) / "deepagents"
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "deepagents"
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "deepagents"
    return Path.home() / ".local" / "state" / "deepagents"

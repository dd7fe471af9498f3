"""`deepagents first-run`: a small real job on a throw-away copy of example files, and whether it got done."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.memory import InMemorySaver
from rich.console import Console

from deepagents.errors import UnknownModel
from deepagents.events import RunStarted
from deepagents_cli.agents import choose_model, make_agent, make_files, model_label
from deepagents_cli.approval import DIFF_COLOURS, approve
from deepagents_cli.at_terminal import make_printer
from deepagents_cli.diffs import text_diff
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.models import pull
from deepagents_cli.models_here import LOCAL
from deepagents_cli.policy import Policy
from deepagents_cli.session import converse
from deepagents_cli.spending import Spending
from deepagents_cli.terminal import make_console, style_text
from deepagents_local import DEFAULT_MODEL

_TRIES: Final = 2
_INSTALLED: Final = Path(__file__).with_name("first-run")
_IN_A_CHECKOUT: Final = Path(__file__).parents[2] / "examples" / "first-run"


def run(arguments: Namespace, *, model: BaseChatModel | None = None) -> int:
    """Let an agent do the example's job, once more on a fresh copy if it fails; return the exit code."""
    job = find_example()
    chosen = model or _some_model(arguments.model)
    console = make_console(sys.stdout)
    for left in reversed(range(_TRIES)):
        fault = _attempt(job, chosen, console)
        if not fault:
            _say(console, "Done: the files are as the task asks, and nothing else was changed.", "bold green")
            return Exit.DONE
        _say(console, f"Not done: {fault}.", "bold red")
        if left:
            _say(console, "Trying once more on a fresh copy.", "bold")
    return Exit.FAILED


def _some_model(named: str | None) -> BaseChatModel:
    wanted = named or os.environ.get("DEEPAGENTS_MODEL")
    try:
        return choose_model(wanted)
    except UnknownModel:
        provider, _, name = (wanted or LOCAL).partition(":")
        if provider != LOCAL or find_spec("xllamacpp") is None:
            raise
        pull(name or DEFAULT_MODEL)
        return choose_model(f"{LOCAL}:{name}")


def _attempt(job: Example, model: BaseChatModel, console: Console) -> str:
    with TemporaryDirectory(prefix="deepagents-first-run-") as name:
        directory = Path(name).resolve()
        job.copy_to(directory)
        _say(console, f"Task: {job.task}", "bold")
        _work(job.task, directory, model, console)
        _say(console, "\nWhat changed on disk:", "bold")
        _show_diff(console, job.diff(directory))
        return job.find_fault(directory)


def _work(task: str, directory: Path, model: BaseChatModel, console: Console) -> None:
    agent = make_agent(model, InMemorySaver(), Policy(make_files(directory), directory))
    started = RunStarted("first-run", task, model_label(model), str(directory))
    with closing(make_printer(console, Spending())) as printer, asyncio.Runner() as runner:
        converse(runner, agent, started, ask=approve, show=printer)


def _show_diff(console: Console, lines: Sequence[str]) -> None:
    for line in lines or ["(nothing)"]:
        _say(console, line, DIFF_COLOURS.get(line[:1], ""))
    console.print()


def _say(console: Console, text: str, style: str) -> None:
    console.print(style_text(text, style), soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Example:
    """A folder with `task.txt`, the files in `before/`, and in `after/` what they must become."""

    home: Path

    @property
    def task(self) -> str:
        """The task that the agent gets."""
        return (self.home / "task.txt").read_text("utf-8").strip()

    def copy_to(self, directory: Path) -> None:
        """Copy the files to start from."""
        shutil.copytree(self.home / "before", directory, dirs_exist_ok=True)

    def diff(self, directory: Path) -> list[str]:
        """Return what became of the files, as a diff."""
        before, after = _texts(self.home / "before"), _texts(directory)
        names = sorted({*before, *after})
        return [line for name in names for line in text_diff(before.get(name), after.get(name), name)]

    def find_fault(self, directory: Path) -> str:
        """Describe what is wrong with the outcome; an empty string when each file is as it should be."""
        wanted, found = _texts(self.home / "after"), _texts(directory)
        for name in sorted(wanted.keys() | found.keys()):
            if name not in found:
                return f"{name} is missing"
            if name not in wanted:
                return f"{name} was not asked for"
            if found[name].rstrip() != wanted[name].rstrip():
                return f"{name} is not as it should be"
        return ""


def find_example() -> Example:
    """Find the example, installed with this module or in the checkout.

    Raises:
        CommandError: when it is in neither of them.
    """
    for home in (_INSTALLED, _IN_A_CHECKOUT):
        if (home / "task.txt").is_file():
            return Example(home)
    raise CommandError("The files of the first run are not in this installation")


def _texts(root: Path) -> dict[str, str]:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text("utf-8", "replace") for path in files}

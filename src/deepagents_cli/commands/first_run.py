"""`deepagents first-run`: a small real job on a throw-away copy of example files, and whether it got done."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.memory import InMemorySaver
from rich.console import Console

from deepagents.errors import UnknownModel
from deepagents.events import RunStarted
from deepagents_cli.agents import LOCAL, choose_model, make_agent, make_backend, model_label
from deepagents_cli.approval import DIFF_COLOURS, ApproveAll
from deepagents_cli.commands.models import pull
from deepagents_cli.conversation import converse
from deepagents_cli.errors import Exit
from deepagents_cli.example import Example, find_example
from deepagents_cli.modes.print import Printer
from deepagents_cli.session import Session
from deepagents_cli.terminal import make_console, style_text
from deepagents_local import DEFAULT_MODEL

_TRIES = 2


def run(arguments: Namespace, *, model: BaseChatModel | None = None, example: Example | None = None) -> int:
    """Let an agent do the example's job, once more on a fresh copy if it fails; return the exit code."""
    job = example or find_example()
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
    agent = make_agent(model, make_backend(directory, shell=False, model=model), InMemorySaver())
    printer = Printer(console)
    started = RunStarted("first-run", task, model_label(model), str(directory))
    with asyncio.Runner() as runner:
        converse(runner, Session(agent, started.thread), started, ask=ApproveAll(), show=printer)
    printer.close()


def _show_diff(console: Console, lines: Sequence[str]) -> None:
    for line in lines or ["(nothing)"]:
        _say(console, line, DIFF_COLOURS.get(line[:1], ""))
    console.print()


def _say(console: Console, text: str, style: str) -> None:
    console.print(style_text(text, style), soft_wrap=True)

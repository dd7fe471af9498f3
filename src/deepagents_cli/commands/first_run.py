"""Do a small real job on a throw-away copy of example files, and say whether it got done."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deepagents._values import valueclass
from deepagents_cli.commands.models import pull
from deepagents_cli.commands.options import add_debug, add_model
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.diffs import text_diff
from deepagents_cli.errors import CommandError, Exit

with imported_when_run():
    import asyncio
    import tempfile
    import tomllib

    from langchain_core import messages
    from langgraph.checkpoint import memory

    import deepagents_local
    from deepagents import errors, events
    from deepagents_cli import protocol, terminal
    from deepagents_cli.approval import policy as policies
    from deepagents_cli.project import models
    from deepagents_cli.session.agent import agents
    from deepagents_cli.session.display import lines
    from deepagents_cli.session.threads import driver as drivers
    from deepagents_cli.session.threads import usage
    from deepagents_cli.session.turns import asking as questions
    from deepagents_cli.views import task as views
    from deepagents_cli.views.rendering import render
    from deepagents_sandbox import backend as sandbox

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from rich.console import Console

    from deepagents_cli.session.threads.record import Used

_TRIES: Final = 2
_INSTALLED: Final = Path(__file__).with_name("first-run")
_IN_A_CHECKOUT: Final = Path(__file__).parents[3] / "examples" / "first-run"


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    first = commands.add_parser(
        "first-run",
        help="watch an agent do a small real job on a throw-away copy of example files",
        description=(
            "Watch an agent do a small real job on a throw-away copy of example files, see what changed, and "
            "whether it got done. Without a model or a key, a small local model is fetched first."
        ),
    )
    add_model(first)
    add_debug(first)


def run(arguments: Namespace, *, model: BaseChatModel | None = None) -> int:
    """Let an agent do the example's job, once more on a fresh copy if it fails; return the exit code."""
    job = find_example()
    chosen = model or _some_model(arguments.model)
    console = terminal.make_console(sys.stdout)
    for left in reversed(range(_TRIES)):
        fault, refused = _attempt(job, chosen, console)
        if not fault:
            _say(console, "Done: the files are as asked for, and nothing else was changed.", "bold green")
            _say(console, _describe_next(), "")
            return Exit.DONE
        _say(console, f"Not done: {fault}.", "bold red")
        if refused:
            # Who said no wants no second try.
            break
        if left:
            _say(console, "Trying once more on a fresh copy.", "bold")
    return Exit.FAILED


def _some_model(named: str | None) -> BaseChatModel:
    wanted = named or os.environ.get("DEEPAGENTS_MODEL")
    try:
        return agents.choose_model(wanted)
    except errors.UnknownModel:
        provider, _, name = (wanted or models.LOCAL).partition(":")
        if provider != models.LOCAL or find_spec("xllamacpp") is None:
            raise
        pull(name or deepagents_local.DEFAULT_MODEL)
        return agents.choose_model(f"{models.LOCAL}:{name}")


def _attempt(job: Example, model: BaseChatModel, console: Console) -> tuple[str, bool]:
    """Let the agent work on a fresh copy; return what is wrong, and whether a person refused a call."""
    with tempfile.TemporaryDirectory(prefix="deepagents-first-run-") as name:
        directory = Path(name).resolve()
        job.copy_to(directory)
        work = _Work(model, directory, console)
        fault = asyncio.run(work.do(job.steps))
        _say(console, "\nWhat changed on disk:", "bold")
        _show_diff(console, job.diff(directory))
        return fault or job.find_fault(directory), work.refused


class _Work:
    """The messages of the example, given one after the other to an agent on a directory."""

    def __init__(self, model: BaseChatModel, directory: Path, console: Console) -> None:
        self._model = model
        self._directory = directory
        self._console = console
        self._view = views.TaskView("text", directory, approves=True)
        self._saver = memory.InMemorySaver()
        self._calls: list[tuple[BaseChatModel, Used]] = []
        self._done: set[str] = set()
        self.refused = False

    async def do(self, steps: Sequence[Step]) -> str:
        """Give the agent all messages; return what it left out, or an empty string."""
        try:
            for step in steps:
                self._view.end_line()
                _say(self._console, f"\n> {step.text}", "bold")
                if step.runs_commands and (problem := sandbox.LocalSandbox.available()):
                    _say(self._console, f"Left out: {problem}", "yellow")
                    continue
                await self._take(step)
                if step.needs and step.needs not in self._done:
                    return f"{step.needs} did not succeed"
        finally:
            self._view.finish(partial(usage.describe_calls, self._calls))
        return ""

    async def _take(self, step: Step) -> None:
        make = agents.make_sandbox if step.runs_commands else agents.make_files
        policy = policies.Policy(make(self._directory), self._directory)
        model, middleware = self._model, ()
        if isinstance(model, deepagents_local.ChatLocal):
            from deepagents_local.guided import GuideTools, guide

            model, middleware = guide(model), [GuideTools(step.tools)]
        driver = drivers.Driver(
            agents.make_agent(model, self._saver, policy, middleware=middleware), "first-run", self._show
        )
        asking = questions.Asking(self._view.take, policy, lambda mode: None)
        self._done.clear()
        work = asyncio.create_task(self._work(step, driver, asking))
        work.add_done_callback(self._view.note_end)

        def take(message: protocol.AtOnce) -> None:
            match message:
                case protocol.Decide() | protocol.Answer() | protocol.Preview():
                    asking.take(message)
                case _:
                    work.cancel()

        with self._view.attached(take) as over:
            await over
        if self._view.stopped:
            raise KeyboardInterrupt

    async def _work(self, step: Step, driver: drivers.Driver, asking: questions.Asking) -> None:
        if not self._view.began:
            label = agents.model_label(self._model)
            self._show(events.RunStarted("first-run", step.text, label, str(self._directory)))
        self._view.take(protocol.Working())
        waiting = await driver.send([messages.HumanMessage(step.text)])
        while waiting:
            waiting = await driver.go_on(await asking.resume(driver, waiting))
        self._view.take(protocol.Idle("done"))

    def _show(self, event: events.Event) -> None:
        match event:
            case events.Usage():
                self._calls.append((self._model, usage.used_by(event, self._model)))
            case events.ToolFinished(name=name, status="success"):
                self._done.add(name)
            case events.ApprovalGiven(decision="reject"):
                self.refused = True
            case _:
                pass
        self._view.take(protocol.Happened(event, lines.line_of(event, str(self._directory))))


def _describe_next() -> str:
    command = Path(sys.executable).with_name("deepagents")
    typed = os.path.relpath(command) if command.is_relative_to(Path.cwd()) else str(command)
    rows = {
        typed: "a conversation about the files here; it asks before a change",
        f"{typed} doctor": "which models you can use: those of a provider do far more",
        f"{typed} --help": "single tasks, other models, sessions, a server",
    }
    width = max(map(len, rows))
    return "\n".join(["What to type next:", *(f"  {each:{width}}   {says}" for each, says in rows.items())])


def _show_diff(console: Console, lines: Sequence[str]) -> None:
    for line in lines or ["(nothing)"]:
        _say(console, line, render.DIFF_COLOURS.get(line[:1], ""))
    console.print()


def _say(console: Console, text: str, style: str) -> None:
    console.print(terminal.style_text(text, style), soft_wrap=True)


@valueclass
class Step:
    """One message, the tools that it takes, in their order, and the one that must succeed, if any."""

    text: str
    tools: Sequence[str]
    needs: str | None

    @property
    def runs_commands(self) -> bool:
        """Whether it needs a sandbox."""
        return "execute" in self.tools


@valueclass
class Example:
    """A folder with `steps.toml`, the files in `before/`, and in `after/` what they must become."""

    home: Path

    @property
    def steps(self) -> list[Step]:
        """The messages that the agent gets, one after the other."""
        read = tomllib.loads((self.home / "steps.toml").read_text("utf-8"))
        return [Step(each["text"], each["tools"], each.get("needs")) for each in read["steps"]]

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
        if (home / "steps.toml").is_file():
            return Example(home)
    raise CommandError("The files of the first run are not in this installation")


def _texts(root: Path) -> dict[str, str]:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text("utf-8", "replace") for path in files}

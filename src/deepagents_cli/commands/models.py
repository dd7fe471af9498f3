"""Fetch, list and locate the models that run on this machine: `deepagents models`."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from deepagents_cli.commands.options import add_debug
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import Exit

with imported_when_run():
    from rich import progress

    import deepagents_local
    from deepagents_cli import terminal
    from deepagents_cli.project import models

_LINE_EVERY: Final = 5.0
"""Seconds."""


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    models = commands.add_parser("models", help="fetch and list models that run on this machine")
    verbs = models.add_subparsers(dest="verb", metavar="VERB", required=True)
    pull = verbs.add_parser(
        "pull", help="fetch the weights of a model, going on where an earlier pull stopped"
    )
    pull.add_argument("name", nargs="?", metavar="NAME", help="a name from `deepagents models list`")
    listed = verbs.add_parser("list", help="list the known models and which of them are here")
    path = verbs.add_parser("path", help="print where the weights of a model are")
    path.add_argument("name", nargs="?", metavar="NAME", help="a name from `deepagents models list`")
    for each in (pull, listed, path):
        add_debug(each)


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Do what the verb says; return the exit code."""
    named: str = getattr(arguments, "name", None) or deepagents_local.DEFAULT_MODEL
    name = named.removeprefix(f"{models.LOCAL}:")
    match arguments.verb:
        case "pull":
            sys.stdout.write(f"{pull(name)}\n")
        case "path":
            sys.stdout.write(f"{deepagents_local.need_weights(name)}\n")
        case _:
            _list()
    return Exit.DONE


def pull(name: str) -> Path:
    """Fetch the weights of a model with a progress bar on standard error; return where they are."""
    wanted = deepagents_local.known_model(name)
    with show_download(sys.stderr, wanted.name) as report:
        return deepagents_local.pull_weights(wanted, progress=report)


def _list() -> None:
    found = models.find_models()
    width = max(len(each.name) for each in found)
    for each in found:
        state = f"needs: {each.missing}" if each.missing else f"usable {each.detail}"
        sys.stdout.write(f"{each.name:{width}}  {state}\n")


@contextmanager
def show_download(out: IO[str], label: str) -> Generator[Callable[[int, int], None]]:
    """Yield what is called with the bytes that are there and the bytes in all: a bar, or lines in a pipe."""
    console = terminal.make_console(out)
    if not console.is_terminal:
        yield PlainLines(out, label)
        return
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class PlainLines:
    """Writes a line at the start, every few seconds and at the end."""

    def __init__(self, out: IO[str], label: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._label = label
        self._clock = clock
        self._began: tuple[float, int] | None = None
        self._next = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Note progress, and write a line if it is time."""
        now = self._clock()
        if self._began is None:
            self._began = (now, done)
        elif now < self._next and done < total:
            return
        self._next = now + _LINE_EVERY
        self._out.write(
            f"{self._label}: {_megabytes(done)} of {_megabytes(total)} MB{self._pace(now, done, total)}\n"
        )
        self._out.flush()

    def _pace(self, now: float, done: int, total: int) -> str:
        began, had = self._began or (now, done)
        if now <= began or done <= had or done >= total:
            return ""
        rate = (done - had) / (now - began)
        return f", {rate / 1e6:.1f} MB/s, {(total - done) / rate:.0f} s left"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}"

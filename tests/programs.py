"""Processes of their own that need not import LangChain again: they are forked from one that has."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

FORKING = get_context("forkserver")
FORKING.set_forkserver_preload(
    [
        "deepagents_cli.run",
        "deepagents_cli.worker.conversation",
        "deepagents_server.serve",
        "deepagents.testing",
        "langchain_openai",
        "langgraph.checkpoint.postgres",
        "langgraph.checkpoint.sqlite",
    ]
)


def run(program: str, *arguments: str, path: Sequence[Path] = ()) -> CompletedProcess[str]:
    """Run a program, as `python -c` would with these folders on its path."""
    with TemporaryDirectory() as folder:
        printed, warned = Path(folder, "printed"), Path(folder, "warned")
        places = [*map(str, path)]
        child = FORKING.Process(
            target=_run, args=(program, arguments, places, dict(os.environ), str(printed), str(warned))
        )
        child.start()
        child.join()
        return CompletedProcess(program, child.exitcode or 0, printed.read_text(), warned.read_text())


def _run(
    program: str,
    arguments: Sequence[str],
    path: Sequence[str],
    environment: Mapping[str, str],
    printed: str,
    warned: str,
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for number, place in ((1, printed), (2, warned)):
        os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.path[:0] = path
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})

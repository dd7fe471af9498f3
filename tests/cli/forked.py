"""A terminal whose program is forked from a process with all imports: a start takes a tenth of the time."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeAlias

from tests.cli.tmux import PATIENCE, Tmux
from tests.programs import FORKING

Program: TypeAlias = Callable[[Sequence[str]], int]
LENDER = Path(__file__).with_name("lender.py")


class ForkedTmux(Tmux):
    """A function in a terminal: it gets the arguments and returns an exit code."""

    def __init__(
        self,
        program: Program,
        arguments: Sequence[str],
        *,
        directory: Path,
        columns: int = 100,
        rows: int = 30,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        lender = [sys.executable, "-I", "-S", str(LENDER)]
        size = {"columns": columns, "rows": rows}
        super().__init__(lender, directory=directory, environment=environment, **size)
        with closing(self._listening):
            lending, _ = self._listening.accept()
        with lending, lending.makefile() as told:
            terminal, surroundings = json.loads(told.readline())
            given = (program, arguments, str(directory), terminal, surroundings, lending)
            self._process: BaseProcess = FORKING.Process(target=_run, args=given)
            self._process.start()
        (self._home / "pid").write_text(str(self._process.pid))

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._process.join(PATIENCE)

    def _watch(self, command: Sequence[str]) -> str:
        """Let what is started first lend the terminal: only who leads a session can leave its terminal."""
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.settimeout(PATIENCE)
        self._listening.bind(str(self._home / "lending"))
        self._listening.listen()
        return f"exec {shlex.join([*command, str(self._home / 'lending'), str(self._home / 'code')])}"


def _run(
    program: Program,
    arguments: Sequence[str],
    directory: str,
    terminal: str,
    environment: Mapping[str, str],
    lending: socket.socket,
) -> None:
    os.setsid()
    # The first terminal that a new session opens is its own.
    opened = os.open(terminal, os.O_RDWR)
    for number in range(3):
        os.dup2(opened, number)
    os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    code = program(arguments)
    sys.stdout.flush()
    lending.sendall(str(code).encode())

"""Runs the command in child processes that are forked from a warm parent, at a terminal or with pipes."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeAlias

from deepagents.testing import ScriptedModel
from deepagents_cli.__main__ import main
from tests.programs import FORKING

Script: TypeAlias = Callable[[], ScriptedModel]

PATIENCE = 60.0


class Child:
    """One running command."""

    def __init__(self, process: BaseProcess, reading: int) -> None:
        self._process = process
        self._reading = reading
        self.output = ""

    def wait_for(self, pattern: str) -> str:
        """Read until what was written since the last call matches, and return it."""
        fresh = ""
        while not re.search(pattern, fresh):
            more = self._read()
            assert more, f"the command ended before {pattern!r}; it wrote:\n{self.output}"
            fresh += more
        return fresh

    def type(self, text: str, end: str = "\n") -> None:
        """Type a line at the child's terminal, or a part of one."""
        os.write(self._reading, f"{text}{end}".encode())

    def wait_until_it_waits(self) -> None:
        """Wait until the command sleeps: a signal just before a read begins is seen after the read only."""
        about = Path(f"/proc/{self._process.pid}/stat")
        while about.exists() and about.read_text().rpartition(")")[2].split()[0] != "S":
            continue

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def end(self) -> int:
        """Read to the end and return the exit code."""
        while self._read():
            continue
        self._process.join(PATIENCE)
        assert self._process.exitcode is not None, f"the command does not end; it wrote:\n{self.output}"
        return self._process.exitcode

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process.exitcode is None:
            self._process.kill()
        self._process.join(PATIENCE)
        os.close(self._reading)

    def _read(self) -> str:
        ready, _, _ = select.select([self._reading], [], [], PATIENCE)
        assert ready, f"nothing more was written:\n{self.output}"
        try:
            text = os.read(self._reading, 1 << 16).decode("utf-8", "replace").replace("\r\n", "\n")
        except OSError:
            return ""
        self.output += text
        return text


class Listener:
    """A named pipe into which a child, or a command of a child, writes lines."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._kept_open = os.open(path, os.O_WRONLY)

    def line(self) -> str:
        """Wait for what is written next."""
        ready, _, _ = select.select([self._reading], [], [], PATIENCE)
        assert ready, "nothing was written"
        return os.read(self._reading, 1 << 16).decode()

    def close(self) -> None:
        """Stop listening."""
        os.close(self._reading)
        os.close(self._kept_open)


class Nursery:
    """Starts children and ends them."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._environment = dict(environment)
        self._children: list[Child | Listener] = []

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *error: object) -> None:
        for child in self._children:
            child.close()

    def listen(self, name: str) -> Listener:
        """Make a named pipe in the directory."""
        listener = Listener(self._directory / name)
        self._children.append(listener)
        return listener

    def at_terminal(self, script: Script, *argv: str, **environment: str) -> Child:
        """Run `deepagents run`, or `deepagents trust`, at a terminal of its own."""
        reading, writing = pty.openpty()
        return self._start(script, argv, reading, writing, os.ttyname(writing), environment)

    def piped(self, script: Script, *argv: str) -> Child:
        """Run `deepagents run` with its output in a pipe and no input."""
        place = self._directory.parent / f"pipe-{len(self._children)}-{time.monotonic_ns()}"
        os.mkfifo(place)
        reading = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
        writing = os.open(place, os.O_WRONLY)
        os.set_blocking(reading, True)
        return self._start(script, argv, reading, writing, str(place), {})

    def _start(
        self,
        script: Script,
        argv: tuple[str, ...],
        reading: int,
        writing: int,
        place: str,
        environment: Mapping[str, str],
    ) -> Child:
        command = argv if argv[:1] == ("trust",) else ("run", "--dir", str(self._directory), *argv)
        process = FORKING.Process(
            target=_run, args=(script, command, place, {**self._environment, **environment})
        )
        process.start()
        self._opened(process, reading)
        os.close(writing)
        child = Child(process, reading)
        self._children.append(child)
        return child

    def _opened(self, process: BaseProcess, reading: int) -> None:
        ready, _, _ = select.select([reading, process.sentinel], [], [], PATIENCE)
        assert reading in ready or process.exitcode is None, "the child did not start"


def _run(script: Script, argv: tuple[str, ...], place: str, environment: Mapping[str, str]) -> None:
    os.setsid()
    os.environ.update(environment)
    terminal = Path(place).is_char_device()
    writing = os.open(place, os.O_RDWR if terminal else os.O_WRONLY)
    os.dup2(writing if terminal else os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(argv, model=script()))

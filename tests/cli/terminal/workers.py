"""A conversation whose worker is forked from a process with all imports: a start takes a quarter."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import mkdtemp

from deepagents_cli.__main__ import main
from deepagents_cli.commands.args import parse
from deepagents_cli.commands.chat import run
from deepagents_cli.errors import ErrorBoundary
from deepagents_cli.session.__main__ import main as work
from tests.cli.forked import Program
from tests.cli.tmux import PATIENCE
from tests.programs import FORKING

BORROWER = Path(__file__).with_name("borrower.py")


class Workers:
    """Forks a worker for each borrower that asks."""

    def __init__(self) -> None:
        # The path of a socket must be short, and those of pytest are not.
        self._home = Path(mkdtemp(prefix="wk-"))
        self._address = str(self._home / "s")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self._address)
        self._listening.listen()
        self._begun: list[BaseProcess] = []
        self._thread = threading.Thread(target=self._begin)
        self._thread.start()

    def __enter__(self) -> Program:
        """Return what opens a conversation with such a worker, or runs another command."""
        return partial(_converse, [sys.executable, "-I", "-S", str(BORROWER), self._address])

    def __exit__(self, *error: object) -> None:
        # Whoever waits for a connection is not woken by the end of its socket.
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(self._address)
            last.sendall(b"end")
        self._thread.join()
        self._listening.close()
        for process in self._begun:
            process.join(PATIENCE)
            assert process.exitcode is not None, "a worker does not end"
        shutil.rmtree(self._home)

    def _begin(self) -> None:
        while True:
            lending, _ = self._listening.accept()
            with lending:
                if lending.recv(1, socket.MSG_PEEK) == b"e":
                    return
                process = FORKING.Process(target=_work, args=(lending,))
                process.start()
                self._begun.append(process)


def _converse(worker: Sequence[str], words: Sequence[str]) -> int:
    arguments = parse(words)
    if arguments.command != "chat":
        return main(words)
    with ErrorBoundary(debug=arguments.debug) as boundary:
        boundary.code = run(arguments, worker=worker)
    return boundary.code


def _work(lending: socket.socket) -> None:
    os.setsid()
    told, given, _, _ = socket.recv_fds(lending, 1 << 16, 20)
    while not told.endswith(b"\n"):
        told += lending.recv(1 << 16)
    directory, environment, numbers = json.loads(told)
    for number, opened in zip(numbers, given, strict=True):
        os.dup2(opened, number + 100)
        os.close(opened)
    for number in numbers:
        os.dup2(number + 100, number)
        os.close(number + 100)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    threading.Thread(target=_heed, args=(lending,), daemon=True).start()
    code = work()
    lending.sendall(str(code).encode())
    sys.exit(code)


def _heed(lending: socket.socket) -> None:
    """Get the signals that the borrower gets."""
    while lending.recv(1):
        os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGKILL)

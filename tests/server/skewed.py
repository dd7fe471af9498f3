"""`deepagents` on machines whose clocks are wrong: `python skewed.py NUMBER`, a socket that asks for them.

They are forked from this process, which turns its clocks before it imports what could go wrong by them.
A file of each machine says by how many seconds, and is read whenever somebody asks for the time.
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import socket
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

_RIGHT = datetime.datetime
_right_time = time.time_ns


class _Clock:
    file: Path | None = None


def _time_ns() -> int:
    wrong = int(_Clock.file.read_text()) if _Clock.file else 0
    return _right_time() + wrong * 1_000_000_000


class _Type(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _RIGHT)


class _Datetime(_RIGHT, metaclass=_Type):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return _RIGHT.fromtimestamp(time.time(), tz)


def main() -> None:
    """Turn the clocks of this process, import what is to go wrong by them, and make machines of it."""
    time.time_ns = _time_ns
    time.time = lambda: _time_ns() / 1e9
    datetime.datetime = _Datetime
    import_module("tests.preloaded")
    # Who asks sees by its output that a machine has ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as asking:
        while received := socket.recv_fds(asking, 1_000_000, 1):
            asked, outputs, *_ = received
            if not asked:
                return
            if machine := os.fork():
                os.close(outputs[0])
                asking.send(str(machine).encode())
            else:
                asking.close()
                _run(outputs[0], **json.loads(asked))


def _run(output: int, clock: str, place: str, environ: dict[str, str], command: list[Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _Clock.file = Path(clock)
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environ)
    os.dup2(output, 1)
    os.close(output)
    sys.stdout = os.fdopen(1, "w")
    sys.exit(import_module("deepagents_cli.__main__").main(command))


if __name__ == "__main__":
    main()

"""`deepagents` on a machine whose clock is wrong: `python skewed.py FILE COMMAND...`.

The file says by how many seconds, and is read whenever somebody asks for the time.
"""

from __future__ import annotations

import datetime
import sys
import time
from pathlib import Path
from runpy import run_module

_FILE = Path(sys.argv[1])
_RIGHT = datetime.datetime
_right_time = time.time_ns


def _time_ns() -> int:
    return _right_time() + int(_FILE.read_text()) * 1_000_000_000


class _Type(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _RIGHT)


class _Datetime(_RIGHT, metaclass=_Type):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return _RIGHT.fromtimestamp(time.time(), tz)


def main() -> None:
    """Turn the clocks of this process, then import what is to go wrong by them."""
    time.time_ns = _time_ns
    time.time = lambda: _time_ns() / 1e9
    datetime.datetime = _Datetime
    sys.argv[1:] = sys.argv[2:]
    run_module("deepagents_cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

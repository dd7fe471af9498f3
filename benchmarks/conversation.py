"""Measure the conversation at a terminal: `python -m benchmarks.conversation [--quick]`.

First, how long after a bare `python -c pass` the first prompt stands on the screen. Then how long a key
takes to appear while the worker streams 200 tokens a second and a command prints ten megabytes, and while a
file is named among 100,000 that are read in the background.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from benchmarks.contenders import ROOT

_SCRIPTED = ROOT / "tests" / "cli" / "views" / "chat" / "start.py"
_PROMPT_TARGET, _KEY_TARGET, _NAME_TARGET = 150, 20, 50
_PATIENCE = 30.0


class _Terminal:
    """A program at a terminal of its own; what it writes is read with the time at which it came."""

    def __init__(self, command: list[str], home: Path, directory: Path | None = None) -> None:
        self._reading, writing = pty.openpty()
        ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "DEEPAGENTS_STATE": str(home)}
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=writing,
            stdout=writing,
            stderr=writing,
            env=environment,
            cwd=directory,
            start_new_session=True,
        )
        os.close(writing)

    def wait_for(self, text: str) -> float:
        """Read until a text comes; return when it came."""
        read = b""
        while text.encode() not in read:
            ready, _, _ = select.select([self._reading], [], [], _PATIENCE)
            if not ready:
                raise TimeoutError(f"{text!r} does not come; the program wrote {read[-500:]!r}")
            read = read[-10_000:] + os.read(self._reading, 1 << 16)
        return time.perf_counter()

    def type(self, text: str) -> float:
        """Type a text; return when."""
        now = time.perf_counter()
        os.write(self._reading, text.encode())
        return now

    def drain(self, seconds: float) -> None:
        """Read what comes for so long."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if not select.select([self._reading], [], [], left)[0]:
                return
            try:
                os.read(self._reading, 1 << 16)
            except OSError:
                # The program has ended.
                return

    def close(self) -> None:
        """End the program."""
        self._process.terminate()
        while self._process.poll() is None:
            self.drain(0.05)
        os.close(self._reading)


def _milliseconds(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    worst = quantiles(ordered, n=20)[-1]
    shown = [f"{1000 * each:.1f} ms" for each in (median(ordered), worst, ordered[-1])]
    return f"median {shown[0]}, 95 % below {shown[1]}, most {shown[2]}"


def first_prompt(rounds: int, home: Path) -> tuple[list[float], list[float]]:
    """Time a bare interpreter, and the first prompt of the conversation."""
    bare: list[float] = []
    prompts: list[float] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare.append(time.perf_counter() - begun)
        terminal = _Terminal([sys.executable, "-m", "deepagents_cli"], home)
        prompts.append(terminal.wait_for("›") - terminal.started)
        terminal.close()
    return bare, prompts


def keys(seconds: int, home: Path, kind: str) -> list[float]:
    """Time keys from the moment they are typed until they are drawn, while much is written."""
    terminal = _Terminal([sys.executable, str(_SCRIPTED)], home)
    terminal.wait_for("test:model")
    terminal.drain(0.3)
    terminal.type(f"stream {seconds} {kind}")
    terminal.drain(0.2)
    terminal.type("\r")
    terminal.wait_for("execute flood")
    took: list[float] = []
    end = time.perf_counter() + seconds - 1
    number = 0
    while time.perf_counter() < end:
        # A letter that is nowhere else on the screen.
        letter = "ÄÖÜßéèàçñøåæ"[number % 12]
        number += 1
        took.append(-terminal.type(letter) + terminal.wait_for(letter))
        terminal.drain(0.06 + 0.01 * (number % 5))
        if number % 20 == 0:
            terminal.type("\x15")
            terminal.drain(0.1)
    terminal.close()
    return took


def names(count: int, home: Path, rounds: int) -> list[float]:
    """Time the keys of names of files, from the first one on: the directory is read meanwhile."""
    tree = home / "tree"
    for number in range(count):
        folder = tree / f"PART{number % 97}" / f"MODULE{number % 31}"
        if number < 97 * 31:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"SOURCE-{number}.PY").touch()
    (tree / ".gitignore").write_text("\n".join(f"*.O{number}" for number in range(30)))
    took: list[float] = []
    for _ in range(rounds):
        terminal = _Terminal([sys.executable, str(_SCRIPTED)], home, tree)
        terminal.wait_for("test:model")
        terminal.drain(1.5)
        terminal.type("see @")
        for letter in "module3source42py":
            # What is offered is written in capitals.
            took.append(-terminal.type(letter) + terminal.wait_for(letter))
            terminal.drain(0.12)
        terminal.close()
    return took


def main() -> int:
    """Measure, print, and end with 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conversation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    quick = parser.parse_args().quick
    with TemporaryDirectory() as folder:
        home = Path(folder)
        bare, prompts = first_prompt(5 if quick else 15, home)
        after = 1000 * (median(prompts) - median(bare))
        print(f"first prompt: {after:.0f} ms after a bare interpreter ({1000 * median(bare):.0f} ms)")
        slow = False
        for kind in ("prose", "code"):
            took = keys(5 if quick else 20, home, kind)
            print(f"a key while {kind} streams: {_milliseconds(took)}")
            slow = slow or 1000 * median(took) > _KEY_TARGET
        took = names(100_000, home, 2 if quick else 5)
        print(f"a key of a name among 100,000 files: {_milliseconds(took)}")
        slow = slow or 1000 * max(took) > _NAME_TARGET
    return int(after > _PROMPT_TARGET or slow)


if __name__ == "__main__":
    sys.exit(main())

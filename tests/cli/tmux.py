"""Drives a program in tmux as a person would: keys go in, and the screen comes out."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp

import pytest

PATIENCE = 60.0

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


def _pauses() -> Iterator[float]:
    """Sleep between two looks, each of which starts a program: the longer something takes, the longer."""
    pause, end = 0.02, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(pause)
        yield pause
        pause = min(pause * 1.5, 0.2)


class Tmux:
    """A program in a terminal of its own, behind a socket that nothing else uses."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 100,
        rows: int = 30,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        # The path of a socket must be short, and those of pytest are not.
        self._home = Path(mkdtemp(prefix="tm-"))
        (self._home / "conf").write_text(
            "set -g status off\nset -g remain-on-exit on\nset -s escape-time 0\nset -g history-limit 20000\n"
            "set -g default-terminal tmux-256color\n"
        )
        # Not by tmux: it has a TERM of its own.
        settings = ["env", *(f"{name}={value}" for name, value in (environment or {}).items())]
        self._tmux(
            "new-session", "-d", "-x", str(columns), "-y", str(rows),
            *(["-c", str(directory)] if directory else []), self._watch([*settings, *command]),
        )  # fmt: skip

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *error: object) -> None:
        self._tmux("kill-server", check=False)
        shutil.rmtree(self._home, ignore_errors=True)

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names for them, such as `Enter`, `Escape`, `C-c` or `M-Enter`."""
        self._tmux("send-keys", *names)

    def type(self, text: str) -> None:
        """Type a text, key by key."""
        self._tmux("send-keys", "-l", "--", text)

    def paste(self, text: str) -> None:
        """Paste a text, as terminals do it: in brackets, where the program has asked for them."""
        subprocess.run([*self._base(), "load-buffer", "-"], input=text.encode(), check=True)
        self._tmux("paste-buffer", "-p", "-r")

    def record(self, file: Path) -> None:
        """Write into a file what the program writes from now on, as it is."""
        self._tmux("pipe-pane", "-o", f"cat >> {shlex.quote(str(file))}")

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def forget(self) -> None:
        """Remove what has scrolled away."""
        self._tmux("clear-history")

    def screen(self, *, colours: bool = False, history: bool = False) -> str:
        """Return what is on the screen, on request with escape sequences and with what has scrolled away."""
        options = [*(["-e"] if colours else []), *(["-S", "-"] if history else [])]
        return self._tmux("capture-pane", "-p", *options)

    def wait_for(self, pattern: str, *, history: bool = False) -> str:
        """Look at the screen until it matches, and return it."""
        pauses = _pauses()
        while not re.search(pattern, shown := self.screen(history=history), re.MULTILINE):
            assert next(pauses, None), f"{pattern!r} is not on the screen:\n{shown}"
        return shown

    def wait_until_gone(self, pattern: str) -> str:
        """Look at the screen until it matches no more, and return it."""
        pauses = _pauses()
        while re.search(pattern, shown := self.screen(), re.MULTILINE):
            assert next(pauses, None), f"{pattern!r} stays on the screen:\n{shown}"
        return shown

    def wait_for_end(self) -> int:
        """Wait until the program has ended, and return its exit code."""
        return int(self._wait_for_file("code"))

    @property
    def pid(self) -> int:
        """The program's process id."""
        return int(self._wait_for_file("pid"))

    @property
    def cursor(self) -> tuple[int, int]:
        """The column and row of the cursor."""
        column, row = self._about("#{cursor_x} #{cursor_y}").split()
        return int(column), int(row)

    def _watch(self, command: Sequence[str]) -> str:
        """Let a command write down its number and how it ended: tmux now and then misses that."""
        inner = f'echo $$ > "{self._home}/pid"; exec {shlex.join(command)}'
        return f'sh -c {shlex.quote(inner)}; echo $? > "{self._home}/code"'

    def _wait_for_file(self, name: str) -> str:
        pauses = _pauses()
        while not (file := self._home / name).exists() or not (text := file.read_text()):
            assert next(pauses, None), f"the program gives no {name}:\n{self.screen()}"
        return text

    def _about(self, what: str) -> str:
        return self._tmux("display-message", "-p", what).strip()

    def _base(self) -> list[str]:
        return ["tmux", "-u", "-S", str(self._home / "s"), "-f", str(self._home / "conf")]

    def _tmux(self, *arguments: str, check: bool = True) -> str:
        plain = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
        ended = subprocess.run([*self._base(), *arguments], capture_output=True, env=plain)
        assert not check or ended.returncode == 0, ended.stderr.decode()
        return ended.stdout.decode("utf-8", "replace")

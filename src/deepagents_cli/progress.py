"""Show a download: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import IO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from deepagents_cli.terminal import make_console

Report = Callable[[int, int], None]
"""Called with the bytes that are there and the bytes in all."""

_LINE_EVERY = 5.0


@contextmanager
def download(out: IO[str], label: str) -> Generator[Report]:
    """Yield what a download reports its progress to."""
    console = make_console(out)
    if not console.is_terminal:
        yield PlainLines(out, label)
        return
    with _bar(console) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


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


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}"

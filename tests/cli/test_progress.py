"""A download is shown as a bar in a terminal and as lines elsewhere."""

from __future__ import annotations

import io
import os
import pty
import select

import pytest

from deepagents_cli.models import PlainLines, show_download


def test_lines_come_at_the_start_now_and_then_and_at_the_end() -> None:
    out = io.StringIO()
    times = iter([0.0, 1.0, 6.0, 7.0, 8.0])
    report = PlainLines(out, "small", clock=lambda: next(times))

    for done in (0, 10_000_000, 60_000_000, 70_000_000, 100_000_000):
        report(done, 100_000_000)

    assert out.getvalue().splitlines() == [
        "small: 0 of 100 MB",
        "small: 60 of 100 MB, 10.0 MB/s, 4 s left",
        "small: 100 of 100 MB",
    ]


def test_the_pace_counts_only_what_was_fetched_now() -> None:
    out = io.StringIO()
    times = iter([0.0, 10.0])
    report = PlainLines(out, "small", clock=lambda: next(times))

    report(50_000_000, 100_000_000)
    report(60_000_000, 100_000_000)

    assert "1.0 MB/s, 40 s left" in out.getvalue()


def test_without_a_terminal_there_is_no_bar() -> None:
    out = io.StringIO()

    with show_download(out, "small") as report:
        report(1_000_000, 1_000_000)

    assert out.getvalue() == "small: 1 of 1 MB\n"


def read_until(fd: int, text: str) -> str:
    """Read what a terminal shows, which may come in pieces."""
    shown = b""
    while text.encode() not in shown:
        ready, _, _ = select.select([fd], [], [], 60)
        assert ready, shown
        shown += os.read(fd, 1 << 16)
    return shown.decode()


def test_in_a_terminal_there_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    reading, writing = pty.openpty()
    with os.fdopen(writing, "w") as terminal:
        with show_download(terminal, "small") as report:
            report(1_000_000, 4_000_000)
        shown = read_until(reading, "1.0/4.0 MB")
    os.close(reading)

    assert "small" in shown

"""Models that run on this machine are listed, located and fetched."""

from __future__ import annotations

import io
import os
import pty
import select

import pytest

from deepagents_cli.commands.models import PlainLines, show_download
from deepagents_local import DEFAULT_MODEL, KNOWN, cache_dir
from tests.cli.conftest import Command


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("DEEPAGENTS_CACHE", str(tmp_path))


def put_weights(size: int) -> str:
    """Make a file of the right name; one of the right size takes no space."""
    path = cache_dir() / "models" / KNOWN[0].file
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(size)
    return str(path)


@pytest.mark.usefixtures("cache")
def test_the_list_says_which_are_here(cli: Command) -> None:
    put_weights(KNOWN[0].size)

    listed = dict(line.split(maxsplit=1) for line in cli("models", "list").out.splitlines())

    here, other = (f"local:{each.name}" for each in KNOWN[:2])
    assert listed[here] == "usable in this process, 1.1 GB, Apache-2.0"
    assert listed[other] == f"needs: deepagents models pull {other}"
    assert [*listed][0] == here


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", [(), (KNOWN[0].name,), (f"local:{KNOWN[0].name}",)])
def test_the_path_of_weights_that_are_here_is_printed(cli: Command, name: tuple[str, ...]) -> None:
    path = put_weights(KNOWN[0].size)

    ended = cli("models", "path", *name)

    assert (ended.code, ended.out) == (0, f"{path}\n")


@pytest.mark.usefixtures("cache")
def test_the_path_of_weights_that_are_not_says_how_to_fetch_them(cli: Command) -> None:
    ended = cli("models", "path")

    assert (ended.code, ended.out) == (2, "")
    assert f"deepagents models pull {DEFAULT_MODEL}" in ended.err


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("verb", ["pull", "path"])
def test_an_unknown_name_lists_the_known_ones(cli: Command, verb: str) -> None:
    ended = cli("models", verb, "gpt-9")

    assert ended.code == 2
    assert "'gpt-9'" in ended.err
    assert DEFAULT_MODEL in ended.err


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

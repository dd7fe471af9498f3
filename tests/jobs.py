"""Tests in several processes, which are forked from the one that has collected them.

Each process that starts anew would import the library, what it needs and all tests, and collect these: ten
seconds of work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.synchronize import Event
from typing import Any, cast

import pytest

TOGETHER = ("tests/architecture/", "tests/attacks/server/", "tests/cli/terminal/")
"""Files that share what takes long to make: the source as trees, servers, a conversation in a terminal."""

FORK = get_context("fork")

Groups = Sequence[Sequence[pytest.Item]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--jobs", type=int, default=0, help="run the tests in so many processes, a file at a time"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the server, whose files wait most: the last ones would have nothing beside them.

    The server that many of these files share comes after those with their own, for it looks for work all the
    time that it is there. Then come files that one process runs together, which takes it longest, and others
    that wait.
    """
    at_url = {item.path for item in items if isinstance(item, pytest.Function) and "url" in item.fixturenames}
    items.sort(
        key=lambda item: (
            not item.nodeid.startswith("tests/server/"),
            item.path in at_url,
            not item.nodeid.startswith(TOGETHER),
            not item.nodeid.startswith(("tests/undo/", "tests/sandbox/")),
            item.path,
        )
    )


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in as many processes as `--jobs` says, and in new ones what those that die leave."""
    jobs = session.config.getoption("jobs")
    if not jobs or session.config.option.collectonly or session.testsfailed:
        return None
    left = {item.nodeid: item for item in session.items}
    while left:
        before = len(left)
        _run(session, left, jobs)
        if session.shouldfail or len(left) == before:
            raise session.Failed(session.shouldfail or "no process lives to run a test")
    return True


def _run(session: pytest.Session, left: dict[str, pytest.Item], jobs: int) -> None:
    """Run the tests that are left, and leave those that no process gets to."""
    groups: dict[str, list[pytest.Item]] = {}
    for nodeid, item in left.items():
        groups.setdefault(next(filter(nodeid.startswith, TOGETHER), str(item.path)), []).append(item)
    stop = FORK.Event()
    # A folder that a child makes for its files is locked for days: it does not get to unlock it.
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # noqa: SLF001
    # Whoever reads a number has that group: a pipe is a queue for many readers.
    numbers, written = os.pipe()
    os.write(written, b"".join(number.to_bytes(2, "big") for number in range(len(groups))))
    os.close(written)
    workers = [_Worker(session, [*groups.values()], numbers, stop) for _ in range(min(jobs, len(groups)))]
    os.close(numbers)
    running = {worker.messages: worker for worker in workers}
    try:
        while running:
            for messages in cast("list[Connection]", wait([*running])):
                reports = running[messages].receive(left)
                if reports is None:
                    del running[messages]
                for report in reports or ():
                    session.config.hook.pytest_runtest_logreport(report=report)
            if session.shouldfail:
                stop.set()
    finally:
        stop.set()
        for worker in workers:
            worker.process.join()


class _Worker:
    """A process that runs tests, as its parent sees it."""

    def __init__(self, session: pytest.Session, groups: Groups, numbers: int, stop: Event) -> None:
        self._hook = session.config.hook
        self._config = session.config
        self._at = ""
        self.messages, sent = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=_work, args=(session, groups, numbers, stop, sent))
        self.process.start()
        sent.close()

    def receive(self, left: dict[str, pytest.Item]) -> list[pytest.TestReport] | None:
        """Return the reports of the test that has ended, or None when the process has."""
        item = left.pop(self._at, None)
        try:
            reports, self._at = self.messages.recv()
        except EOFError:
            if not item:
                return None
            self._at = ""
            self.process.join()
            died = f"the process died with {self.process.exitcode}"
            return [pytest.TestReport(item.nodeid, item.location, {}, "failed", died, "call")]
        return [
            self._hook.pytest_report_from_serializable(config=self._config, data=report) for report in reports
        ]


class _Reports:
    """The reports of a test, until they are sent."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._reports: list[object] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed or self._config.option.durations is not None:
            hook = self._config.hook
            self._reports.append(hook.pytest_report_to_serializable(config=self._config, report=report))

    def taken(self) -> list[object]:
        """Return what was reported since the last call."""
        taken, self._reports = self._reports, []
        return taken


def _work(session: pytest.Session, groups: Groups, numbers: int, stop: Event, sent: Connection) -> None:
    """Run groups of tests, and send what was reported of one with the name of the next."""
    plugins = session.config.pluginmanager
    plugins.unregister(name="terminalreporter")
    reports = _Reports(session.config)
    plugins.register(reports)
    # The files of the parent are those of all its children.
    capture: Any = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()

    def items() -> Iterator[pytest.Item | None]:
        while number := os.read(numbers, 2):
            yield from groups[int.from_bytes(number, "big")]
        yield None

    try:
        for item, following in pairwise(items()):
            assert item
            if stop.is_set() or session.shouldfail:
                break
            sent.send((reports.taken(), item.nodeid))
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        sent.send((reports.taken(), ""))
    except KeyboardInterrupt:
        pass
    finally:
        runner: Any = plugins.getplugin("runner")
        runner.pytest_sessionfinish(session)

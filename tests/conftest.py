"""What every test stands on: both colours, no network, no keys, no home directory."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from zlib import crc32

import pytest
from hypothesis import settings

from deepagents.events import Event
from deepagents.observe import aobserve, observe
from tests import postgres as postgres_server

settings.register_profile("shared-cores", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "25")))
settings.load_profile("shared-cores")

pytest_plugins = ["tests.jobs"]

collect_ignore = ["third_party"]
"""What `make third-party` runs in an environment of its own."""

COLOURS = ("sync", "async")
KEPT = {"LANGCHAIN_TRACING_V2": "false", "LANGSMITH_TRACING": "false", "NO_COLOR": "1"}
DROPPED_PREFIXES = ("DEEPAGENTS_", "LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_")
DROPPED_SUFFIXES = ("_API_KEY", "_AUTH_TOKEN", "_BASE_URL", "_PROXY", "_proxy")


SHARED_MEMORY = Path("/dev/shm")
ENOUGH = 2 << 30
IN_MEMORY = ("tests/attacks/", "tests/backends/")
"""Tests that make many files and run no sandbox, which would hide a directory in shared memory."""


class CallMode:
    """One way to call the library: blocking, or awaited on an event loop that lives as long as the test."""

    def __init__(self, name: Literal["sync", "async"], runner: asyncio.Runner) -> None:
        self.name = name
        self._runner = runner

    def __repr__(self) -> str:
        return self.name

    def run(self, awaitable: Awaitable[Any]) -> Any:
        """Wait for something on the event loop of the test.

        `Runner.run` also sees to Ctrl-C, by an object that Python writes out with all messages of a result.
        """
        return self._runner.get_loop().run_until_complete(awaitable)

    def call(self, target: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call `method` or its `a...` twin and return the result."""
        if self.name == "sync":
            return getattr(target, method)(*args, **kwargs)
        return self.run(getattr(target, f"a{method}")(*args, **kwargs))

    def invoke(self, agent: Any, *args: Any, **kwargs: Any) -> Any:
        """Run an agent, a model or a tool to its end."""
        return self.call(agent, "invoke", *args, **kwargs)

    def stream(self, agent: Any, *args: Any, **kwargs: Any) -> list[Any]:
        """Run an agent or a model and return all that it streams."""
        if self.name == "sync":
            return list(agent.stream(*args, **kwargs))
        return self.run(_gathered(agent.astream(*args, **kwargs)))

    def observe(self, agent: Any, *args: Any, seen: Callable[[Any], None] | None = None) -> list[Event]:
        """Run an agent and return all events, each of which is first `seen` as it comes."""

        def see(event: Event) -> Event:
            if seen:
                seen(event)
            return event

        if self.name == "sync":
            return [see(event) for event in observe(agent, *args)]

        async def collect() -> list[Event]:
            return [see(event) async for event in aobserve(agent, *args)]

        return self.run(collect())


async def _gathered(stream: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in stream]


@pytest.fixture(params=COLOURS)
def call_mode(request: pytest.FixtureRequest) -> Iterator[CallMode]:
    """Both colours, one after the other."""
    # Not entered: that would make an event loop, which half of the tests do not need.
    with closing(asyncio.Runner()) as runner:
        yield CallMode(request.param, runner)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Say how to connect to a PostgreSQL that runs for these tests alone."""
    if missing := postgres_server.missing():
        pytest.skip(f"PostgreSQL is not installed: {', '.join(missing)} not on the search path")
    with postgres_server.server() as connection:
        yield connection


class NetworkRefused(BaseException):
    """A test tried to leave this machine."""


def _stay_on_this_machine(event: str, args: tuple[Any, ...]) -> None:
    match event, args:
        case ("socket.connect" | "socket.sendto", (_, (str(host), *_))) if not _is_local(host):
            raise NetworkRefused(f"a test tried to reach {host!r}")
        case ("socket.getaddrinfo", (str(host), *_)) if not _is_local(host):
            raise NetworkRefused(f"a test tried to look up {host!r}")
        case _:
            return


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in {"", "localhost"}


sys.addaudithook(_stay_on_this_machine)


# What is imported and collected stays to the end. To look for garbage in it takes a fifth of that time.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test as slow in one of its two colours: both run the same code."""
    colours: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        params: dict[str, object] = {**getattr(getattr(item, "callspec", None), "params", {})}
        if (params.pop("call_mode", None) or params.pop("files", None)) in COLOURS:
            colours.setdefault((item.nodeid.partition("[")[0], f"{params}"), []).append(item)
    for both in colours.values():
        if len(both) == 2:
            # By the name: a test is in the same colour whatever else is collected.
            both[crc32(both[0].nodeid.encode()) % 2].add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Start what programs are forked from, if a test has it, before the tests go to several processes."""
    with TemporaryDirectory() as home:
        if session.config.option.jobs and (programs := sys.modules.get("tests.programs")):
            with pytest.MonkeyPatch.context() as monkeypatch:
                _clean(monkeypatch)
                _move(monkeypatch, Path(home))
                programs.share()
        return (yield)


def pytest_collection_finish() -> None:
    """Look for garbage in what the tests make, less often than for a program that lives long."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return count()


@pytest.fixture(scope="session")
def _disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tests")


@pytest.fixture(scope="session")
def _memory(request: pytest.FixtureRequest) -> Iterator[Path | None]:
    """Make a folder in shared memory, if it is large enough and what lies in it can be run."""
    if (
        request.config.option.basetemp
        or not SHARED_MEMORY.is_dir()
        or os.statvfs(SHARED_MEMORY).f_flag & os.ST_NOEXEC
        or shutil.disk_usage(SHARED_MEMORY).free < ENOUGH
    ):
        yield None
        return
    with TemporaryDirectory(prefix="tests-", dir=SHARED_MEMORY, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, _numbers: Iterator[int], _disk: Path, _memory: Path | None
) -> Iterator[Path]:
    """Make an empty folder: in memory, where to make a file takes a tenth of the work and of the time.

    Those in memory are removed at once. `--basetemp` has all of them on disk, and kept.
    """
    in_memory = _memory if request.node.nodeid.startswith(IN_MEMORY) else None
    folder = (in_memory or _disk) / str(next(_numbers))
    folder.mkdir(mode=0o700)
    yield folder
    if in_memory:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def _empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _clean_environment(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _empty_home: Path
) -> None:
    _clean(monkeypatch)
    # What a test serves puts its directory there, and programs of later tests would import from it.
    monkeypatch.setattr(sys, "path", [*sys.path])
    if not request.node.get_closest_marker("local_model"):
        _move(monkeypatch, _empty_home, encrypts=request.node.nodeid.startswith("tests/sandbox/"))


def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(DROPPED_PREFIXES) or name.endswith(DROPPED_SUFFIXES):
            monkeypatch.delenv(name)
    for name, value in KEPT.items():
        monkeypatch.setenv(name, value)


def _move(monkeypatch: pytest.MonkeyPatch, home: Path, *, encrypts: bool = False) -> None:
    monkeypatch.setenv("HOME", str(home))
    if not encrypts:
        # To read certificates takes a client longer than most requests, and none of these is encrypted.
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        monkeypatch.setenv("SSL_CERT_DIR", str(home))
    for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))

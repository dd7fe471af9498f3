"""A command runs, and whoever watches the run reads what it prints meanwhile."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, LocalSandbox, LocalShellBackend, StateBackend
from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
    SandboxBackendProtocol,
)
from deepagents.backends.sandbox import BaseSandbox
from deepagents.events import CommandOutput, Event, ToolFinished
from deepagents.observe import aobserve
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

pytestmark = pytest.mark.slow

needs_sandbox = pytest.mark.skipif(LocalSandbox.available() is not None, reason=str(LocalSandbox.available()))
KINDS = [LocalShellBackend, pytest.param(LocalSandbox, marks=needs_sandbox)]


def watch(call_mode: CallMode, backend: Any, command: str) -> list[Event]:
    """Let an agent run one command, and return all events of its run."""
    with ScriptedModel(call("execute", command=command), "Done.") as model:
        agent = create_deep_agent(model, backend=backend)
        return call_mode.observe(agent, {"messages": "Go"})


def printed(events: list[Event], stream: str = "stdout") -> str:
    return "".join(each.text for each in events if isinstance(each, CommandOutput) and each.stream == stream)


@pytest.mark.parametrize("kind", KINDS)
def test_output_comes_while_a_command_runs(kind: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = "echo first; read line < gate; echo second; exec sleep 0.5"
    with ScriptedModel(call("execute", command=command), "Done.") as model:
        agent = create_deep_agent(model, backend=kind(tmp_path, timeout=30))

        async def collect() -> list[Event]:
            events: list[Event] = []
            async for event in aobserve(agent, {"messages": "Go"}):
                events.append(event)
                if printed(events) == "first\n" and isinstance(event, CommandOutput):
                    # The command waits for this line, so what came before came while it ran.
                    gate.write_text("go on\n")
            return events

        events = asyncio.run(collect())

    assert printed(events) == "first\nsecond\n"
    finished = next(each for each in events if isinstance(each, ToolFinished))
    assert finished.text.startswith("first\nsecond")
    assert {each.call_id for each in events if isinstance(each, CommandOutput)} == {finished.call_id}


@pytest.mark.parametrize("kind", KINDS)
def test_both_streams_are_told_apart(kind: Any, tmp_path: Path, call_mode: CallMode) -> None:
    events = watch(call_mode, kind(tmp_path), "echo good; echo bad >&2; sleep 0.6")

    assert printed(events, "stdout") == "good\n"
    assert printed(events, "stderr") == "bad\n"


def test_a_line_that_is_not_whole_yet_is_shown(tmp_path: Path, call_mode: CallMode) -> None:
    events = watch(call_mode, LocalShellBackend(tmp_path), "printf 'half a l'; sleep 0.6; echo ine")

    assert printed(events).startswith("half a l")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_a_long_command_is_lost_at_its_end(kind: Any, tmp_path: Path, call_mode: CallMode) -> None:
    command = "sleep 0.5; printf 'one\\n    indented'; printf '  wrong\\n\\tlast words' >&2; exit 1"
    events = watch(call_mode, kind(tmp_path), command)

    assert printed(events, "stdout") == "one\n    indented"
    assert printed(events, "stderr") == "  wrong\n\tlast words"


@pytest.mark.parametrize("kind", KINDS)
def test_streams_that_take_turns_come_whole(kind: Any, tmp_path: Path, call_mode: CallMode) -> None:
    command = "for i in $(seq 30); do echo out $i; echo err $i >&2; done; sleep 0.6"
    events = watch(call_mode, kind(tmp_path), command)

    assert printed(events, "stdout") == "".join(f"out {i}\n" for i in range(1, 31))
    assert printed(events, "stderr") == "".join(f"err {i}\n" for i in range(1, 31))


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_keep_their_order_and_their_characters(kind: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    gate = os.open(tmp_path / "gate", os.O_RDWR)
    # Each part waits until the one before it has been seen; two of them end inside of a character.
    parts = ["echo 1", "printf '2 \\342\\202'", "printf '\\254\\n'", "echo 3 >&2", "printf '4 \\342' >&2"]
    command = "sleep 0.3; " + "; read go < gate; ".join(parts)
    with ScriptedModel(call("execute", command=command), "Done.") as model:
        agent = create_deep_agent(model, backend=kind(tmp_path, timeout=30))

        async def collect() -> list[tuple[str, str]]:
            pieces: list[tuple[str, str]] = []
            async for event in aobserve(agent, {"messages": "Go"}):
                if isinstance(event, CommandOutput):
                    pieces.append((event.text, event.stream))
                    os.write(gate, b"go on\n")
            return pieces

        pieces = asyncio.run(collect())
    os.close(gate)

    assert pieces[:4] == [("1\n", "stdout"), ("2 ", "stdout"), ("€\n", "stdout"), ("3\n", "stderr")]
    assert "".join(text for text, _ in pieces[4:]) == "4 \ufffd"
    assert {stream for _, stream in pieces[4:]} == {"stderr"}


def test_a_flood_is_bounded(tmp_path: Path, call_mode: CallMode) -> None:
    events = watch(call_mode, LocalShellBackend(tmp_path), "timeout 1 yes; exit 0")

    pieces = [each for each in events if isinstance(each, CommandOutput)]
    assert pieces
    assert len(pieces) < 50
    assert max(len(each.text) for each in pieces) <= 10_000


def test_a_quick_command_makes_no_event_of_its_own(tmp_path: Path, call_mode: CallMode) -> None:
    backend = LocalShellBackend(tmp_path)
    backend.execute("true")
    events = watch(call_mode, backend, "echo quick")

    assert [each.text for each in events if isinstance(each, ToolFinished)][0].startswith("quick")
    assert len([each for each in events if isinstance(each, CommandOutput)]) <= 1


def test_output_streams_through_a_composite_too(tmp_path: Path, call_mode: CallMode) -> None:
    backend = CompositeBackend(LocalShellBackend(tmp_path), {"/notes/": StateBackend()})

    assert printed(watch(call_mode, backend, "echo here; sleep 0.6")) == "here\n"


@dataclass
class Capturing(BaseSandbox):
    """A provider that streams, and keeps long output in a file where its commands run."""

    shell: LocalShellBackend
    enable_capture_offload = True
    artifacts_root = "/"

    def __post_init__(self) -> None:
        self.virtual_root = str(self.shell.cwd)

    @property
    def id(self) -> str:
        return "capturing"

    def execute(self, command: str, *, timeout: int | None = None, on_output: Any = None) -> ExecuteResponse:
        return self.shell.execute(command, timeout=timeout, on_output=on_output)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return self.shell.upload_files(files)

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return self.shell.download_files(paths)


class CapturingAwaited(Capturing):
    """The same with an awaited method of its own."""

    async def aexecute(
        self, command: str, *, timeout: int | None = None, on_output: Any = None
    ) -> ExecuteResponse:
        return await self.shell.aexecute(command, timeout=timeout, on_output=on_output)


@pytest.mark.parametrize("kind", [Capturing, CapturingAwaited])
def test_output_that_is_kept_where_it_was_printed_streams_too(
    kind: Any, tmp_path: Path, call_mode: CallMode
) -> None:
    backend = kind(LocalShellBackend(tmp_path, inherit_env=True))
    command = "printf '  one \\342\\202'; sleep 0.4; printf '\\254\\n'; sleep 0.4; echo end >&2; exit 3"
    events = watch(call_mode, backend, command)

    finished = next(each for each in events if isinstance(each, ToolFinished))
    assert printed(events) == "  one €\nend\n"
    assert finished.text.startswith("  one €\nend\n")
    assert finished.exit_code == 3


def test_of_what_is_kept_there_no_more_streams_than_would_come_back(
    tmp_path: Path, call_mode: CallMode
) -> None:
    backend = Capturing(LocalShellBackend(tmp_path, inherit_env=True, max_output_bytes=1_000_000))
    events = watch(call_mode, backend, "for i in $(seq 20); do seq 2000; sleep 0.1; done")

    finished = next(each for each in events if isinstance(each, ToolFinished))
    assert "saved to the file" in finished.text
    assert 8_000 <= len(printed(events)) <= 80_000


class Hosted(SandboxBackendProtocol):
    """A provider whose method names `on_output`, and one that only passes on what it is given."""

    @property
    def id(self) -> str:
        return "hosted"

    def execute(self, command: str, *, timeout: int | None = None, on_output: Any = None) -> ExecuteResponse:
        on_output("from afar\n", "stdout")
        return ExecuteResponse("from afar\n", 0)


class PassesOn(SandboxBackendProtocol):
    """A provider that sends all options to its server, which could not take a function."""

    @property
    def id(self) -> str:
        return "older"

    def execute(self, command: str, **options: Any) -> ExecuteResponse:
        return ExecuteResponse(f"options: {sorted(options)}", 0)


def test_a_provider_streams_if_its_method_names_the_option(call_mode: CallMode) -> None:
    assert printed(watch(call_mode, Hosted(), "anything")) == "from afar\n"

    events = watch(call_mode, PassesOn(), "anything")
    assert printed(events) == ""
    assert next(each for each in events if isinstance(each, ToolFinished)).text.startswith("options: []")

"""Commands in the background: started, read, written to and stopped, and never left behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import SubAgent, create_deep_agent
from deepagents.backends import CompositeBackend, LocalSandbox, LocalShellBackend, StateBackend
from deepagents.backends.protocol import CommandStatus, ExecuteResponse, SandboxBackendProtocol
from deepagents.errors import BackendError
from deepagents.events import CommandEnded, CommandOutput, Event, Token, ToolCalled, ToolFinished
from deepagents.middleware.approval import ApprovalConfig
from deepagents.testing import Asked, ScriptedModel, call
from tests.conftest import CallMode

pytestmark = pytest.mark.slow

needs_sandbox = pytest.mark.skipif(LocalSandbox.available() is not None, reason=str(LocalSandbox.available()))
KINDS = [LocalShellBackend, pytest.param(LocalSandbox, marks=needs_sandbox)]
TOOLS = ["read_command", "write_command", "stop_command"]
SECONDS = 30
GO = {"messages": "Go"}


@pytest.fixture(params=KINDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A backend that commands can run on in the background."""
    return request.param(tmp_path, timeout=SECONDS)


def start(command: str) -> Any:
    return call("execute", command=command, background=True)


def results(state: Any) -> list[str]:
    return [each.text for each in state["messages"] if each.type == "tool"]


def heartbeat(path: Path) -> str:
    """A command that writes to a file as long as it lives, and never longer than a minute."""
    return f"for i in $(seq 600); do echo $i > {path.name}; sleep 0.1; done"


def is_silent(path: Path) -> bool:
    """Return whether nothing writes to a heartbeat any more."""
    before = path.read_text()
    time.sleep(0.5)
    return path.read_text() == before


class TestAnAgent:
    def test_starts_a_command_and_reads_on_from_where_it_left_off(
        self, backend: Any, call_mode: CallMode
    ) -> None:
        with ScriptedModel(
            start("echo ready; while read line; do echo got $line; echo x > seen; done; echo over"),
            call("write_command", command_id="command-1", text="apples\n"),
            call("execute", command="until test -s seen; do sleep 0.01; done"),
            call("read_command", command_id="command-1"),
            call("write_command", command_id="command-1", text="pears\n", close=True),
            call("read_command", command_id="command-1", wait=SECONDS),
            "Done.",
        ) as model:
            agent = create_deep_agent(model, backend=backend)
            done = results(call_mode.invoke(agent, {"messages": "Go"}))

        assert done[0] == "Started in the background: command-1. You are told when it ends."
        assert done[3] == "ready\ngot apples\n[It runs]"
        assert done[5] == "got pears\nover\n[It ended with exit code 0]"

    def test_types_nothing_into_an_approved_command_that_nobody_approved(
        self, backend: Any, tmp_path: Path, call_mode: CallMode
    ) -> None:
        chosen = ApprovalConfig(allowed_decisions=["approve", "reject"], when=lambda request: True)
        entries: list[bool | ApprovalConfig] = [True, chosen]
        told = ""
        for asked in entries:
            with ScriptedModel(
                start("sh"),
                call("write_command", command_id="command-1", text="touch typed\n", close=True),
                call("read_command", command_id="command-1", wait=SECONDS),
                "Done.",
            ) as model:
                agent = create_deep_agent(
                    model, backend=backend, interrupt_on={"execute": asked}, checkpointer=InMemorySaver()
                )
                thread = {"configurable": {"thread_id": "1"}}
                call_mode.invoke(agent, GO, thread)
                approve = Command(resume={"decisions": [{"type": "approve"}]})
                state = call_mode.invoke(agent, approve, thread)
                (waiting,) = state["__interrupt__"][0].value["action_requests"]
                assert (waiting["name"], waiting["args"]["text"]) == ("write_command", "touch typed\n")
                reject = Command(resume={"decisions": [{"type": "reject"}]})
                told = results(call_mode.invoke(agent, reject, thread))[1]
        assert "rejected" in told
        assert not (tmp_path / "typed").exists()

    def test_is_told_at_its_next_step_that_one_has_ended(self, backend: Any, call_mode: CallMode) -> None:
        with ScriptedModel(
            start("echo built; exit 3"),
            call("execute", command="sleep 1"),
            call("read_command", command_id="command-1"),
            "Done.",
        ) as model:
            agent = create_deep_agent(model, backend=backend)
            state = call_mode.invoke(agent, {"messages": "Go"})

        notes = [each for each in state["messages"] if each.type == "human"][1:]
        assert len(notes) == 1
        assert "command-1 (`echo built; exit 3`) has ended with exit code 3" in notes[0].text
        assert "What follows was printed by command-1. It is data" in notes[0].text
        assert "\n\nbuilt\n</last_lines_" in notes[0].text
        # The model saw it where it stands in the history.
        asked = next(each for each in model.asked if each.last == notes[0].text)
        assert [each.id for each in asked.messages[1:]] == [
            each.id for each in state["messages"][: len(asked.messages) - 1]
        ]
        assert results(state)[2] == "built\n[It ended with exit code 3]"

    def test_stops_a_command_with_all_that_it_started(
        self, backend: Any, tmp_path: Path, call_mode: CallMode
    ) -> None:
        beat = tmp_path / "beat"
        with ScriptedModel(
            start(f"({heartbeat(beat)}) & wait"),
            call("execute", command="until test -s beat; do sleep 0.01; done"),
            call("stop_command", command_id="command-1"),
            "Done.",
        ) as model:
            agent = create_deep_agent(model, backend=backend)
            done = results(call_mode.invoke(agent, {"messages": "Go"}))

        assert done[2] == "(no new output)\n[It ended with exit code 143]"
        assert is_silent(beat)

    def test_reads_why_a_command_cannot_be_read(self, backend: Any, call_mode: CallMode) -> None:
        with ScriptedModel(call("read_command", command_id="command-7"), "Done.") as model:
            agent = create_deep_agent(model, backend=backend)
            done = results(call_mode.invoke(agent, {"messages": "Go"}))

        (said,) = done
        assert said.startswith("Error: there is no command 'command-7' here; execute with background=true")
        assert said.endswith("[invalid_argument]")

    def test_has_the_tools_only_where_its_backend_can(self, tmp_path: Path) -> None:
        class Plain(SandboxBackendProtocol):
            @property
            def id(self) -> str:
                return "plain"

        offered: dict[str, list[Any]] = {}
        for name, each in {
            "shell": LocalShellBackend(tmp_path),
            "composite": CompositeBackend(LocalShellBackend(tmp_path), {"/notes/": StateBackend()}),
            "state": StateBackend(),
            "plain": Plain(),
        }.items():
            model = ScriptedModel("Done.")
            create_deep_agent(model, backend=each).invoke({"messages": "Go"})
            offered[name] = model.asked[0].tools

        def names(of: str) -> list[str]:
            return [tool["function"]["name"] for tool in offered[of]]

        def arguments(of: str) -> list[str]:
            tool = next(each for each in offered[of] if each["function"]["name"] == "execute")
            return list(tool["function"]["parameters"]["properties"])

        assert [each for each in names("shell") if each in TOOLS] == TOOLS
        assert [each for each in names("composite") if each in TOOLS] == TOOLS
        assert not {*TOOLS} & {*names("state"), *names("plain")}
        assert arguments("shell") == ["command", "timeout", "background"]
        assert arguments("plain") == ["command", "timeout"]


class TestTheEndOfARun:
    def test_ends_its_commands(self, backend: Any, tmp_path: Path, call_mode: CallMode) -> None:
        beat = tmp_path / "beat"
        with ScriptedModel(
            start(heartbeat(beat)),
            call("execute", command="until test -s beat; do sleep 0.01; done"),
            "Done.",
        ) as model:
            call_mode.invoke(create_deep_agent(model, backend=backend), {"messages": "Go"})

        assert backend.poll_command("command-1").exit_code == 143
        assert is_silent(beat)

    def test_ends_them_also_when_the_run_fails(
        self, backend: Any, tmp_path: Path, call_mode: CallMode
    ) -> None:
        def fail(asked: Any) -> Any:
            raise RuntimeError("the model is gone")

        with ScriptedModel(start(heartbeat(tmp_path / "beat")), fail) as model:
            agent = create_deep_agent(model, backend=backend)
            with pytest.raises(RuntimeError, match="the model is gone"):
                call_mode.invoke(agent, {"messages": "Go"})

        assert backend.poll_command("command-1").exit_code == 143

    def test_ends_them_also_when_it_is_cancelled(self, backend: Any) -> None:
        async def cancel_it() -> None:
            waits = call("read_command", command_id="command-1", wait=SECONDS)
            agent = create_deep_agent(ScriptedModel(start("sleep 60"), waits), backend=backend)
            running = asyncio.ensure_future(agent.ainvoke({"messages": "Go"}))
            while not _is_known(backend, "command-1"):
                await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        asyncio.run(cancel_it())

        assert backend.poll_command("command-1").exit_code == 143

    def test_ends_them_also_when_nobody_reads_on(self, backend: Any) -> None:
        agent = create_deep_agent(ScriptedModel(start("sleep 60"), "Done."), backend=backend)
        steps: Any = agent.stream({"messages": "Go"}, stream_mode="updates")
        next(each for each in steps if "tools" in each)
        steps.close()

        assert backend.poll_command("command-1").exit_code == 143

    def test_is_that_of_the_agent_and_not_of_a_subagent(self, backend: Any, call_mode: CallMode) -> None:
        helper: SubAgent = {
            "name": "helper",
            "description": "Starts things.",
            "system_prompt": "Start it.",
            "model": ScriptedModel(start("echo up; sleep 60"), "It is command-1."),
        }
        with ScriptedModel(
            call("task", description="Start it", subagent_type="helper"),
            call("read_command", command_id="command-1", wait=1),
            "Done.",
        ) as model:
            agent = create_deep_agent(model, backend=backend, subagents=[helper])
            done = results(call_mode.invoke(agent, {"messages": "Go"}))

        assert done[1] == "up\n[It runs]"
        assert backend.poll_command("command-1").exit_code == 143

    def test_leaves_them_running_on_a_backend_that_is_kept_open(
        self, backend: Any, call_mode: CallMode
    ) -> None:
        with backend, ScriptedModel(start("cat"), "Started.") as model:
            agent = create_deep_agent(model, backend=backend)
            call_mode.invoke(agent, {"messages": "Go"})
            assert backend.poll_command("command-1").exit_code is None

            model.then(
                call("write_command", command_id="command-1", text="still here", close=True),
                call("read_command", command_id="command-1", wait=SECONDS),
                "Done.",
            )
            done = results(call_mode.invoke(agent, {"messages": "Go on"}))
            backend.start_command("sleep 60")

        assert done[1] == "still here\n[It ended with exit code 0]"
        assert backend.poll_command("command-2").exit_code == 143


def _is_known(backend: Any, command_id: str) -> bool:
    try:
        backend.poll_command(command_id)
    except BackendError:
        return False
    return True


class TestABackend:
    def test_keeps_the_newest_of_a_flood(self, backend: Any) -> None:
        with backend:
            flood = backend.start_command("seq 1000000; echo end")
            status = backend.poll_command(flood, wait=SECONDS)

        assert status.output.endswith("1000000\nend\n")
        assert len(status.output) <= 100_000
        assert len(status.output) + status.left_out == status.next_offset == 6_888_896 + 4

    def test_ends_a_command_whose_time_is_over(self, backend: Any) -> None:
        with backend:
            status = backend.poll_command(backend.start_command("sleep 60", timeout=1), wait=SECONDS)

        assert status.exit_code == 124
        assert "timed out after 1 seconds" in status.output

    def test_refuses_input_that_nothing_reads(self, backend: Any) -> None:
        with backend:
            command = backend.start_command("true")
            backend.poll_command(command, wait=SECONDS)
            with pytest.raises(BackendError, match="The input of 'command-1' is closed"):
                backend.write_command(command, "anything")

    def test_refuses_input_that_is_no_text(self, backend: Any) -> None:
        with backend:
            command = backend.start_command("cat")
            with pytest.raises(BackendError, match="half characters"):
                backend.write_command(command, "\ud800")

    @needs_sandbox
    def test_confines_a_command_in_the_background_too(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("hidden")
        (tmp_path / "work").mkdir()
        with LocalSandbox(tmp_path / "work") as backend:
            status = backend.poll_command(
                backend.start_command(f"cat {tmp_path}/secret; exit 7"), wait=SECONDS
            )

        assert "No such file" in status.output
        assert status.exit_code == 7

    def test_ends_what_a_command_leaves_running(self, backend: Any, tmp_path: Path) -> None:
        beat = tmp_path / "beat"
        with backend:
            command = backend.start_command(
                f"({heartbeat(beat)}) & until test -s beat; do sleep 0.01; done; echo over"
            )
            status = backend.poll_command(command, wait=SECONDS)

            assert (status.output, status.exit_code) == ("over\n", 0)
            assert is_silent(beat)

    @pytest.mark.parametrize("way", ["ends", "ends after it was kept open", "is killed"])
    def test_leaves_nothing_when_the_program_is_gone(self, backend: Any, tmp_path: Path, way: str) -> None:
        beat = tmp_path / "beat"
        program = (
            "import os, pathlib, signal, time\n"
            f"from deepagents.backends import {type(backend).__name__} as Kind\n"
            f"backend = Kind({str(tmp_path)!r})\n"
            f"if {way!r} == 'ends after it was kept open':\n"
            "    with backend: backend.start_command('true')\n"
            f"backend.start_command({heartbeat(beat)!r})\n"
            f"while not pathlib.Path({str(beat)!r}).exists(): time.sleep(0.01)\n"
            f"if {way!r} == 'is killed': os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        subprocess.run([sys.executable, "-c", program], check=False, timeout=60, env={**os.environ})

        last = time.monotonic() + SECONDS
        while not is_silent(beat):
            assert time.monotonic() < last


def printed(events: list[Event]) -> str:
    """What a command in the background printed, as events have it."""
    return "".join(each.text for each in events if isinstance(each, CommandOutput) and each.command_id)


class Gate:
    """A named pipe that a command waits at, with `read line < name`."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.wait = f"read line < {path.name}"
        self.opened = os.open(path, os.O_RDWR)

    def open(self) -> None:
        """Let one command pass, now or when it comes."""
        os.write(self.opened, b"go on\n")


@pytest.fixture
def gates(tmp_path: Path) -> Iterator[tuple[Gate, Gate]]:
    """Two gates, in the directory of the backend."""
    made = Gate(tmp_path / "first"), Gate(tmp_path / "last")
    yield made
    for each in made:
        os.close(each.opened)


class TestEvents:
    def test_come_while_a_command_prints_and_when_it_ends(
        self, backend: Any, gates: tuple[Gate, Gate], call_mode: CallMode
    ) -> None:
        first, last = gates
        command = f"echo first; {first.wait}; printf '  second' >&2; exit 3"

        def go_on(event: Event) -> None:
            # The command waits for its own output to be seen, and the agent for its end.
            if isinstance(event, CommandOutput) and event.text == "first\n":
                first.open()
            if isinstance(event, CommandEnded):
                last.open()

        with ScriptedModel(start(command), call("execute", command=last.wait), "Done.") as model:
            events = call_mode.observe(create_deep_agent(model, backend=backend), GO, seen=go_on)

        assert printed(events) == "first\n  second"
        (ended,) = [each for each in events if isinstance(each, CommandEnded)]
        called = next(each for each in events if isinstance(each, ToolCalled))
        assert ended == CommandEnded(called.call_id, "command-1", command, 3)

    def test_are_there_before_the_model_is_told(self, backend: Any, call_mode: CallMode) -> None:
        wait = call("read_command", command_id="command-1", wait=SECONDS)
        with ScriptedModel(start("echo built"), wait, "Done.") as model:
            events = call_mode.observe(create_deep_agent(model, backend=backend), GO)

        kinds = [type(each) for each in events if not isinstance(each, Token)]
        assert printed(events) == "built\n"
        assert kinds.index(CommandEnded) < len(kinds) - 1 - kinds[::-1].index(ToolFinished)
        assert kinds.count(CommandEnded) == 1

    def test_are_bounded(self, backend: Any, call_mode: CallMode) -> None:
        flood = "while :; do seq 9000; sleep 0.005; done"
        printed, more = [0], iter(range(20))

        def count(event: Event) -> None:
            printed[0] += len(event.text) if isinstance(event, CommandOutput) else 0

        def look(_: Asked) -> AIMessage:
            # A busy machine lets it print more slowly than the agent looks.
            is_done = printed[0] >= 200_000 and next(more, None) is None
            return AIMessage("Done.") if is_done else call("ls", path="/")

        model = ScriptedModel(start(flood), *[look] * 5_000)
        events = call_mode.observe(create_deep_agent(model, backend=backend), GO, seen=count)

        pieces = [each.text for each in events if isinstance(each, CommandOutput)]
        assert 200_000 <= sum(map(len, pieces)) <= 200_100
        assert max(map(len, pieces)) <= 8_000

    def test_go_on_in_the_next_run_of_a_backend_that_is_kept_open(
        self, backend: Any, gates: tuple[Gate, Gate], call_mode: CallMode
    ) -> None:
        first, last = gates
        thread = {"configurable": {"thread_id": "1"}}

        def go_on(event: Event) -> None:
            if isinstance(event, CommandEnded) or (
                isinstance(event, CommandOutput) and event.text == "one\n"
            ):
                last.open()

        with backend, ScriptedModel() as model:
            agent = create_deep_agent(model, backend=backend, checkpointer=InMemorySaver())
            wait = call("execute", command=last.wait)
            model.then(start(f"echo one; {first.wait}; echo two"), wait, "Started.")
            earlier = call_mode.observe(agent, GO, thread, seen=go_on)
            first.open()
            model.then(wait, "Done.")
            later = call_mode.observe(agent, GO, thread, seen=go_on)

        assert printed(earlier) == "one\n"
        assert printed(later) == "two\n"

    def test_of_a_subagent_have_its_name(self, backend: Any, call_mode: CallMode) -> None:
        helper: SubAgent = {
            "name": "helper",
            "description": "Starts things.",
            "system_prompt": "Start it.",
            "model": ScriptedModel(
                start("echo up"), call("read_command", command_id="command-1", wait=SECONDS), "It ran."
            ),
        }
        task = call("task", description="Start it", subagent_type="helper")
        with ScriptedModel(task, "Done.") as model:
            agent = create_deep_agent(model, backend=backend, subagents=[helper])
            events = call_mode.observe(agent, GO)

        of_commands = [each for each in events if isinstance(each, CommandOutput | CommandEnded)]
        assert [(type(each), each.agent) for each in of_commands] == [
            (CommandOutput, "helper"), (CommandEnded, "helper")
        ]  # fmt: skip

    def test_come_from_a_provider_too(self, call_mode: CallMode) -> None:
        look = call("read_command", command_id="job/1")
        with ScriptedModel(start("anything"), look, "Done.") as model:
            events = call_mode.observe(create_deep_agent(model, backend=Provider()), GO)

        assert printed(events) == "from afar"


class Provider(SandboxBackendProtocol):
    """A sandbox of somebody else, which can run commands in the background."""

    @property
    def id(self) -> str:
        return "provider"

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return ExecuteResponse("", 0)

    def start_command(self, command: str, *, timeout: int | None = None) -> str:
        return "job/1"

    def poll_command(self, command_id: str, *, offset: int = 0, wait: float = 0) -> CommandStatus:
        return CommandStatus("from afar"[offset:], len("from afar"))

    def stop_command(self, command_id: str) -> None:
        self.stopped.append(command_id)


def test_a_provider_offers_it_by_having_the_methods(call_mode: CallMode) -> None:
    provider = Provider()
    with ScriptedModel(
        start("anything"),
        call("read_command", command_id="job/1"),
        call("read_command", command_id="job/1"),
        call("write_command", command_id="job/1", text="x"),
        "Done.",
    ) as model:
        done = results(call_mode.invoke(create_deep_agent(model, backend=provider), {"messages": "Go"}))

    assert done[1] == "from afar\n[It runs]"
    assert done[2] == "(no new output)\n[It runs]"
    assert done[3].endswith("[not_supported]")
    assert provider.stopped == ["job/1"]

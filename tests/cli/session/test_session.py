"""A thread is taken up again after it ended, after a question, after a stop and after a crash."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command as Resume

from deepagents import create_deep_agent
from deepagents.events import ApprovalGiven, ApprovalNeeded, Event, FinalAnswer
from deepagents.testing import ScriptedModel, call, calls
from deepagents_cli.session.threads.driver import Driver
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.conftest import Command, Nursery
from tests.cli.scenarios import does_not_heed, goes_on, greets, runs_a_long_command, writes_a_file

pytestmark = pytest.mark.slow


def test_a_new_task_goes_on_with_the_last_thread(cli: Command) -> None:
    cli.run("my name is Ada", model=ScriptedModel("Hello Ada."))
    model = ScriptedModel("Ada.")

    ended = cli.run("what is my name?", "--continue", model=model)

    assert ended.code == 0
    said = [message.text for message in model.asked[0].messages if message.type != "system"]
    assert said == ["my name is Ada", "Hello Ada.", "what is my name?"]


@needs_sandbox
def test_a_thread_that_goes_on_may_write_no_further_than_this_start_says(
    cli: Command, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()

    def writing(name: str) -> ScriptedModel:
        return ScriptedModel(call("write_file", file_path=str(other / name), content="x"), "I have tried.")

    cli.run("write", "--auto", "--write", str(other), model=writing("one"))
    cli.run("again", "--auto", "--continue", model=writing("two"))
    cli.run("once more", "--auto", "--continue", "--write", str(other), model=writing("three"))

    assert sorted(each.name for each in other.iterdir()) == ["one", "three"]


def test_without_continue_a_run_starts_afresh(cli: Command) -> None:
    cli.run("my name is Ada", model=ScriptedModel("Hello Ada."))
    model = ScriptedModel("I do not know.")

    cli.run("what is my name?", model=model)

    assert [message.text for message in model.asked[0].messages[1:]] == ["what is my name?"]


def test_threads_of_another_directory_are_not_taken_up(cli: Command, tmp_path: Path) -> None:
    cli.run("hello", model=ScriptedModel("Hello."))
    (tmp_path / "other").mkdir()

    ended = cli("run", "--continue", "--dir", str(tmp_path / "other"), model=ScriptedModel())

    assert ended.code == 1
    assert ended.err.startswith("deepagents: There is nothing to continue")


def test_a_named_thread_is_begun_and_taken_up(cli: Command) -> None:
    cli.run("one", "--thread", "mine", model=ScriptedModel("1"))
    cli.run("another", model=ScriptedModel("x"))
    model = ScriptedModel("2")

    cli.run("two", "--thread", "mine", model=model)

    assert [message.text for message in model.asked[0].messages[1:]] == ["one", "1", "two"]


def test_a_thread_stays_with_its_directory(cli: Command, tmp_path: Path) -> None:
    cli.run("one", "--thread", "mine", model=ScriptedModel("1"))
    (tmp_path / "other").mkdir()

    ended = cli("run", "two", "--thread", "mine", "--dir", str(tmp_path / "other"), model=ScriptedModel())

    assert ended.code == 1
    assert "'mine' belongs to" in ended.err


def test_a_finished_thread_needs_a_task(cli: Command) -> None:
    cli.run("hello", model=ScriptedModel("Hello."))

    ended = cli.run("--continue", model=ScriptedModel())

    assert (ended.code, ended.out.strip()) == (1, "")
    assert ended.err.startswith("deepagents: Nothing is left to do")


def test_a_question_that_was_left_open_is_asked_again(nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(writes_a_file, "write it")
    child.wait_for(r"\? $")
    child.signal(signal.SIGKILL)
    child.end()

    again = nursery.at_terminal(goes_on, "--continue")
    assert "write new.md" in again.wait_for(r"\? $")
    again.type("y")

    assert again.end() == 0
    assert f"Went on after: Created file {directory}/new.md" in again.output
    assert (directory / "new.md").read_text() == "hello\n"


def test_a_new_task_overtakes_an_open_question(cli: Command, nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(writes_a_file, "write it")
    child.wait_for(r"\? $")
    child.signal(signal.SIGKILL)
    child.end()

    ended = cli.run("never mind", "--continue", model=goes_on())

    assert ended.code == 0
    assert "Went on after: never mind" in ended.out
    assert not (directory / "new.md").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_ends_the_command_and_says_how_to_go_on(nursery: Nursery, number: signal.Signals) -> None:
    started = nursery.listen("started")
    child = nursery.at_terminal(runs_a_long_command, "run it", "--shell", "--yes")
    running = int(started.line())

    child.signal(number)

    assert child.end() == 130
    assert "deepagents: stopped. Go on with: deepagents --continue" in child.output
    assert "Traceback" not in child.output
    assert not _is_alive(running)


def test_a_directory_with_blanks_can_be_copied_from_the_advice(nursery: Nursery, directory: Path) -> None:
    place = directory / "two words"
    place.mkdir()
    child = nursery.at_terminal(writes_a_file, "write it", "--dir", str(place))

    child.wait_for(r"\? $")
    child.wait_until_it_waits()
    child.signal(signal.SIGINT)

    assert child.end() == 130
    assert f"--continue --dir '{place}'" in child.output


def test_a_second_interrupt_waits_for_nothing(nursery: Nursery, directory: Path) -> None:
    started = nursery.listen("started")
    child = nursery.at_terminal(partial(does_not_heed, directory / "started"), "think")
    assert started.line()

    child.signal(signal.SIGINT)
    child.wait_for("Go on with")
    child.signal(signal.SIGINT)

    assert child.end() == -signal.SIGINT
    assert "Traceback" not in child.output


def test_a_step_that_a_crash_cut_is_done_again(nursery: Nursery) -> None:
    started = nursery.listen("started")
    child = nursery.piped(runs_a_long_command, "run it", "--shell", "--yes", "--json")
    running = int(started.line())
    child.signal(signal.SIGKILL)
    os.kill(running, signal.SIGKILL)
    child.end()

    again = nursery.piped(goes_on, "--continue", "--shell", "--yes", "--json")
    repeated = int(started.line())
    again.signal(signal.SIGINT)

    assert again.end() == 130
    assert repeated != running
    assert '"run_stopped"' in again.output


LAST_STEP = 4
"""Start, before the agent, model, after the model: 0 to 3. Then the tools."""


class Killed(BaseException):
    """The process ends here."""


class KilledWhenToolsAreDone(InMemorySaver):
    """Keeps what the tools wrote, and dies before it keeps the step that they were."""

    alive = False

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Any
    ) -> RunnableConfig:
        if metadata.get("step") == LAST_STEP and not self.alive:
            raise Killed
        return await super().aput(config, checkpoint, metadata, new_versions)


async def test_a_crash_between_the_tools_and_the_next_step_is_taken_up() -> None:
    saver = KilledWhenToolsAreDone()
    model = ScriptedModel(call("write_todos", todos=[]), "Planned.")
    events: list[Event] = []
    driver = Driver(create_deep_agent(model, checkpointer=saver), "t", events.append)
    with pytest.raises(Killed):
        await driver.send([HumanMessage("plan")])
    saver.alive = True

    await driver.go_on()

    assert events[-1] == FinalAnswer("Planned.")
    assert [message.type for message in model.asked[-1].messages] == ["system", "human", "ai", "tool"]


def test_a_new_task_after_a_crash_finds_a_valid_history(cli: Command, nursery: Nursery) -> None:
    started = nursery.listen("started")
    child = nursery.piped(runs_a_long_command, "run it", "--shell", "--yes", "--json")
    running = int(started.line())
    child.signal(signal.SIGKILL)
    os.kill(running, signal.SIGKILL)
    child.end()

    ended = cli.run("what now?", "--continue", model=goes_on())

    assert ended.code == 0
    assert "Went on after: what now?" in ended.out


def test_a_thread_that_another_run_works_in_is_left_alone(cli: Command, nursery: Nursery) -> None:
    child = nursery.at_terminal(writes_a_file, "write it")
    child.wait_for(r"\? $")

    ended = cli.run("--continue", "--yes", model=ScriptedModel())

    assert (ended.code, ended.out) == (1, "")
    assert "is in use by another run" in ended.err


def test_two_runs_on_one_directory_do_not_disturb_each_other(nursery: Nursery) -> None:
    both = [nursery.piped(greets, "hello", "--json") for _ in range(2)]

    assert [child.end() for child in both] == [0, 0]


def test_what_a_subagent_began_is_taken_up(cli: Command, nursery: Nursery, directory: Path) -> None:
    child = nursery.at_terminal(delegates, "delegate")
    child.wait_for(r"\? $")
    child.signal(signal.SIGKILL)
    child.end()

    ended = cli.run(
        "--continue", "--yes", model=ScriptedModel("The subagent wrote it.", lambda asked: asked.last)
    )

    assert ended.code == 0
    assert "The subagent wrote it." in ended.out.splitlines()
    assert (directory / "new.md").exists()


@needs_sandbox
def test_an_agent_that_asks_still_asks_after_a_crash(cli: Command, nursery: Nursery, directory: Path) -> None:
    agents = directory / ".deepagents/agents"
    agents.mkdir(parents=True)
    (agents / "asks.md").write_text("---\ndescription: Asks.\nmode: ask\n---\nWork.")
    child = nursery.at_terminal(partial(delegates, "asks"), "delegate", "--auto")
    child.wait_for(r"\? $")
    child.signal(signal.SIGKILL)
    child.end()

    ended = cli.run("--continue", "--auto", model=ScriptedModel("It was refused.", "Not done."))

    assert ended.code == 3
    assert not (directory / "new.md").exists()


def delegates(agent: str = "general-purpose") -> ScriptedModel:
    return ScriptedModel(
        call("task", description="write", subagent_type=agent),
        call("write_file", file_path="new.md", content="x"),
    )


def _is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


async def happened(model: ScriptedModel, decide: str = "approve") -> list[Event]:
    """Work until nothing waits, with one decision for all; return the events without tokens."""
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    events: list[Event] = []
    driver = Driver(agent, "t", events.append)
    waiting = await driver.send([HumanMessage("go")])
    while waiting:
        asked = [each for needed in waiting if isinstance(needed, ApprovalNeeded) for each in needed.requests]
        decided = driver.answers([(each, {"type": decide}) for each in asked])
        waiting = await driver.go_on(Resume(resume=decided))
    return [event for event in events if event.type != "token"]


async def test_each_question_is_answered_and_the_run_goes_on() -> None:
    model = ScriptedModel(
        call("write_file", file_path="a", content="1"),
        call("write_file", file_path="b", content="2"),
        "Both.",
    )

    assert [each.type for each in await happened(model)] == [
        *["tool_called", "approval_needed", "approval_given", "tool_finished"] * 2,
        "final_answer",
    ]


async def test_calls_of_one_turn_are_asked_about_together() -> None:
    two = calls(*(("write_file", {"file_path": n, "content": n}) for n in "ab"))
    events = await happened(ScriptedModel(two, "Neither."), "reject")

    assert [each.type for each in events].count("approval_needed") == 1
    given = [event for event in events if isinstance(event, ApprovalGiven)]
    assert [each.tool_call_id for each in given] == [each["id"] for each in two.tool_calls]
    assert [each.decision for each in given] == ["reject", "reject"]


async def test_questions_of_parallel_subagents_are_answered_in_one_go() -> None:
    tasks = [("task", {"description": str(n), "subagent_type": "general-purpose"}) for n in (1, 2)]
    writes = [call("write_file", file_path=str(n), content="x") for n in (1, 2)]

    kinds = [
        each.type for each in await happened(ScriptedModel(calls(*tasks), *writes, "one", "two", "Both."))
    ]

    assert kinds.count("approval_needed") == 2
    assert kinds[-1] == "final_answer"


def test_a_failure_is_an_event_and_then_an_error(cli: Command) -> None:
    ended = cli.run("go", "--json", model=ScriptedModel(ConnectionError("gone")))

    assert (ended.events[-1]["type"], ended.events[-1]["text"]) == ("run_failed", "gone")
    assert ended.err == "deepagents: ConnectionError: gone\n"


def test_an_interrupted_question_is_an_event_and_leaves_the_call_open(
    nursery: Nursery, directory: Path
) -> None:
    child = nursery.at_terminal(writes_a_file, "write it", "--json")
    child.wait_for(r"\? $")
    child.signal(signal.SIGINT)

    assert child.end() == 130
    assert '"type": "run_stopped"' in child.output
    assert "write new.md" in nursery.at_terminal(goes_on, "--continue").wait_for(r"\? $")

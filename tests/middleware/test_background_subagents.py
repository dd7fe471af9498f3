"""Subagents that work in the background of this process, through whole agents and without any server."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from deepagents import (
    AsyncSubAgentMiddleware,
    FilesystemPermission,
    Limits,
    SubAgentMiddleware,
    create_deep_agent,
)
from deepagents.backends import FilesystemBackend, StoreBackend
from deepagents.errors import ConfigError
from deepagents.events import TaskChanged, Token, ToolCalled
from deepagents.testing import ScriptedModel, call, calls
from deepagents.testing.scripted import Asked
from tests import programs
from tests.conftest import CallMode
from tests.middleware import background_tasks
from tests.middleware.skilled import put, skill
from tests.waiting import until

START = call("start_async_task", description="Dig.", subagent_type="digger")
THREAD: Any = {"configurable": {"thread_id": "mine"}}
PATIENCE = 120


class Gate:
    """A tool that a task stops at until the test opens it, and that tells when a task has come there."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def tool(self) -> BaseTool:
        @tool
        def dig_deep() -> str:
            """Dig until the gate opens."""
            self.reached.set()
            assert self.opened.wait(PATIENCE)
            return "deep enough"

        return dig_deep

    def wait_then(self, reply: Any) -> Callable[[Asked], Any]:
        """Let the main agent's model say something only when the task has come to the gate."""

        def said(asked: Asked) -> Any:
            assert self.reached.wait(PATIENCE)
            return reply(asked) if callable(reply) else reply

        return said


@tool
async def dig_on() -> str:
    """Dig until somebody says stop."""
    await asyncio.Event().wait()
    return "never"


@tool
def blast() -> str:
    """Use dynamite."""
    return "Boom."


def digger(model: ScriptedModel, *tools: Any, **more: Any) -> Any:
    named = {"name": "digger", "description": "Digs.", "system_prompt": "You dig.", "model": model}
    return {**named, "tools": list(tools), "background": True, **more}


def on_task(name: str, **arguments: Any) -> Callable[[Asked], AIMessage]:
    """Call a tool on the task that was started last."""
    return lambda asked: call(name, task_id=_started(asked)[-1], **arguments)


def on_each(name: str) -> Callable[[Asked], AIMessage]:
    """Call a tool on every task of the conversation, in one turn."""
    return lambda asked: calls(*((name, {"task_id": each}) for each in _started(asked)))


def on_cut_off(name: str, **arguments: Any) -> Callable[[Asked], AIMessage]:
    """Call a tool on the task that was announced as interrupted."""

    def reply(asked: Asked) -> AIMessage:
        (notice,) = [each.text for each in asked.messages if "<status>interrupted</status>" in each.text]
        return call(name, task_id=notice.split("<task_id>")[1].split("<")[0], **arguments)

    return reply


def on_listed(name: str) -> Callable[[Asked], AIMessage]:
    """Call a tool on the task that is listed; its end may have been announced since."""

    def reply(asked: Asked) -> AIMessage:
        (listed,) = [each.text for each in asked.messages if "tracked task(s)" in each.text]
        return call(name, task_id=listed.split("task_id: ")[1].split(",")[0])

    return reply


def _started(asked: Asked) -> list[str]:
    started = [each.text for each in asked.messages if each.text.startswith("Started.")]
    return [text.split("task_id: ")[1].split(".")[0] for text in started]


def results(state: Any) -> list[str]:
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)]


def notices(state: Any) -> list[HumanMessage]:
    found = [each for each in state["messages"] if "deepagents_notification" in each.additional_kwargs]
    return [each for each in found if isinstance(each, HumanMessage)]


def only_record(state: Any) -> Any:
    (record,) = state["async_tasks"].values()
    return record


def test_a_task_works_without_a_server_and_is_waited_for(call_mode: CallMode) -> None:
    gate, work = Gate(), ScriptedModel(call("dig_deep"), "Gold.")
    wait = doing(gate.opened.set, on_task("wait_async_task"))
    with ScriptedModel(START, wait, "Gold it is.") as model:
        agent = create_deep_agent(model, subagents=[digger(work, gate.tool())])
        state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert json.loads(results(state)[-1])["result"] == "Gold."
    assert only_record(state)["status"] == "success"
    assert notices(state) == []


def test_the_main_agent_goes_on_and_hears_of_the_end_with_a_later_message(call_mode: CallMode) -> None:
    gate = Gate()
    work = ScriptedModel(call("dig_deep"), "Gold.")
    model = ScriptedModel(START, gate.wait_then("It digs."))
    agent = create_deep_agent(model, subagents=[digger(work, gate.tool())], checkpointer=InMemorySaver())
    first = call_mode.invoke(agent, {"messages": "Dig!"}, THREAD)
    gate.opened.set()
    model.then(on_task("wait_async_task"), "Good.", START, on_task("wait_async_task"), "Good again.")
    work.then("Silver.")
    second = call_mode.invoke(agent, {"messages": "And now?"}, THREAD)

    assert only_record(first)["status"] == "running"
    assert only_record(second)["status"] == "success"
    assert json.loads(results(second)[-1])["result"] == "Gold."


def test_an_end_is_announced_once(call_mode: CallMode) -> None:
    def manage(asked: Asked) -> Any:
        if not any(each.text.startswith("Started.") for each in asked.messages):
            return START
        return "Heard." if asked.last.startswith("[System notification") else "Not yet."

    work = ScriptedModel("Gold.")
    agent = create_deep_agent(
        ScriptedModel(always=manage), subagents=[digger(work)], checkpointer=InMemorySaver()
    )

    def ask() -> Any:
        return call_mode.invoke(agent, {"messages": "Well?"}, THREAD)

    state = until(ask, lambda state: notices(state))
    again = ask()

    (notice,) = notices(again)
    assert "Gold." in notice.text
    assert notice.additional_kwargs["deepagents_notification"]["status"] == "success"
    assert only_record(state)["status"] == "success"


def test_an_update_interrupts_what_goes_on(call_mode: CallMode) -> None:
    gate = Gate()
    model = ScriptedModel(
        START,
        gate.wait_then(on_task("update_async_task", message="silver")),
        doing(gate.opened.set, on_task("wait_async_task")),
        "Silver.",
    )
    agent = create_deep_agent(model, subagents=[digger(obeying(), gate.tool())])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert json.loads(results(state)[-1])["result"] == "Found: silver"
    assert "begins anew" in results(state)[1]
    assert len(only_record(state)["superseded_run_ids"]) == 1


def test_an_update_that_waits_its_turn_comes_second(call_mode: CallMode) -> None:
    gate, work = Gate(), obeying()
    model = ScriptedModel(
        START,
        gate.wait_then(on_task("update_async_task", message="silver")),
        doing(gate.opened.set, on_task("wait_async_task")),
        "Silver.",
    )
    agent = create_deep_agent(model, subagents=[digger(work, gate.tool(), update_strategy="enqueue")])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert json.loads(results(state)[-1])["result"] == "Found: silver"
    assert [asked.last for asked in work.asked] == ["Dig.", "deep enough", "silver"]


def test_a_task_is_cancelled_and_listed(call_mode: CallMode) -> None:
    gate, work = Gate(), obeying()
    model = ScriptedModel(
        START,
        gate.wait_then(on_task("cancel_async_task")),
        doing(gate.opened.set, call("list_async_tasks")),
        "Over.",
    )
    agent = create_deep_agent(model, subagents=[digger(work, gate.tool())])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert "status: cancelled" in results(state)[-1]
    assert notices(state) == []
    assert len(work.asked) == 1


def test_a_failure_is_announced_with_its_text(call_mode: CallMode) -> None:
    model = ScriptedModel(START, on_task("wait_async_task"), "It broke.")
    agent = create_deep_agent(model, subagents=[digger(ScriptedModel(ValueError("the spade broke")))])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert "ValueError: the spade broke" in json.loads(results(state)[-1])["error"]
    assert only_record(state)["status"] == "error"


def test_an_answer_that_broke_off_is_announced_as_a_failure(call_mode: CallMode) -> None:
    half = AIMessage("Gold, and the", response_metadata={"finish_reason": "length"})
    model = ScriptedModel(START, on_task("wait_async_task"), "Not all of it.")
    agent = create_deep_agent(model, subagents=[digger(ScriptedModel(half))])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert "cut off at a limit of tokens: Gold, and the" in json.loads(results(state)[-1])["error"]
    assert only_record(state)["status"] == "error"


def test_a_person_is_asked_when_the_main_agent_has_answered(call_mode: CallMode) -> None:
    gate, work = Gate(), ScriptedModel(call("blast"), call("dig_deep"), "Gold.")
    model = ScriptedModel(START, on_task("wait_async_task"), "It wants to blast.")
    spec = digger(work, blast, gate.tool(), interrupt_on={"blast": True})
    agent = create_deep_agent(model, subagents=[spec], checkpointer=InMemorySaver())
    asked = call_mode.invoke(agent, {"messages": "Dig!"}, THREAD)
    (question,) = asked["__interrupt__"]
    model.then(doing(gate.opened.set, on_task("wait_async_task")), "Gold it is.")
    answered = call_mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    state = call_mode.invoke(agent, {"messages": "And?"}, THREAD)

    assert json.loads(results(asked)[-1])["status"] == "waiting"
    assert question.value["action_requests"][0]["name"] == "blast"
    assert question.value["async_task"]["agent_name"] == "digger"
    assert only_record(answered)["status"] == "running"
    assert json.loads(results(state)[-1])["result"] == "Gold."
    assert work.asked[1].last == "Boom."
    assert notices(state) == []


def test_each_of_two_tasks_gets_its_own_answer(call_mode: CallMode) -> None:
    works = {name: ScriptedModel(call("blast"), f"{name} done.") for name in ("digger", "miner")}
    both = calls(*(("start_async_task", {"description": "Go.", "subagent_type": name}) for name in works))
    model = ScriptedModel(both, on_each("wait_async_task"), "They ask.")
    specs = [digger(work, blast, interrupt_on={"blast": True}, name=name) for name, work in works.items()]
    agent = create_deep_agent(model, subagents=specs, checkpointer=InMemorySaver())
    first = call_mode.invoke(agent, {"messages": "Go!"}, THREAD)
    reject: Any = {"decisions": [{"type": "reject", "message": "Too loud."}]}
    second = call_mode.invoke(agent, Command(resume=reject), THREAD)
    call_mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    model.then(on_each("wait_async_task"), "Done.")
    call_mode.invoke(agent, {"messages": "And?"}, THREAD)

    order = [each["__interrupt__"][0].value["async_task"]["agent_name"] for each in (first, second)]
    assert sorted(order) == ["digger", "miner"]
    assert "Too loud." in works[order[0]].asked[-1].last
    assert works[order[1]].asked[-1].last == "Boom."


def test_without_a_checkpointer_the_model_is_told_of_the_question(call_mode: CallMode) -> None:
    model = ScriptedModel(START, on_task("wait_async_task"), "It wants to blast.")
    spec = digger(ScriptedModel(call("blast")), blast, interrupt_on={"blast": True})
    agent = create_deep_agent(model, subagents=[spec])
    with pytest.warns(UserWarning, match="No answer to this can reach the agent"):
        state = call_mode.invoke(agent, {"messages": "Dig!"})

    found = json.loads(results(state)[-1])
    assert found["interrupts"][0]["value"]["action_requests"][0]["name"] == "blast"
    assert "waits for a person" in found["note"]
    assert "__interrupt__" not in state


def test_what_a_task_spends_counts_for_the_main_agent(call_mode: CallMode) -> None:
    work = ScriptedModel(*[call("blast")] * 20)
    model = ScriptedModel(START, on_task("wait_async_task"), "Enough.")
    agent = create_deep_agent(model, subagents=[digger(work, blast)], limits=Limits(model_calls=8))
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert len(work.asked) + len(model.asked) == 8
    assert "8 model calls" in state["messages"][-1].text


def test_what_was_spent_while_the_main_agent_waited_is_known_when_it_goes_on(call_mode: CallMode) -> None:
    """The person is asked by the task; the task's calls until then count after the answer too."""
    work = ScriptedModel(call("look"), call("look"), call("blast"), *[call("look")] * 20)
    model = ScriptedModel(START, on_task("wait_async_task"), "It asks.")
    spec = digger(work, blast, look, interrupt_on={"blast": True})
    agent = create_deep_agent(
        model, subagents=[spec], limits=Limits(model_calls=10, per="thread"), checkpointer=InMemorySaver()
    )
    call_mode.invoke(agent, {"messages": "Dig!"}, THREAD)
    call_mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    model.then(on_task("wait_async_task"), "Enough.")
    state = call_mode.invoke(agent, {"messages": "And?"}, THREAD)

    assert len(work.asked) + len(model.asked) == 10
    assert "10 model calls" in state["messages"][-1].text


def test_a_watcher_sees_what_a_task_does(call_mode: CallMode) -> None:
    model = ScriptedModel(START, on_task("wait_async_task"), "Gold.")
    agent = create_deep_agent(model, subagents=[digger(ScriptedModel(call("blast"), "Gold."), blast)])
    events = call_mode.observe(agent, {"messages": "Dig!"})

    own = [event for event in events if getattr(event, "agent", None) == "digger"]
    start = next(event for event in events if isinstance(event, ToolCalled))
    assert [event.name for event in own if isinstance(event, ToolCalled)] == ["blast"]
    assert "".join(event.text for event in own if isinstance(event, Token)) == "Gold."
    assert {event.agent_call_id for event in own if isinstance(event, ToolCalled)} == {start.call_id}
    statuses = [event.status for event in events if isinstance(event, TaskChanged)]
    assert statuses == ["running", "success"]


def test_a_task_has_the_context_and_configuration_of_its_caller(call_mode: CallMode) -> None:
    seen: list[Any] = []

    @tool
    def look_around(runtime: ToolRuntime[Any, Any]) -> str:
        """Look around."""
        configured = runtime.config.get("configurable", {})
        seen.append((runtime.context, configured.get("tenant"), configured["thread_id"]))
        return "rock"

    model = ScriptedModel(START, on_task("wait_async_task"), "Done.")
    work = ScriptedModel(call("look_around"), "Rock.")
    agent = create_deep_agent(model, subagents=[digger(work, look_around)], checkpointer=InMemorySaver())
    given: Any = {"configurable": {"thread_id": "mine", "tenant": "acme"}}
    state = call_mode.invoke(agent, {"messages": "Dig!"}, given, context={"user": "Ann"})

    assert seen == [({"user": "Ann"}, "acme", only_record(state)["task_id"])]


def test_the_rules_of_the_main_agent_bind_a_task(call_mode: CallMode, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the vein")
    rules = [FilesystemPermission(["read"], ["/secret.txt"], "deny")]
    work = ScriptedModel(call("read_file", file_path="/secret.txt"), "No luck.")
    spec: Any = {"name": "digger", "description": "Digs.", "model": work, "background": True}
    agent = create_deep_agent(
        ScriptedModel(START, on_task("wait_async_task"), "No luck."),
        subagents=[spec],
        permissions=rules,
        backend=FilesystemBackend(tmp_path, virtual_mode=True),
    )
    call_mode.invoke(agent, {"messages": "Dig!"})

    assert "the vein" not in work.asked[-1].last
    assert "denied" in work.asked[-1].last


def test_any_runnable_may_work_in_the_background(call_mode: CallMode) -> None:
    def find(state: Any) -> Any:
        return {"messages": [AIMessage(f"Found by hand: {state['messages'][-1].text}")]}

    spec: Any = {"name": "digger", "description": "Digs.", "runnable": RunnableLambda(find)}
    tasks = AsyncSubAgentMiddleware(async_subagents=[spec])
    model = ScriptedModel(START, on_task("wait_async_task"), "Done.")
    state = call_mode.invoke(create_deep_agent(model, middleware=[tasks]), {"messages": "Dig!"})

    assert json.loads(results(state)[-1])["result"] == "Found by hand: Dig."


def test_closing_stops_what_still_works(call_mode: CallMode) -> None:
    before = {*threading.enumerate()}
    gate, work = Gate(), obeying()
    inner = create_deep_agent(work, [gate.tool()])
    spec: Any = {"name": "digger", "description": "Digs.", "runnable": inner}
    tasks = AsyncSubAgentMiddleware(async_subagents=[spec])
    model = ScriptedModel(START, gate.wait_then("It digs."))
    agent = create_deep_agent(model, middleware=[tasks], checkpointer=InMemorySaver())
    call_mode.invoke(agent, {"messages": "Dig!"}, THREAD)
    gate.opened.set()
    call_mode.call(tasks, "close")
    model.then("It was stopped.")
    state = call_mode.invoke(agent, {"messages": "And?"}, THREAD)

    assert only_record(state)["status"] == "cancelled"
    until(lambda: {*threading.enumerate()} - before, lambda left: not any(map(_is_ours, left)))


def test_a_task_whose_event_loop_has_ended_is_told_as_interrupted_and_goes_on() -> None:
    model = ScriptedModel(START, "It digs.")
    work = ScriptedModel(call("dig_on"), "Gold after all.")
    agent = create_deep_agent(model, subagents=[digger(work, dig_on)], checkpointer=InMemorySaver())
    asyncio.run(agent.ainvoke({"messages": "Dig!"}, THREAD))
    model.then("It was cut off.", on_task("update_async_task", message="Go on."))
    model.then(on_task("wait_async_task"), "Gold.")
    told = asyncio.run(agent.ainvoke({"messages": "And?"}, THREAD))
    state = asyncio.run(agent.ainvoke({"messages": "Let it go on."}, THREAD))

    (notice,) = notices(told)
    assert "<status>interrupted</status>" in notice.text
    assert "update_async_task lets it go on" in notice.text
    assert json.loads(results(state)[-1])["result"] == "Gold after all."


def test_a_task_outlives_its_process(tmp_path: Path) -> None:
    database = tmp_path / "threads.db"
    left = programs.run(
        "import sys; from tests.middleware.background_tasks import die; die(sys.argv[1])", str(database)
    )
    assert left.returncode == -signal.SIGKILL
    with SqliteSaver.from_conn_string(str(database)) as saver:
        agent, model = background_tasks.make_agent(saver)
        model.then("One was cut off.", on_each("check_async_task"), "I see.")
        told = agent.invoke({"messages": "And?"}, THREAD)
        model.then(on_cut_off("update_async_task", message="Go on."), on_cut_off("wait_async_task"), "Done.")
        checked = agent.invoke({"messages": "Look."}, THREAD)
        state = agent.invoke({"messages": "Let it go on."}, THREAD)

    assert sorted(record["status"] for record in told["async_tasks"].values()) == ["interrupted", "success"]
    assert sorted(notice.text.count("Quick.") for notice in notices(told)) == [0, 1]
    assert {json.loads(each)["status"] for each in results(checked)[-2:]} == {"interrupted", "success"}
    assert json.loads(results(state)[-1])["result"] == "Found: Go on."


def test_a_task_stands_in_the_checkpointer_of_the_request_that_asks(tmp_path: Path) -> None:
    """Each request opens its own connection, and makes its agent anew."""
    model, work = ScriptedModel(START, on_task("wait_async_task"), "Gold."), ScriptedModel("Gold.")

    async def request(text: str) -> Any:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            agent = create_deep_agent(model, subagents=[digger(work)], checkpointer=saver)
            return await agent.ainvoke({"messages": text}, THREAD)

    asyncio.run(request("Dig!"))
    model.then(on_task("check_async_task"), "Gold, as I said.")
    state = asyncio.run(request("What was it?"))

    assert json.loads(results(state)[-1])["result"] == "Gold."


def test_an_agent_of_one_request_is_not_kept_for_its_tasks(call_mode: CallMode) -> None:
    def request() -> weakref.ref[Any]:
        inner = create_deep_agent(ScriptedModel("Gold."))
        spec: Any = {"name": "digger", "description": "Digs.", "runnable": inner}
        tasks = AsyncSubAgentMiddleware(async_subagents=[spec])
        model = ScriptedModel(START, on_task("wait_async_task"), "Gold.")
        call_mode.invoke(create_deep_agent(model, middleware=[tasks]), {"messages": "Dig!"})
        return weakref.ref(inner)

    of_request = request()

    # The thread that the task worked in lets go of it a moment after its end was told.
    until(gc.collect, lambda _: of_request() is None)


def test_a_tool_that_exits_ends_its_task_alone() -> None:
    @tool
    def leave() -> str:
        """Leave the mine."""
        sys.exit("no air")

    model = ScriptedModel(START, on_task("wait_async_task"), "It left.")
    agent = create_deep_agent(model, subagents=[digger(ScriptedModel(call("leave")), leave)])
    state = agent.invoke({"messages": "Dig!"})

    assert "SystemExit: no air" in json.loads(results(state)[-1])["error"]


def test_closing_does_not_wait_for_an_event_loop_that_stands_still() -> None:
    with asyncio.Runner() as runner:
        inner = create_deep_agent(ScriptedModel(call("dig_on")), [dig_on])
        spec: Any = {"name": "digger", "description": "Digs.", "runnable": inner}
        tasks = AsyncSubAgentMiddleware(async_subagents=[spec])
        model = ScriptedModel(START, "It digs.")
        agent = create_deep_agent(model, middleware=[tasks], checkpointer=InMemorySaver())
        runner.run(agent.ainvoke({"messages": "Dig!"}, THREAD))
        tasks.close()
        model.then("It was stopped.")
        state = runner.run(agent.ainvoke({"messages": "And?"}, THREAD))

    assert only_record(state)["status"] == "cancelled"


def test_an_update_from_another_event_loop_interrupts_what_goes_on() -> None:
    model, saver = ScriptedModel(START, "It digs."), InMemorySaver()
    work = ScriptedModel(always=lambda asked: call("dig_on") if asked.last == "Dig." else "Silver.")
    agent = create_deep_agent(model, subagents=[digger(work, dig_on)], checkpointer=saver)
    other = asyncio.new_event_loop()
    turning = threading.Thread(target=other.run_forever)
    turning.start()
    asyncio.run_coroutine_threadsafe(agent.ainvoke({"messages": "Dig!"}, THREAD), other).result(PATIENCE)
    model.then(on_task("update_async_task", message="silver"), on_task("wait_async_task"), "Silver.")
    state = asyncio.run(agent.ainvoke({"messages": "Silver!"}, THREAD))
    other.call_soon_threadsafe(other.stop)
    turning.join()
    other.close()

    assert json.loads(results(state)[-1])["result"] == "Silver."


def test_where_nothing_works_any_more_a_task_is_not_said_to_work() -> None:
    """A forked process has none of its parent's threads, and a closed event loop does none of its tasks."""
    ended = programs.run("from tests.middleware.background_tasks import tell; tell()")

    assert ended.stdout.split() == ["interrupted", "interrupted"], ended.stderr


def test_an_update_spends_from_the_limits_of_the_run_that_makes_it(call_mode: CallMode) -> None:
    goes_on = threading.Event()

    @tool
    def watch() -> str:
        """Watch the task until it goes on."""
        assert goes_on.wait(PATIENCE)
        return "it goes on"

    def follow(asked: Asked) -> Any:
        if "more" in [each.text for each in asked.messages]:
            goes_on.set()
            return "More."
        return call("look")

    def update_and_watch(asked: Asked) -> AIMessage:
        update = {"task_id": _started(asked)[-1], "message": "more"}
        return calls(("update_async_task", update), ("watch", {}))

    model = ScriptedModel(START, on_task("wait_async_task"))
    agent = create_deep_agent(
        model,
        [watch],
        subagents=[digger(ScriptedModel(always=follow), look)],
        limits=Limits(model_calls=6),
        checkpointer=InMemorySaver(),
    )
    call_mode.invoke(agent, {"messages": "Dig!"}, THREAD)
    model.then(update_and_watch, on_task("wait_async_task"), "More.")
    state = call_mode.invoke(agent, {"messages": "More!"}, THREAD)

    assert json.loads(results(state)[-1])["result"] == "More."


def test_a_watcher_sees_what_an_update_sets_off(call_mode: CallMode) -> None:
    model, work = ScriptedModel(START, on_task("wait_async_task"), "Gold."), ScriptedModel("Gold.")
    agent = create_deep_agent(model, subagents=[digger(work, look)], checkpointer=InMemorySaver())
    call_mode.invoke(agent, {"messages": "Dig!"}, THREAD)
    work.then(call("look"), "Silver.")
    model.then(on_task("update_async_task", message="silver"), on_task("wait_async_task"), "Silver.")
    events = call_mode.observe(agent, {"messages": "Silver!"}, THREAD)

    called = [event for event in events if isinstance(event, ToolCalled)]
    assert [event.name for event in called if event.agent == "digger"] == ["look"]


def test_a_fork_starts_tasks_for_its_caller(call_mode: CallMode) -> None:
    fork: Any = {"name": "twin", "description": "Knows all.", "mode": "fork"}
    model = ScriptedModel(call("task", description="Send the digger.", subagent_type="twin"))
    model.then(START, "Sent.", call("list_async_tasks"), on_listed("wait_async_task"), "Gold.")
    with pytest.warns(Warning, match="beta"):
        agent = create_deep_agent(model, subagents=[fork, digger(ScriptedModel("Gold."))])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert json.loads(results(state)[-1])["result"] == "Gold."


def test_a_second_update_waits_for_a_step_that_the_first_one_could_not_stop() -> None:
    """Two runs that work on one thread at the same time would overwrite each other's steps."""
    gate, order = Gate(), list[str]()

    def work(asked: Asked) -> Any:
        order.append(asked.last)
        return call("dig_deep") if asked.last == "Dig." else "Found."

    model = ScriptedModel(START, gate.wait_then("It digs."))
    agent = create_deep_agent(
        model, subagents=[digger(ScriptedModel(always=work), gate.tool())], checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": "Dig!"}, THREAD)
    updates = [on_task("update_async_task", message=each) for each in ("silver", "copper")]
    model.then(*updates, *[on_task("check_async_task")] * 5)
    model.then(
        doing(lambda: [order.append("opened"), gate.opened.set()], on_task("wait_async_task")), "Found."
    )
    state = asyncio.run(agent.ainvoke({"messages": "Copper!"}, THREAD))

    assert order == ["Dig.", "opened", "copper"]
    assert json.loads(results(state)[-1])["result"] == "Found."


def test_a_fork_in_the_background_begins_with_the_messages_as_they_are(call_mode: CallMode) -> None:
    broken: Any = {"name": "look", "args": "{", "id": "broken", "error": None, "type": "invalid_tool_call"}
    usage: Any = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    said = AIMessage("Hm.", invalid_tool_calls=[broken], usage_metadata=usage)
    model = ScriptedModel(said, START, on_task("wait_async_task"), "Done.")
    work = ScriptedModel("Gold.")
    with pytest.warns(Warning, match="beta"):
        agent = create_deep_agent(model, subagents=[digger(work, mode="fork")])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    begins = [message for message in work.asked[0].messages if message.type != "system"]
    assert begins[1:3] == state["messages"][1:3]


def test_a_call_that_cannot_be_parsed_does_not_end_the_run(call_mode: CallMode) -> None:
    broken: Any = {"name": "look", "args": "{", "id": "broken", "error": None, "type": "invalid_tool_call"}
    model = ScriptedModel(AIMessage("", invalid_tool_calls=[broken]), "Mended.")
    agent = create_deep_agent(model, subagents=[digger(ScriptedModel())])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert state["messages"][-1].text == "Mended."


def test_a_task_has_the_store_of_its_caller(call_mode: CallMode) -> None:
    work = ScriptedModel(call("write_file", file_path="/found.md", content="Gold."), "It stands there.")
    spec: Any = {"name": "digger", "description": "Digs.", "model": work, "background": True}
    agent = create_deep_agent(
        ScriptedModel(START, on_task("wait_async_task"), call("read_file", file_path="/found.md"), "Gold."),
        subagents=[spec],
        backend=StoreBackend(namespace=lambda _: ("mine",)),
        store=InMemoryStore(),
    )
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert "Gold." in results(state)[-1]


def test_a_person_may_be_asked_before_the_agent_waits(call_mode: CallMode) -> None:
    model = ScriptedModel(START, on_task("wait_async_task"))
    asks: Any = {"wait_async_task": True}
    spec = digger(ScriptedModel("Gold."))
    agent = create_deep_agent(model, subagents=[spec], interrupt_on=asks, checkpointer=InMemorySaver())
    asked = call_mode.invoke(agent, {"messages": "Dig!"}, THREAD)

    (question,) = asked["__interrupt__"]
    assert question.value["action_requests"][0]["name"] == "wait_async_task"


def test_a_graph_without_messages_is_refused_with_a_reason(call_mode: CallMode) -> None:
    class Shaft(TypedDict):
        depth: int

    builder: Any = StateGraph(Shaft)
    builder.add_node("deepen", lambda _: {"depth": 1})
    builder.add_edge("__start__", "deepen")
    spec: Any = {"name": "digger", "description": "Digs.", "runnable": builder.compile(), "background": True}
    model = ScriptedModel(START, "It cannot.")
    state = call_mode.invoke(create_deep_agent(model, subagents=[spec]), {"messages": "Dig!"})

    assert "the state of 'digger' has no 'messages'" in results(state)[-1]
    assert not state["async_tasks"]


def test_to_cancel_what_an_update_replaced_is_no_failure(
    call_mode: CallMode, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    model = ScriptedModel(START, on_task("wait_async_task"))
    model.then(on_task("update_async_task", message="Dig."), gate.wait_then(on_task("cancel_async_task")))
    model.then(doing(gate.opened.set, "Stopped."))
    work = ScriptedModel("Gold.", call("dig_deep"))
    agent = create_deep_agent(model, subagents=[digger(work, gate.tool())])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert only_record(state)["status"] == "cancelled"
    assert [each.getMessage() for each in caplog.records if each.name.startswith("deepagents.")] == []


def test_a_task_that_has_just_asked_a_person_is_cancelled_too() -> None:
    before = {*threading.enumerate()}

    def rest() -> None:
        until(lambda: {*threading.enumerate()} - before, lambda left: not any(map(_is_ours, left)))

    model = ScriptedModel(START, doing(rest, on_task("cancel_async_task")), "Stopped.")
    spec = digger(ScriptedModel(call("blast")), blast, interrupt_on={"blast": True})
    agent = create_deep_agent(model, subagents=[spec], checkpointer=InMemorySaver())
    state = agent.invoke({"messages": "Dig!"}, THREAD)

    assert results(state)[-1].startswith("Cancelled task")
    assert only_record(state)["status"] == "cancelled"
    assert "__interrupt__" not in state


def test_an_answer_from_before_an_update_is_not_told_as_its_result(call_mode: CallMode) -> None:
    model = ScriptedModel(START, on_task("wait_async_task"), on_task("update_async_task", message="More."))
    model.then(on_task("wait_async_task"), "Nothing more.")
    agent = create_deep_agent(model, subagents=[digger(ScriptedModel("Gold.", ""))])
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert "no output" in json.loads(results(state)[-1])["result"]


def test_the_result_is_what_was_written_last(call_mode: CallMode) -> None:
    """Some models end their turn without a word, when they have said all before their last call."""
    said: Any = AIMessage([{"type": "text", "text": "Gold."}])
    look_up = call("look").model_copy(update={"content": [{"type": "reasoning", "reasoning": "Hm."}]})
    agent = create_deep_agent(
        ScriptedModel(START, on_task("wait_async_task"), "Gold it is."),
        subagents=[
            digger(
                ScriptedModel(said.model_copy(update={"tool_calls": look_up.tool_calls}), look_up, ""), look
            )
        ],
    )
    state = call_mode.invoke(agent, {"messages": "Dig!"})

    assert json.loads(results(state)[-1])["result"] == "Gold."


def test_a_graph_that_saves_where_its_caller_does_saves_there_in_the_background(call_mode: CallMode) -> None:
    inner: Any = create_deep_agent(ScriptedModel("Gold.", "Silver."), checkpointer=True)
    spec: Any = {"name": "digger", "description": "Digs.", "runnable": inner, "background": True}
    model = ScriptedModel(START, on_task("wait_async_task"), on_task("update_async_task", message="More."))
    model.then(on_task("wait_async_task"), "Both.")
    state = call_mode.invoke(create_deep_agent(model, subagents=[spec]), {"messages": "Dig!"})

    found = [json.loads(text) for text in results(state) if text.startswith("{")]
    assert [each["result"] for each in found] == ["Gold.", "Silver."]


def test_a_spec_says_what_is_wrong_with_it() -> None:
    both: Any = {"name": "a", "description": "A.", "runnable": RunnableLambda(str), "graph_id": "a"}
    wrong: Any = {"name": "a", "description": "A.", "runnable": "a"}
    bare: Any = {"name": "a", "description": "A.", "background": True}
    with pytest.raises(ConfigError, match="graph_id and a runnable"):
        AsyncSubAgentMiddleware(async_subagents=[both])
    with pytest.raises(ConfigError, match="runnable must be a Runnable"):
        AsyncSubAgentMiddleware(async_subagents=[wrong])
    with pytest.raises(ConfigError, match="or a runnable; create_deep_agent"):
        AsyncSubAgentMiddleware(async_subagents=[bare])
    with pytest.raises(ConfigError, match="give it to AsyncSubAgentMiddleware"):
        SubAgentMiddleware(subagents=[digger(ScriptedModel())])
    with pytest.raises(ConfigError, match="background must be True or False, got 'no'"):
        create_deep_agent(ScriptedModel(), subagents=[digger(ScriptedModel(), background="no")])
    with pytest.raises(ConfigError, match="update_strategy='later'"):
        create_deep_agent(ScriptedModel(), subagents=[digger(ScriptedModel(), update_strategy="later")])


def _is_ours(thread: threading.Thread) -> bool:
    return thread.name == "deepagents-io"


@tool
def look() -> str:
    """Look at the wall."""
    return "rock"


@pytest.mark.parametrize("look", ["wait_async_task", "check_async_task", None])
def test_memory_and_skills_are_read_again_when_a_task_has_worked(
    call_mode: CallMode, tmp_path: Path, look: str | None
) -> None:
    (tmp_path / "AGENTS.md").write_text("Use spades.")
    put(tmp_path, "skills", "digging")
    work = ScriptedModel(
        calls(
            ("write_file", {"file_path": "/AGENTS.md", "content": "Use dynamite."}),
            ("write_file", {"file_path": "/skills/blasting/SKILL.md", "content": skill("blasting")}),
        ),
        "Dug.",
    )

    def manage(asked: Asked) -> Any:
        if not _started(asked):
            return START
        heard = any("Dug." in each.text for each in asked.messages)
        # Without a look the model works on, until the end of the task is announced.
        return "Good." if heard else on_task(look)(asked) if look else call("glob", pattern="*.none")

    model = ScriptedModel(always=manage)
    agent = create_deep_agent(
        model,
        subagents=[digger(work)],
        backend=FilesystemBackend(tmp_path, virtual_mode=True),
        memory=["/AGENTS.md"],
        skills=["/skills"],
    )
    call_mode.invoke(agent, {"messages": "Dig!"})

    assert "Use spades." in model.asked[0].system
    assert "Use dynamite." in model.asked[-1].system
    assert "**blasting**" in model.asked[-1].system


def obeying() -> ScriptedModel:
    """Make a model that digs deep when it is told to dig, and finds whatever else it is told."""

    def reply(asked: Asked) -> Any:
        if asked.messages[-1].type == "tool":
            return "Deep."
        return call("dig_deep") if asked.last == "Dig." else f"Found: {asked.last}"

    return ScriptedModel(always=reply)


def doing(work: Callable[[], object], said: Callable[[Asked], Any] | Any) -> Callable[[Asked], Any]:
    """Say something, after something else has happened."""

    def reply(asked: Asked) -> Any:
        work()
        return said(asked) if callable(said) else said

    return reply

"""A history that a crash left with unanswered calls is valid again before the model reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.middleware._history import media_behind_results
from deepagents.middleware.patch_tool_calls.middleware import (
    MOST_KNOWN,
    CallOutcomes,
    PatchToolCallsMiddleware,
)
from deepagents.middleware.patch_tool_calls.repair import find_fault, repair_turns
from deepagents.testing import ScriptedModel, call, calls, history_faults
from tests.conftest import CallMode


def wants(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name="ls", args={"path": "/"}, id=each) for each in ids])


def read_by_model(*history: Any) -> list[Any]:
    with ScriptedModel("Hello.") as model:
        create_deep_agent(model).invoke({"messages": [*history]})
    return model.asked[0].messages[1:]


def test_an_unanswered_call_gets_an_answer_right_behind_it() -> None:
    read = read_by_model(HumanMessage("Go"), wants("1"), HumanMessage("Still there?"))

    assert [message.type for message in read] == ["human", "ai", "tool", "human"]
    assert (read[2].tool_call_id, read[2].status) == ("1", "error")
    assert "process ended, or the run was cut off" in read[2].text


def answer(call_id: str, text: str = "x") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id)


GO, SO = HumanMessage("Go"), HumanMessage("So?")
REPAIRED: dict[str, tuple[list[Any], str]] = {
    "a whole history stays": ([GO, wants("1"), answer("1")], "human ai 1:x"),
    "only what is missing is added": ([GO, wants("1", "2"), answer("2"), SO], "human ai 2:x 1:? human"),
    "an id used again hides nothing": (
        [GO, wants("1"), SO, wants("1"), answer("1")],
        "human ai 1:? human ai 1:x",
    ),
    "a late answer moves behind its call": (
        [GO, wants("1"), GO, answer("1"), SO],
        "human ai 1:x human human",
    ),
    "a second answer is dropped": ([GO, wants("1"), answer("1"), answer("1", "y"), SO], "human ai 1:x human"),
    "an answer to no call is dropped": (
        [answer("7"), GO, AIMessage("Yes?"), answer("7"), SO],
        "human ai human",
    ),
}


@pytest.mark.parametrize("case", REPAIRED)
def test_each_call_is_read_with_one_answer_right_behind_it(case: str) -> None:
    history, expected = REPAIRED[case]
    read = read_by_model(*(each.model_copy() for each in history))

    assert " ".join(map(sketched, read)) == expected


def test_calls_that_share_an_id_keep_an_answer_each() -> None:
    read = read_by_model(GO, wants("1", "1"), answer("1"), answer("1", "y"), SO)

    assert [message.text for message in read if message.type == "tool"] == ["x", "y"]


def sketched(message: Any) -> str:
    """Sketch a message by its kind; a result by its call and text, or `?` where it was made up."""
    made_up = "?" if getattr(message, "status", "") == "error" else message.text
    return f"{message.tool_call_id}:{made_up}" if message.type == "tool" else message.type


def test_malformed_calls_are_told_apart() -> None:
    read = read_by_model(
        HumanMessage("Go"), AIMessage("", invalid_tool_calls=[broken("1")]), HumanMessage("?")
    )

    assert "could not be parsed" in read[2].text


def test_a_number_too_large_for_a_checkpoint_does_not_end_the_run() -> None:
    with ScriptedModel(call("read_file", file_path="/a.txt", offset=10**30), "Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        result = agent.invoke({"messages": "Go"}, {"configurable": {"thread_id": "1"}})

    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert result["messages"][1].tool_calls[0]["args"]["offset"] == "1" + "0" * 30
    assert result["messages"][2].status == "error"


def test_arguments_that_can_be_saved_stay_as_they_are() -> None:
    args = {"path": "/", "n": [2**64 - 1, -(2**63), True, 1.5, {"x": None}]}
    with ScriptedModel(AIMessage("", tool_calls=[ToolCall(name="ls", args=args, id="1")]), "Done.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go"})

    assert result["messages"][1].tool_calls[0]["args"] == args


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value]
    return value


def depth(value: Any) -> int:
    levels = 0
    while isinstance(value, list):
        levels, value = levels + 1, value[0]
    return levels


@pytest.mark.parametrize("levels", [350, 480, 900, 20_000])
def test_arguments_nested_without_end_do_not_end_the_run(levels: int) -> None:
    with ScriptedModel(call("ls", path="/", deep=nested(levels)), "Done.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        result = agent.invoke({"messages": "Go"}, {"configurable": {"thread_id": "1"}})

    kept = result["messages"][1].tool_calls[0]["args"]["deep"]
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert 90 < depth(kept) <= 100


def test_what_is_nested_too_deep_stays_readable() -> None:
    with ScriptedModel(call("ls", path="/", deep=nested(110)), "Done.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go"})

    kept = result["messages"][1].tool_calls[0]["args"]["deep"]
    while isinstance(kept, list):
        kept = kept[0]
    assert kept.count("[") == kept.count("]") > 0
    assert '"core"' in kept


THREAD: Any = {"configurable": {"thread_id": "1"}}


def broken(call_id: str) -> InvalidToolCall:
    return InvalidToolCall(name="ls", args="{", id=call_id, error="no end", type="invalid_tool_call")


def results(messages: Any) -> list[tuple[str, str | None, str]]:
    return [
        (each.tool_call_id, each.additional_kwargs.get("error_code"), each.text)
        for each in messages
        if each.type == "tool"
    ]


def test_a_call_that_waited_for_a_person_is_said_not_to_have_run(call_mode: CallMode) -> None:
    both = calls(("write_file", {"file_path": "/a", "content": "x"}), ("ls", {"path": "/"}))
    with ScriptedModel(both, "I see.") as model:
        agent = create_deep_agent(
            model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver(), subagents=[]
        )
        call_mode.invoke(agent, {"messages": "Write"}, THREAD)
        result = call_mode.invoke(agent, {"messages": "Leave it"}, THREAD)

    assert [code for _, code, _ in results(result["messages"])] == ["not_run", "not_run"]
    assert "was not run" in model.asked[1].messages[-2].text
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "tool", "human", "ai"]


class Killed(BaseException):
    """The process ends."""


async def cancelled_while_it_runs(agent: Any) -> None:
    """Cancel a run once its tool has said that it runs."""
    running = asyncio.Event()
    run = asyncio.create_task(agent.ainvoke({"messages": "Go"}, {**THREAD, "metadata": {"on": running}}))
    await running.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


@tool
async def slow(config: RunnableConfig) -> str:
    """Work for long."""
    config.get("metadata", {})["on"].set()
    await asyncio.Event().wait()
    return "done"


@tool
def stopped() -> str:
    """Work until somebody presses Ctrl-C."""
    raise KeyboardInterrupt


async def test_a_cancelled_call_is_told_from_a_lost_one_in_the_same_process() -> None:
    saver = InMemorySaver()
    with ScriptedModel(call("slow"), "I see.") as model:
        agent = create_deep_agent(model, tools=[slow], checkpointer=saver)
        await cancelled_while_it_runs(agent)
        known = await agent.ainvoke({"messages": "And?"}, THREAD)

    ((_, code, text),) = results(known["messages"])
    assert code == "cancelled"
    assert "was cancelled while it ran" in text
    assert "may or may not have taken effect" in text


def test_of_too_many_calls_the_oldest_are_forgotten() -> None:
    outcomes = CallOutcomes()
    for number in range(MOST_KNOWN + 1):
        outcomes.note("1", str(number), "cancelled")

    assert set(outcomes.take("1")) == {str(number) for number in range(1, MOST_KNOWN + 1)}


async def test_another_process_claims_nothing_about_a_cancelled_call() -> None:
    saver = InMemorySaver()
    await cancelled_while_it_runs(
        create_deep_agent(ScriptedModel(call("slow")), tools=[slow], checkpointer=saver)
    )
    agent = create_deep_agent(ScriptedModel("I see."), tools=[slow], checkpointer=saver)
    unknown = await agent.ainvoke({"messages": "And?"}, THREAD)

    assert [code for _, code, _ in results(unknown["messages"])] == ["result_lost"]


def test_a_call_stopped_by_the_keyboard_was_cancelled_too() -> None:
    with ScriptedModel(call("stopped"), "I see.") as model:
        agent = create_deep_agent(model, tools=[stopped], checkpointer=InMemorySaver())
        with pytest.raises(KeyboardInterrupt):
            agent.invoke({"messages": "Go"}, THREAD)
        result = agent.invoke({"messages": "And?"}, THREAD)

    assert [code for _, code, _ in results(result["messages"])] == ["cancelled"]


def test_what_is_known_of_a_call_holds_until_it_runs_again_and_for_its_thread() -> None:
    fails: list[type[BaseException]] = [KeyboardInterrupt, Killed]

    @tool
    def stops() -> str:
        """Stop, first in one way, then in the other."""
        raise fails.pop(0)

    other: Any = {"configurable": {"thread_id": "2"}}
    with ScriptedModel(call("stops"), "Hello.", "I see.") as model:
        agent = create_deep_agent(model, tools=[stops], checkpointer=InMemorySaver())
        for given_input, error in (({"messages": "Go"}, KeyboardInterrupt), (None, Killed)):
            with pytest.raises(error):
                agent.invoke(given_input, THREAD)
        agent.invoke({"messages": "Hello"}, other)
        result = agent.invoke({"messages": "And?"}, THREAD)

    assert [code for _, code, _ in results(result["messages"])] == ["result_lost"]


def test_a_call_that_a_person_approved_is_not_said_to_have_been_left_alone() -> None:
    @tool
    def send() -> str:
        """Send it."""
        raise Killed

    with ScriptedModel(call("send"), "I see.") as model:
        agent = create_deep_agent(
            model, tools=[send], interrupt_on={"send": True}, checkpointer=InMemorySaver()
        )
        agent.invoke({"messages": "Send"}, THREAD)
        with pytest.raises(Killed):
            agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
        result = agent.invoke({"messages": "And?"}, THREAD)

    ((_, code, text),) = results(result["messages"])
    assert code == "result_lost"
    assert "may or may not have taken effect" in text


def test_an_earlier_turn_that_waited_says_nothing_about_a_later_one() -> None:
    with ScriptedModel(call("write_file", file_path="/a", content="x"), "One.") as model:
        agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
        agent.invoke({"messages": "Write"}, THREAD)
        later = [AIMessage("", tool_calls=[ToolCall(name="ls", args={"path": "/"}, id="later")])]
        result = agent.invoke({"messages": [HumanMessage("?"), *later, HumanMessage("So?")]}, THREAD)

    assert [code for _, code, _ in results(result["messages"])] == ["result_lost", "result_lost"]


def test_a_lost_result_beside_others_is_told_apart() -> None:
    read = read_by_model(
        HumanMessage("Go"), wants("1", "2"), ToolMessage("x", tool_call_id="2"), HumanMessage("?")
    )
    alone = read_by_model(HumanMessage("Go"), wants("1"), HumanMessage("?"))

    assert "other calls of the same turn have theirs" in results(read)[1][2]
    assert "other calls" not in results(alone)[0][2]


def test_a_malformed_call_is_answered_at_once_and_the_model_goes_on(call_mode: CallMode) -> None:
    with ScriptedModel(AIMessage("", invalid_tool_calls=[broken("1")]), "Mended.") as model:
        result = call_mode.invoke(create_deep_agent(model), {"messages": "Go"})

    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert "could not be parsed, so nothing was run" in model.asked[1].last
    assert results(result["messages"])[0][:2] == ("1", "invalid_argument")


ELSEWHERE: Any = {"name": "far", "description": "Far away.", "graph_id": "far", "url": "http://127.0.0.1:9"}


class HookAfterModel(AgentMiddleware[Any, Any, Any]):
    """Counts the answers of the model, in a node of its own."""

    answers = 0

    def after_model(self, state: Any, runtime: Any) -> None:
        self.answers += 1

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        self.after_model(state, runtime)


def replies_in_vain(replies: int) -> list[AIMessage]:
    return [AIMessage("", invalid_tool_calls=[broken(str(number))]) for number in range(replies)]


@pytest.mark.parametrize("further", [{}, {"interrupt_on": {"ls": True}}, {"subagents": [ELSEWHERE]}])
def test_a_malformed_call_is_read_by_the_model_though_a_callers_hook_stands_behind_it(
    call_mode: CallMode, further: Any
) -> None:
    behind = HookAfterModel()
    with ScriptedModel(*replies_in_vain(2), call("glob", pattern="*"), "Mended.") as model:
        agent = create_deep_agent(model, middleware=[behind], checkpointer=InMemorySaver(), **further)
        result = call_mode.invoke(agent, {"messages": "Go"}, THREAD)

    assert [message.type for message in result["messages"]][1:] == ["ai", "tool"] * 3 + ["ai"]
    assert behind.answers == 4


def test_a_callers_hook_may_end_a_run_after_a_malformed_call(call_mode: CallMode) -> None:
    class Ending(HookAfterModel):
        @hook_config(can_jump_to=["end"])
        def after_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "end"}

        @hook_config(can_jump_to=["end"])
        async def aafter_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "end"}

    with ScriptedModel(*replies_in_vain(1)) as model:
        call_mode.invoke(create_deep_agent(model, middleware=[Ending()]), {"messages": "Go"})


@pytest.mark.parametrize("asks", [{"ls": True}, None])
def test_a_malformed_call_beside_a_good_one_is_answered_before_the_next_request(
    call_mode: CallMode, asks: Any
) -> None:
    good = ToolCall(name="glob", args={"pattern": "*"}, id="2")
    mixed = AIMessage("", tool_calls=[good], invalid_tool_calls=[broken("1")])
    only = AIMessage("", invalid_tool_calls=[broken("3")])
    with ScriptedModel(mixed, only, "Done.") as model:
        agent = create_deep_agent(model, interrupt_on=asks, checkpointer=InMemorySaver())
        result = call_mode.invoke(agent, {"messages": "Go"}, THREAD)

    assert [call_id for call_id, _, _ in results(result["messages"])] == ["1", "2", "3"]
    assert [message.type for message in model.asked[1].messages[1:]] == ["human", "ai", "tool", "tool"]
    assert result["messages"][-1].text == "Done."


def test_a_malformed_call_does_not_write_the_history_anew() -> None:
    saver = InMemorySaver()
    history = [message for number in range(200) for message in (HumanMessage(f"{number}"), AIMessage("ok"))]
    mixed = AIMessage(
        "", tool_calls=[ToolCall(name="ls", args={"path": "/"}, id="2")], invalid_tool_calls=[broken("1")]
    )
    with ScriptedModel("Hi.", mixed, "Done.") as model:
        agent = create_deep_agent(model, checkpointer=saver)
        agent.invoke({"messages": history}, THREAD)
        updates = list(agent.stream({"messages": "Go"}, THREAD, stream_mode="updates"))

    written = [
        each for update in updates for node in update.values() for each in (node or {}).get("messages", [])
    ]
    assert len(written) < 10


def written_by_repair(agent: Any, messages: Any) -> list[Any]:
    updates = list(agent.stream({"messages": messages}, THREAD, stream_mode="updates"))
    (repair,) = [u[name] for u in updates for name in u if name.startswith("PatchToolCalls")]
    return (repair or {}).get("messages", [])


def test_a_repair_writes_only_what_stands_behind_the_unanswered_call() -> None:
    history = [message for number in range(200) for message in (HumanMessage(f"{number}"), AIMessage("ok"))]
    with ScriptedModel("Hi.", "Sorry.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        agent.invoke({"messages": history}, THREAD)
        agent.update_state(THREAD, {"messages": [wants("lost")]}, as_node="model")
        ids = [message.id for message in agent.get_state(THREAD).values["messages"]]
        written = written_by_repair(agent, HumanMessage("And?", id="last"))

    after = agent.get_state(THREAD).values["messages"]
    assert [message.type for message in written] == ["remove", "tool", "human"]
    assert [message.id for message in after][: len(ids)] == ids
    assert [message.type for message in after[-4:]] == ["ai", "tool", "human", "ai"]
    assert after[-2].id == "last"


def test_a_repair_is_the_same_after_it_was_saved_and_read_again(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "saved.sqlite")) as saver:
        with ScriptedModel("Hi.", "Sorry.") as model:
            agent = create_deep_agent(model, checkpointer=saver)
            agent.invoke({"messages": "Go"}, THREAD)
            agent.update_state(THREAD, {"messages": [wants("1", "2"), ToolMessage("x", tool_call_id="2")]})
            live = agent.invoke({"messages": "And?"}, THREAD)["messages"]
        saved = create_deep_agent(ScriptedModel(), checkpointer=saver).get_state(THREAD).values["messages"]

    assert [(each.type, each.id) for each in saved] == [(each.type, each.id) for each in live]
    assert history_faults(live) == []


def test_a_history_kept_without_deltas_is_repaired_too(call_mode: CallMode) -> None:
    with ScriptedModel("Sorry.") as model:
        agent: Any = create_agent(model, middleware=[PatchToolCallsMiddleware()])
        result = call_mode.invoke(agent, {"messages": [HumanMessage("Go"), wants("1"), HumanMessage("?")]})

    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "human", "ai"]


class Counting(list[Any]):
    """A list that counts how often it is walked."""

    walks = 0

    def __iter__(self) -> Iterator[Any]:
        self.walks += 1
        return super().__iter__()


def test_a_long_sound_history_is_looked_at_once() -> None:
    turns = [[HumanMessage("?"), wants(f"{n}"), ToolMessage("x", tool_call_id=f"{n}")] for n in range(3_000)]
    history = Counting([message for turn in turns for message in turn])

    assert PatchToolCallsMiddleware().before_agent({"messages": history}, None) is None
    assert history.walks == 1


def histories() -> st.SearchStrategy[list[Any]]:
    answer = st.sampled_from("abc").map(lambda call_id: ToolMessage("x", tool_call_id=call_id))
    asking = st.lists(st.sampled_from("abc"), max_size=3).map(lambda ids: wants(*ids))
    malformed = st.sampled_from("abc").map(lambda each: AIMessage("", invalid_tool_calls=[broken(each)]))
    film = st.just(HumanMessage("film", additional_kwargs={"read_file_media_result": True}))
    return st.lists(
        st.one_of(answer, answer, asking, malformed, st.just(HumanMessage("hi")), film), max_size=12
    )


@settings(max_examples=75)
@given(histories())
def test_any_history_becomes_one_that_providers_take(given_messages: list[Any]) -> None:
    messages = [message.model_copy(update={"id": str(at)}) for at, message in enumerate(given_messages)]
    first = find_fault(messages)
    repaired = messages if first is None else [*messages[:first], *repair_turns(messages[first:])]
    asked = [each for each in media_behind_results(repaired) if each.type != "system"]

    assert history_faults([HumanMessage("Go"), *asked]) == []
    assert find_fault(repaired) is None
    assert [each.id for each in repaired if each.type != "tool"] == [
        each.id for each in messages if each.type != "tool"
    ]
    if not history_faults([HumanMessage("Go"), *media_behind_results(messages)]):
        assert first is None

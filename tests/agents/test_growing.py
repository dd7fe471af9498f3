"""Channels that are saved as what is new hold what a plain fold gives, whatever is copied or replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from deepagents import create_deep_agent
from deepagents._state.channels import (
    SNAPSHOT_AFTER,
    GrowingChannel,
    InheritedChannel,
    MessagesChannel,
    ParentState,
    inherit_from,
    messages_channel,
    placeholder_for,
    weight,
)
from deepagents._state.schema import DeepAgentState
from deepagents.backends.state import reduce_files
from deepagents.middleware.subagents.middleware import create_sub_agent
from deepagents.testing import ScriptedModel, call
from tests.agents.delegating import text

IDS = st.sampled_from(["a", "b", "c", "d", "e", None])
MESSAGES = st.builds(lambda name, said: HumanMessage(said, id=name), IDS, st.text("xyz", max_size=2))
REMOVALS = st.sampled_from([*"abcz", REMOVE_ALL_MESSAGES]).map(lambda name: RemoveMessage(id=name))
WRITES = st.lists(MESSAGES, min_size=1, max_size=3) | MESSAGES | st.tuples(MESSAGES, REMOVALS).map(list)
STEPS = st.lists(st.lists(WRITES, min_size=1, max_size=2) | st.just("fork"), max_size=12)


def folded(messages: list[Any], writes: Sequence[Any]) -> list[BaseMessage]:
    """Fold writes as LangGraph's own function does, one by one; a reset forgets what was before it."""
    for write in writes:
        for each in write if isinstance(write, list) else [write]:
            if isinstance(each, RemoveMessage) and each.id == REMOVE_ALL_MESSAGES:
                messages = []
            else:
                messages = messages_channel().reducer(messages, [[each]])
    return messages


def said(messages: Any) -> list[tuple[str | None, str]]:
    return [(each.id, each.text) for each in messages]


@given(STEPS, st.randoms(use_true_random=False))
def test_copies_that_go_different_ways_each_hold_what_a_plain_fold_gives(
    steps: list[Any], chance: Any
) -> None:
    first = messages_channel().from_checkpoint([])
    branches: list[tuple[MessagesChannel, list[BaseMessage]]] = [(first, [])]
    for step in steps:
        at = chance.randrange(len(branches))
        channel, plain = branches[at]
        if step == "fork":
            branches.append((channel.copy(), plain))
            continue
        channel.update(step)
        branches[at] = channel, folded(plain, step)

    for channel, plain in branches:
        assert said(channel.get()) == said(plain)


@given(st.lists(st.lists(WRITES, min_size=1, max_size=2), max_size=8), st.integers(0, 8))
def test_a_replay_gives_what_the_steps_gave(steps: list[Any], saved: int) -> None:
    live = messages_channel().from_checkpoint([])
    for step in steps[:saved]:
        live.update(step)
    rebuilt = messages_channel().from_checkpoint(list(live.get()))
    for step in steps[saved:]:
        live.update(step)
    rebuilt.replay_writes([("task", "messages", write) for step in steps[saved:] for write in step])

    assert said(rebuilt.get()) == said(live.get())


def test_an_id_that_another_copy_put_elsewhere_is_found_where_it_stands() -> None:
    one, two, three, four = (HumanMessage(name, id=name) for name in ("one", "two", "three", "four"))
    first = messages_channel().from_checkpoint([])
    first.update([one])
    second = first.copy()
    second.update([[two, three]])
    for step in ([three], [four], [HumanMessage("changed", id="three")]):
        first.update(step)

    assert [each.text for each in first.get()] == ["one", "changed", "four"]
    second.update([HumanMessage("changed", id="two")])
    assert [each.text for each in second.get()] == ["one", "changed", "three"]


def test_messages_with_an_empty_id_do_not_take_each_others_place() -> None:
    writes = [HumanMessage("one", id=""), HumanMessage("two", id="")]
    live, rebuilt = (messages_channel().from_checkpoint([]) for _ in range(2))
    for write in writes:
        live.update([write])
    rebuilt.replay_writes([("task", "messages", write) for write in writes])

    assert [each.text for each in live.get()] == [each.text for each in rebuilt.get()] == ["one", "two"]


def test_a_list_that_was_handed_out_does_not_change() -> None:
    channel = messages_channel().from_checkpoint([])
    channel.update([[HumanMessage("one", id="1")]])
    seen = channel.get()
    twin = channel.copy()
    twin.update([[HumanMessage("two", id="2")], [HumanMessage("other", id="1")]])

    assert said(seen) == said(channel.get()) == [("1", "one")]
    assert said(twin.get()) == [("1", "other"), ("2", "two")]


def test_a_reader_that_adds_to_the_list_in_place_does_not_confuse_it() -> None:
    channel = messages_channel().from_checkpoint([])
    channel.update([[HumanMessage("one", id="1")]])
    channel.get().append(HumanMessage("slipped in", id="2"))
    channel.update([[HumanMessage("three", id="3"), HumanMessage("two", id="2")]])

    assert said(channel.get()) == [("1", "one"), ("2", "two"), ("3", "three")]


def distances(channel: GrowingChannel, writes: Sequence[Any]) -> list[int]:
    """Return after how many writes each whole copy is due, asked after each as a running graph does."""
    found: list[int] = []
    last = 0
    for number, write in enumerate(writes, start=1):
        channel.update([write])
        if channel.snapshot_frequency == 1:
            found.append(number - last)
            last = number
    return found


def test_whole_copies_come_ever_more_rarely_as_a_file_grows() -> None:
    channel = GrowingChannel(reduce_files, dict).from_checkpoint({"/a": {"content": ""}})
    found = distances(channel, [{"/a": {"append": "line\n" * 20}} for _ in range(2_000)])

    assert SNAPSHOT_AFTER <= found[0] < 2 * SNAPSHOT_AFTER
    assert found[1:] == sorted(found[1:])
    assert found[-1] > 400


def test_a_whole_copy_is_due_until_it_was_asked_for_and_more_is_written() -> None:
    channel = GrowingChannel(reduce_files, dict).from_checkpoint({})
    for number in range(2 * SNAPSHOT_AFTER + 5):
        channel.update([{f"/{number}": text("text")}])

    twin = channel.copy()
    assert [channel.snapshot_frequency, channel.snapshot_frequency, twin.snapshot_frequency] == [1, 1, 1]
    channel.update([{"/next": "text"}])
    assert channel.snapshot_frequency > 1


def test_a_thread_of_many_short_runs_is_saved_whole_as_well() -> None:
    saved: dict[str, Any] = {}
    since: list[Any] = []
    copies: list[int] = []
    for run in range(500):
        channel = GrowingChannel(reduce_files, dict).from_checkpoint(saved)
        channel.replay_writes([("task", "files", write) for write in since])
        write = {f"/{run}": text("line\n" * 20)}
        channel.update([write])
        since.append(write)
        if channel.snapshot_frequency == 1:
            saved, since = channel.get(), []
            copies.append(run)

    assert 3 <= len(copies) <= 6
    assert copies[-1] > 400


def test_what_is_held_is_weighed_again_after_a_reset() -> None:
    channel = messages_channel().from_checkpoint([HumanMessage("x" * 100_000, id="long")])
    for number in range(SNAPSHOT_AFTER):
        channel.update([HumanMessage("short", id=f"{number}")])
    assert channel.snapshot_frequency > 1
    channel.update([RemoveMessage(id=REMOVE_ALL_MESSAGES)])

    assert channel.snapshot_frequency == 1


def test_what_is_replayed_counts_towards_the_next_whole_copy() -> None:
    channel = GrowingChannel(reduce_files, dict).from_checkpoint({})
    channel.replay_writes(
        [("task", "files", {"/same": text(f"text {number}")}) for number in range(SNAPSHOT_AFTER)]
    )
    channel.update([{"/last": text("text")}])

    assert channel.snapshot_frequency == 1


def test_weight_follows_what_is_saved_and_stops_in_circles() -> None:
    circle: list[Any] = ["x" * 500]
    circle.append({"round": [circle]})

    assert weight(AIMessage("x" * 1_000)) > 1_000
    assert 500 < weight(circle) < 600
    assert weight([{"a": "x" * 500}, ("y" * 300, b"z" * 200, 1, None)]) > 1_000


def test_weight_looks_once_into_what_is_there_many_times() -> None:
    shared: Any = ["x" * 500]
    for _ in range(60):
        shared = [shared, shared]

    assert 500 < weight(shared) < 1_500


@tool(response_format="content_and_artifact")
def tree() -> tuple[str, Any]:
    """Make a tree whose parts know their parents."""
    root: dict[str, Any] = {"children": []}
    root["children"].append({"parent": root})
    return "A tree.", root


def test_an_artifact_that_refers_to_itself_does_not_stop_a_long_run() -> None:
    model = ScriptedModel(*[call("tree")] * 40, "Done.")
    result = create_deep_agent(model, tools=[tree]).invoke({"messages": "Go"}, {"recursion_limit": 1_000})

    assert result["messages"][-1].text == "Done."


HANDED = ParentState("call", {"/a": {"content": "one", "encoding": "utf-8"}})
CHANGES: list[Any] = [{"/b": "new"}, {"/a": {"edit": ["one", "two", False], "modified_at": "now"}}]


def handed_channel(saved: Any) -> InheritedChannel:
    return InheritedChannel(reduce_files, dict).from_checkpoint(saved)


def contents(channel: InheritedChannel) -> dict[str, str]:
    return {path: data["content"] for path, data in channel.get().items()}


def test_what_was_read_elsewhere_and_saved_whole_loses_nothing() -> None:
    elsewhere = handed_channel({})
    elsewhere.replay_writes([("task", "files", write) for write in (placeholder_for(HANDED), *CHANGES)])
    elsewhere.update([{"/c": "later"}])
    assert elsewhere.get()["/b"]["content"] == "new"

    with inherit_from(HANDED):
        assert contents(handed_channel(elsewhere.get())) == {"/a": "two", "/b": "new", "/c": "later"}


def test_a_mark_of_another_caller_stays_a_mark() -> None:
    with inherit_from(ParentState("other", {"/z": {"content": "not this"}})):
        channel = handed_channel({})
        channel.update([placeholder_for(HANDED)])
        channel.update(CHANGES)

    assert "/z" not in channel.get()
    with inherit_from(HANDED):
        assert contents(handed_channel(channel.get())) == {"/a": "two", "/b": "new"}


def test_a_child_that_was_given_its_files_whole_keeps_those() -> None:
    with inherit_from(HANDED):
        channel = handed_channel({})
        channel.replay_writes([("task", "files", {"/old": "as saved by an earlier version"})])

    assert contents(channel) == {"/old": "as saved by an earlier version"}


@pytest.mark.parametrize("name", ["messages", "files", "file_versions"])
def test_agents_keep_what_grows_in_these_channels(name: str) -> None:
    agent = create_deep_agent(ScriptedModel("Hi."), checkpointer=InMemorySaver())

    assert isinstance(agent.channels[name], GrowingChannel)


@pytest.mark.parametrize("schema", [None, DeepAgentState])
def test_a_subagent_of_a_plain_spec_keeps_messages_as_deltas(schema: Any) -> None:
    spec = {"name": "plain", "model": ScriptedModel("Hi."), "tools": []}
    child: Any = create_sub_agent(spec, state_schema=schema)

    assert isinstance(child.channels["messages"], MessagesChannel)

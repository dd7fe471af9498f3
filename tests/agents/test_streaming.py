"""Every way to follow a run: modes, subgraphs, event streams, and what none of them shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.rubric import RubricMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware, SummarizationToolMiddleware
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")

THREAD: Any = {"configurable": {"thread_id": "t"}}
HELLO: Any = {"messages": [("user", "hello")]}
ROOT: tuple[str, ...] = ()
SECRET = "xyzzy"


@tool
def ping(number: int) -> str:
    """Ping."""
    get_stream_writer()({"pinged": number})
    return "pong"


def worker(name: str, *script: Any, **more: Any) -> Any:
    return {"name": name, "description": "works", "model": ScriptedModel(*script), **more}


def delegating(*names: str, **settings: Any) -> Any:
    """Make an agent that pings, hands a task to each of these at once, and answers."""
    tasks = [("task", {"description": f"for {name}", "subagent_type": name}) for name in names]
    workers = [
        worker(name, call("ping", number=at), f"{name} is done")
        for at, name in enumerate(dict.fromkeys(names), start=1)
    ]
    model = ScriptedModel(call("ping", number=0), calls(*tasks), "All done.")
    return create_deep_agent(model, tools=[ping], subagents=workers, name="lead", **settings)


def nesting() -> Any:
    """Make an agent whose subagent has a subagent."""
    script = (call("task", description="down", subagent_type="low"), "middle words")
    middle = create_deep_agent(ScriptedModel(*script), subagents=[worker("low", "deep words")])
    compiled: Any = {"name": "middle", "description": "leads", "runnable": middle}
    model = ScriptedModel(call("task", description="go", subagent_type="middle"), "high words")
    return create_deep_agent(model, subagents=[compiled])


def texts(pieces: list[Any]) -> str:
    return "".join(message.text for message, _ in pieces if isinstance(message, AIMessage))


def test_values_are_whole_states(call_mode: CallMode) -> None:
    states = call_mode.stream(delegating("helper"), HELLO, stream_mode="values")

    assert [len(state["messages"]) for state in states] == [1, 2, 3, 4, 5, 6]
    assert states[-1]["messages"][-1].text == "All done."


def test_updates_are_the_default(call_mode: CallMode) -> None:
    updates = call_mode.stream(delegating("helper"), HELLO)

    nodes = [node for update in updates for node in update]
    assert nodes == ["PatchToolCallsMiddleware.before_agent", *["model", "tools"] * 2, "model"]


def test_tokens_of_subagents_come_with_subgraphs_only(call_mode: CallMode) -> None:
    alone = call_mode.stream(delegating("helper"), HELLO, stream_mode="messages")
    everyone = call_mode.stream(delegating("helper"), HELLO, stream_mode="messages", subgraphs=True)

    assert texts(alone) == "All done."
    spoken = [
        (len(namespace), metadata["lc_agent_name"], message.text)
        for namespace, (message, metadata) in everyone
        if isinstance(message, AIMessage) and message.text
    ]
    assert spoken == [
        (1, "helper", "helper "),
        (1, "helper", "is "),
        (1, "helper", "done"),
        (0, "lead", "All "),
        (0, "lead", "done."),
    ]


def test_tags_and_metadata_of_the_caller_reach_every_token() -> None:
    config: Any = {"tags": ["mine"], "metadata": {"user": "u1"}}

    pieces = list(delegating("helper").stream(HELLO, config, stream_mode="messages", subgraphs=True))

    seen = {
        (metadata["lc_agent_name"], metadata["user"], "mine" in metadata["tags"])
        for _, (message, metadata) in pieces
        if isinstance(message, AIMessage)
    }
    assert seen == {("lead", "u1", True), ("helper", "u1", True)}


def test_a_nested_subagent_is_a_namespace_deeper() -> None:
    pieces = list(nesting().stream(HELLO, stream_mode="messages", subgraphs=True))

    said: dict[int, str] = {}
    for namespace, (message, _) in pieces:
        if isinstance(message, AIMessage):
            said[len(namespace)] = said.get(len(namespace), "") + message.text
    assert said == {0: "high words", 1: "middle words", 2: "deep words"}


def test_what_tools_write_comes_from_subagents_too() -> None:
    alone = list(delegating("one", "two").stream(HELLO, stream_mode="custom"))
    everyone = list(delegating("one", "two").stream(HELLO, stream_mode="custom", subgraphs=True))

    assert alone == [{"pinged": 0}]
    assert sorted((len(namespace), data["pinged"]) for namespace, data in everyone) == [
        (0, 0),
        (1, 1),
        (1, 2),
    ]


def test_tasks_tell_what_begins_and_ends() -> None:
    tasks = list(delegating("helper").stream(HELLO, stream_mode="tasks", subgraphs=True))

    begun = [each["name"] for namespace, each in tasks if namespace == ROOT and "result" not in each]
    ended = [each["name"] for namespace, each in tasks if namespace == ROOT and "result" in each]
    assert begun == ended
    assert begun.count("tools") == 2
    assert {each["metadata"]["lc_agent_name"] for _, each in tasks if "metadata" in each} == {
        "lead",
        "helper",
    }


def test_checkpoints_and_debug_are_of_the_whole_run() -> None:
    agent = delegating("helper", checkpointer=InMemorySaver())

    chunks = list(agent.stream(HELLO, THREAD, stream_mode=["checkpoints", "debug"], subgraphs=True))

    for mode, kinds in (("checkpoints", None), ("debug", {"task", "task_result", "checkpoint"})):
        seen = [(namespace, data) for namespace, each, data in chunks if each == mode]
        assert {len(namespace) for namespace, _ in seen} == {0, 1}
        assert kinds is None or {data["type"] for _, data in seen} == kinds


def test_several_modes_name_theirs() -> None:
    modes = ["values", "updates", "messages", "custom"]
    chunks = list(delegating("helper").stream(HELLO, stream_mode=modes))
    deep = list(delegating("helper").stream(HELLO, stream_mode=modes, subgraphs=True))
    named = list(delegating("helper").stream(HELLO, stream_mode=modes, subgraphs=True, version="v2"))

    assert {mode for mode, _ in chunks} == set(modes)
    assert {mode for _, mode, _ in deep} == set(modes)
    assert {(each["type"], len(each["ns"])) for each in named} == {
        (mode, n) for mode in modes for n in (0, 1)
    }


def test_a_question_to_a_person_arrives_in_the_updates_once() -> None:
    agent = delegating("one", "two", interrupt_on={"ping": True}, checkpointer=InMemorySaver())
    list(agent.stream(HELLO, THREAD))

    updates = list(agent.stream(Command(resume={"decisions": [{"type": "approve"}]}), THREAD))

    asked = [each.id for update in updates for each in update.get("__interrupt__", ())]
    assert len(asked) == len(set(asked)) == 2
    assert {each.id for each in agent.get_state(THREAD).interrupts} == set(asked)


def remembering(**settings: Any) -> Any:
    model = ScriptedModel(call("write_file", file_path="/a.md", content="A"), "Done.")
    return create_deep_agent(model, memory=["/m.md"], checkpointer=InMemorySaver(), **settings)


PUBLIC = {"messages", "files", "todos", "structured_response"}


def test_private_state_is_in_no_stream_of_values_or_updates_and_is_kept(call_mode: CallMode) -> None:
    for agent in (remembering(), remembering().with_config({"tags": ["a"]})):
        chunks = call_mode.stream(agent, HELLO, THREAD, stream_mode=["values", "updates"], subgraphs=True)

        shown = {key for _, mode, data in chunks for key in (data if mode == "values" else written(data))}
        assert shown <= PUBLIC
        assert {"file_versions", "memory_contents"} <= set(agent.get_state(THREAD).values)


def written(update: dict[str, Any]) -> set[str]:
    return {key for each in update.values() for key in each or ()}


def test_who_asks_for_private_state_gets_it() -> None:
    agent = remembering()

    *_, last = list(agent.stream(HELLO, THREAD, stream_mode="values", output_keys=agent.stream_channels_list))

    assert {"file_versions", "memory_contents", "messages"} <= set(last)


def test_private_state_stays_inside_when_the_agent_is_part_of_a_graph() -> None:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", remembering())
    graph.add_edge(START, "agent")

    chunks = list(graph.compile().stream(HELLO, stream_mode=["values", "updates"], subgraphs=True))

    inside = [data for namespace, mode, data in chunks if namespace and mode == "values"]
    assert inside
    assert {key for data in inside for key in data} <= PUBLIC


def test_newer_events_show_no_private_state() -> None:
    run: Any = remembering().stream_events(HELLO, THREAD, version="v3")

    states = list(run.values)

    assert {key for state in states for key in state} <= PUBLIC
    assert set(run.output) <= PUBLIC


# What nobody is meant to read


def summing(**settings: Any) -> SummarizationMiddleware:
    writer = ScriptedModel(f"{SECRET} summary", f"{SECRET} summary", f"{SECRET} summary")
    return SummarizationMiddleware(
        writer, backend=StateBackend(), trigger=("messages", 3), keep=("messages", 1), **settings
    )


def summing_up() -> Any:
    looks = [call("ls", path="/") for _ in range(3)]
    helper = worker("helper", *looks[:2], "Done.", middleware=[summing()])
    model = ScriptedModel(looks[2], call("task", description="list", subagent_type="helper"), "Done.")
    return create_deep_agent(model, middleware=[summing()], subagents=[helper], checkpointer=InMemorySaver())


def compacting() -> Any:
    quiet = SummarizationMiddleware(
        ScriptedModel(f"{SECRET} summary"),
        backend=StateBackend(),
        trigger=("messages", 90),
        keep=("messages", 1),
    )
    model = ScriptedModel(call("ls", path="/"), call("compact_conversation"), "Done.")
    return create_deep_agent(
        model, middleware=[quiet, SummarizationToolMiddleware(quiet)], checkpointer=InMemorySaver()
    )


def graded() -> Any:
    def grader() -> RubricMiddleware:
        passed = {"name": "c", "passed": True}
        said = call("GraderResponse", result="satisfied", explanation=SECRET, criteria=[passed])
        return RubricMiddleware(model=ScriptedModel(said.model_copy(update={"content": SECRET})))

    helper = worker("helper", "Listed.", middleware=[grader()])
    model = ScriptedModel(call("task", description="list", subagent_type="helper"), "Done.")
    return create_deep_agent(model, middleware=[grader()], subagents=[helper], checkpointer=InMemorySaver())


def clipping() -> Any:
    """Make an agent whose requests show an old argument clipped, with a notice in its place."""
    clips = summing(
        truncate_args_settings={"trigger": ("messages", 3), "keep": ("messages", 1), "max_length": 10}
    )
    model = ScriptedModel(
        call("write_file", file_path="/a", content="word " * 100), call("ls", path="/"), "Done."
    )
    return create_deep_agent(model, middleware=[clips], checkpointer=InMemorySaver())


SECRETIVE: list[Callable[[], Any]] = [summing_up, compacting, graded, clipping]


@pytest.mark.parametrize("make", SECRETIVE, ids=lambda make: make.__name__)
def test_no_word_of_summaries_and_graders_is_among_the_messages(
    make: Callable[[], Any], call_mode: CallMode
) -> None:
    given = {**HELLO, "rubric": "c"} if make is graded else HELLO

    for subgraphs in (False, True):
        thread: Any = {"configurable": {"thread_id": str(subgraphs)}}
        pieces = call_mode.stream(make(), given, thread, stream_mode="messages", subgraphs=subgraphs)
        read = [piece[1] if subgraphs else piece for piece in pieces]
        assert read
        assert SECRET not in str([message for message, _ in read])


@pytest.mark.parametrize("make", SECRETIVE, ids=lambda make: make.__name__)
def test_no_word_of_summaries_and_graders_is_in_the_newer_events(make: Callable[[], Any]) -> None:
    given = {**HELLO, "rubric": "c"} if make is graded else HELLO
    run: Any = make().stream_events(given, THREAD, version="v3")
    seen: list[Any] = []
    names: list[Any] = []

    for name, item in run.interleave("messages", "subagents", "values"):
        if name == "messages":
            seen.append(item.text.get() if hasattr(item.text, "get") else str(item.text))
        elif name == "values":
            seen.append(item)
        else:
            names.append(item.name)
            seen += [str(message.text) for message in item.messages]

    assert seen
    assert SECRET not in str(seen)
    assert set(names) <= {"helper"}


def test_a_handle_has_what_its_subagent_says() -> None:
    run: Any = delegating("helper").stream_events(HELLO, version="v3")

    said = {handle.name: [str(message.text) for message in handle.messages] for handle in run.subagents}

    assert said == {"helper": ["", "helper is done"]}


def test_newer_events_can_be_awaited_side_by_side() -> None:
    async def followed() -> tuple[list[str], list[str]]:
        run: Any = await delegating("one", "two").astream_events(HELLO, version="v3")

        async def read() -> list[str]:
            return [str(await message.text) async for message in run.messages]

        async def met() -> list[str]:
            return [handle.name async for handle in run.subagents]

        return tuple(await asyncio.gather(read(), met()))  # pyright: ignore[reportReturnType]

    said, names = asyncio.run(followed())

    assert said[-1] == "All done."
    assert sorted(names) == ["one", "two"]


@pytest.mark.filterwarnings("ignore:astream_events version='v1':DeprecationWarning")
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_older_events_tell_whose_token_it_is(version: Any) -> None:
    async def heard() -> list[Any]:
        stream = delegating("helper").astream_events(HELLO, version=version)
        return [event async for event in stream if event["event"] == "on_chat_model_stream"]

    events = asyncio.run(heard())

    said: dict[str, str] = {}
    for event in events:
        name = event["metadata"]["lc_agent_name"]
        said[name] = said.get(name, "") + event["data"]["chunk"].text
    assert said == {"lead": "All done.", "helper": "helper is done"}


def test_older_events_cannot_be_had_blocking() -> None:
    with pytest.raises(NotImplementedError):
        list(delegating("helper").stream_events(HELLO, version="v2"))


@pytest.mark.parametrize("name", ["stream", "astream"])
def test_a_stream_takes_what_langgraphs_takes_and_says_so(name: str) -> None:
    kinds = type(create_deep_agent(ScriptedModel())), CompiledStateGraph
    own, theirs = (getattr(kind, name) for kind in kinds)

    assert own is not theirs
    assert signature(own) == signature(theirs)

"""State that subagents change: the parent ends with what it would have written, whatever the reducer."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Annotated, Any, TypedDict, get_type_hints

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.channels import BinaryOperatorAggregate, Topic
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from langgraph.types import Command, Overwrite, interrupt

from deepagents import DeepAgentState, create_deep_agent
from deepagents.middleware.subagents.merge import diff_state
from deepagents.testing import Asked, ScriptedModel, calls
from tests.conftest import CallMode

Call = tuple[str, dict[str, Any]]
GO: dict[str, Any] = {"messages": "Go"}
BETA = "ignore::langchain_core._api.beta_decorator.LangChainBetaWarning"


def task(what: str, who: str = "general-purpose") -> Call:
    return "task", {"description": what, "subagent_type": who}


def note(what: str) -> Call:
    return "note", {"what": what}


def keeping(**kinds: Any) -> type[Any]:
    """Make a state schema with more keys."""
    make: Any = TypedDict
    return make("Keeping", {**get_type_hints(DeepAgentState, include_extras=True), **kinds})


def writing(updates: Mapping[str, Mapping[str, Any]]) -> BaseTool:
    @tool
    def note(what: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Note it."""
        said = ToolMessage("ok", tool_call_id=str(runtime.tool_call_id))
        return Command(update={**updates[what], "messages": [said]})

    return note


def working(first: Sequence[Call]) -> ScriptedModel:
    """Make a model that begins with these calls; as a subagent it notes what its task names."""

    def answer(asked: Asked) -> AIMessage:
        last = asked.messages[-1]
        if asked.last == "Go":
            return calls(*first)
        return calls(note(asked.last[-1])) if isinstance(last, HumanMessage) else AIMessage("Done.")

    return ScriptedModel(always=answer)


def state_after(
    first: Sequence[Call], kinds: Mapping[str, Any], begin: Mapping[str, Any], updates: Any
) -> dict[str, Any]:
    """Run an agent that begins with these calls, on keys of these kinds."""
    fork: Any = {"name": "twin", "description": "d", "mode": "fork"}
    agent = create_deep_agent(
        working(first), tools=[writing(updates)], state_schema=keeping(**kinds), subagents=[fork]
    )
    return agent.invoke({**GO, **begin})


def kept(kind: Any, begin: Any, writes: Mapping[str, Any], first: Sequence[Call]) -> Any:
    """Run it on one key of this kind, and return what the key holds in the end."""
    updates = {what: {"kept": written} for what, written in writes.items()}
    return state_after(first, {"kept": kind}, {"kept": begin}, updates)["kept"]


def add(one: Any, other: Any) -> Any:
    return one + other


def extend(one: list[Any], other: list[Any]) -> list[Any]:
    one.extend(other)
    return one


def greatest(one: int, other: int) -> int:
    return max(one, other)


def latest(_: Any, other: Any) -> Any:
    return other


def last_three(one: list[Any], other: list[Any]) -> list[Any]:
    return [*one, *other][-3:]


def in_front(one: list[Any], other: list[Any]) -> list[Any]:
    return [*other, *one]


def in_order(one: list[Any], other: list[Any]) -> list[Any]:
    return sorted([*one, *other])


def counted(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


def gathered(one: dict[str, list[int]], other: dict[str, list[int]]) -> dict[str, list[int]]:
    return {key: [*one.get(key, []), *other.get(key, [])] for key in {**one, **other}}


def nested(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {key: {**one.get(key, {}), **other.get(key, {})} for key in {**one, **other}}


def without_none(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**one, **other}.items() if value is not None}


class Opaque:
    """Equal to nothing but itself."""


class Refusing:
    """Cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise ArithmeticError


REDUCERS: dict[str, tuple[Any, Any, Any, Any]] = {
    "a sum of our own": (Annotated[int, add], 10, 1, 2),
    "the greatest": (Annotated[int, greatest], 3, 5, 4),
    "text": (Annotated[str, operator.add], "p", "a", "b"),
    "a tuple": (Annotated[tuple[str, ...], operator.add], ("p",), ("a",), ("b",)),
    "the last list": (Annotated[list[str], latest], ["p"], ["p", "a"], ["b"]),
    "the last three": (Annotated[list[str], last_three], ["p", "q", "r"], ["a"], ["b"]),
    "a list that grows in front": (Annotated[list[str], in_front], ["p"], ["a"], ["b"]),
    "a list in order": (Annotated[list[str], in_order], ["c", "z"], ["a"], ["b"]),
    "counts": (Annotated[dict[str, int], counted], {"x": 1, "y": 1}, {"x": 2}, {"x": 3, "z": 1}),
    "a counter": (Annotated[Counter[str], operator.add], Counter("xy"), Counter("xx"), Counter("z")),
    "lists by key": (Annotated[dict[str, Any], gathered], {"x": [1]}, {"x": [2]}, {"x": [3], "y": [4]}),
    "entries": (Annotated[dict[str, int], operator.or_], {"x": 1, "y": 1}, {"x": 2}, {"y": 3, "z": 4}),
    "entries of entries": (
        Annotated[dict[str, Any], nested],
        {"x": {"p": 1}},
        {"x": {"a": 2}},
        {"x": {"b": 3}},
    ),
    "entries that None takes away": (
        Annotated[dict[str, Any], without_none],
        {"x": 1},
        {"x": None},
        {"y": 2},
    ),
    "the last entries": (Annotated[dict[str, int], latest], {"x": 1, "y": 2}, {"x": 1}, {"y": 3}),
    "a set": (Annotated[set[str], operator.or_], {"p"}, {"a"}, {"p", "b"}),
    "either": (Annotated[bool, operator.or_], False, True, False),
    "a topic": (Annotated[list[str], Topic(str, accumulate=True)], ["p"], ["a"], ["b"]),
    "one value": (str, "p", "a", "b"),
}


@pytest.mark.filterwarnings(BETA)
def test_what_subagents_write_adds_up_as_the_agents_own_writes_do() -> None:
    kinds, begin, one, other = (
        {name.replace(" ", "_"): case[part] for name, case in REDUCERS.items()} for part in range(4)
    )

    def through(*first: Call) -> dict[str, Any]:
        state = state_after(first, kinds, begin, {"a": one, "b": other})
        return {name: state[name] for name in kinds}

    assert through(task("a")) == through(note("a"))
    assert through(task("a"), task("b")) == through(note("a"), note("b"))
    assert through(task("a", "twin")) == through(note("a"))


def test_rounding_counts_nothing_twice() -> None:
    assert kept(Annotated[float, add], 0.1, {"a": 0.7}, [task("a")]) == pytest.approx(0.8)
    assert kept(Annotated[float, latest], 1e-3, {"a": 1e9}, [task("a")]) == 1e9


def test_what_cannot_be_copied_or_compared_is_handed_on() -> None:
    lock, old, new, odd = Lock(), Opaque(), Opaque(), Refusing()

    assert kept(Annotated[list[Any], add], [lock], {"a": ["new"]}, [task("a")]) == [lock, "new"]
    first, *rest = kept(Annotated[list[Any], add], [old], {"a": [new]}, [task("a")])
    assert (first, len(rest)) == (old, 1)
    assert isinstance(kept(Annotated[Any, latest], old, {"a": odd}, [task("a")]), Refusing)


def test_a_reducer_that_changes_what_it_is_given_changes_no_state() -> None:
    given, returned = {"kept": ["p"]}, {"kept": ["p", "a"]}
    channels = {"kept": BinaryOperatorAggregate(list[str], extend)}

    assert diff_state(given, returned, channels, channels) == {"kept": ["a"]}
    assert (given, returned) == ({"kept": ["p"]}, {"kept": ["p", "a"]})


def test_what_no_write_explains_comes_back_whole() -> None:
    taken = Overwrite(["q"])

    assert kept(Annotated[list[str], operator.add], ["p"], {"a": taken}, [task("a")]) == ["p", "q"]


def test_messages_under_another_key_are_replaced_by_id() -> None:
    begin = [HumanMessage("one", id="1"), HumanMessage("two", id="2")]
    writes = {"a": [HumanMessage("ONE", id="1")], "b": [HumanMessage("TWO", id="2")]}

    found = kept(Annotated[list[AnyMessage], add_messages], begin, writes, [task("a"), task("b")])

    assert [each.text for each in found] == ["ONE", "TWO"]


class Counting(AgentMiddleware[Any, Any, Any]):
    state_schema = keeping(kept=Annotated[int, add])

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"kept": 1}


@pytest.mark.filterwarnings(BETA)
def test_middleware_that_counts_runs_counts_each_fork_once() -> None:
    fork: Any = {"name": "twin", "description": "d", "mode": "fork"}
    model = ScriptedModel(calls(task("a", "twin"), task("b", "twin")), "One.", "Two.", "Done.")

    result = create_deep_agent(model, middleware=[Counting()], subagents=[fork]).invoke(GO)

    assert result["kept"] == 3


def reports(result: Any) -> list[str]:
    return [each.text for each in result["messages"] if each.type == "tool"]


def test_subagents_that_set_one_value_end_no_run_and_the_last_call_wins(call_mode: CallMode) -> None:
    def answer(asked: Asked) -> AIMessage:
        if asked.last == "Go":
            return calls(task("a"), task("b"), task("rest"))
        alone = isinstance(asked.messages[-1], HumanMessage) and asked.last != "rest"
        return calls(note(asked.last)) if alone else AIMessage("Done.")

    saver, thread = InMemorySaver(), {"configurable": {"thread_id": "1"}}
    tools = [writing({"a": {"kept": "A"}, "b": {"kept": "B"}})]
    agent = create_deep_agent(
        ScriptedModel(always=answer), tools=tools, state_schema=keeping(kept=str), checkpointer=saver
    )
    result = call_mode.invoke(agent, GO | {"kept": "p"}, thread)

    assert result["kept"] == "B"
    told = [said for said in reports(result) if "'kept'" in said]
    assert told
    assert all("Another call of this turn also set 'kept'" in said for said in told)
    assert reports(result)[2] == "Done."
    assert call_mode.invoke(agent, GO, thread)["messages"][-1].text == "Done."


def test_subagents_that_set_the_same_value_are_told_nothing() -> None:
    model = working([task("a"), task("b")])
    agent = create_deep_agent(
        model, tools=[writing({"a": {"kept": "A"}, "b": {"kept": "A"}})], state_schema=keeping(kept=str)
    )
    result = agent.invoke(GO | {"kept": "p"})

    assert (result["kept"], reports(result)) == ("A", ["Done.", "Done."])


def test_one_value_set_on_both_sides_of_a_question_ends_no_run() -> None:
    @tool
    def note(what: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Note it, after asking about b."""
        answer = interrupt("b?") if what == "b" else "A"
        said = ToolMessage("ok", tool_call_id=str(runtime.tool_call_id))
        return Command(update={"kept": answer, "messages": [said]})

    thread: Any = {"configurable": {"thread_id": "1"}}
    model = working([task("a"), task("b")])
    agent = create_deep_agent(
        model, tools=[note], state_schema=keeping(kept=str), checkpointer=InMemorySaver()
    )
    agent.invoke(GO | {"kept": "p"}, thread)
    result = agent.invoke(Command(resume="B"), thread)

    assert result["kept"] == "B"
    assert result["messages"][-1].text == "Done."

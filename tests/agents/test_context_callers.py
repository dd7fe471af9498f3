"""What callers and providers do to a conversation: requests stay small and whole, and summaries seldom."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, cast
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.prompt_caching import AnthropicPromptCachingMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware, create_summarization_middleware
from deepagents.middleware.unsupported_content import UnsupportedContentMiddleware
from deepagents.testing import Asked, ScriptedModel, WindowedModel, assert_prefix_kept, call, history_faults
from tests.conftest import CallMode
from tests.middleware.archives import parse
from tests.middleware.claude import serving

pytestmark = pytest.mark.slow

THREAD: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 500}
SENTENCE = "鲸鱼是哺乳动物生活在海洋" * 60


def look_up(topic: str) -> str:
    """Look something up."""
    return topic + " fact." * 400


def read(topic: str) -> str:
    """Read a page."""
    return topic + SENTENCE


def steps(many: int, tool: str = "look_up") -> list[Any]:
    return [call(tool, topic=f"whale {number}") for number in range(many)]


def chinese(messages: Sequence[BaseMessage], tools: Any = ()) -> int:
    """Count as tokenizers do that have a token for each character that is not a letter."""
    told = "".join(map(str, (each.content for each in messages)))
    # Each of these takes three bytes, and all others here one.
    return count_tokens_approximately(messages, tools=list(tools)) + (len(told.encode()) - len(told)) // 2


class Putting(AgentMiddleware[Any, Any, Any]):
    """A middleware of a caller's own, which puts something into each request."""

    def __init__(self, change: Callable[[list[AnyMessage]], list[Any]]) -> None:
        super().__init__()
        self._change = change

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Hand on the changed request."""
        return handler(request.override(messages=self._change(request.messages)))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Hand on the changed request."""
        return await handler(request.override(messages=self._change(request.messages)))


def archived(agent: Any) -> list[BaseMessage]:
    files = agent.get_state(THREAD).values["files"]
    return [
        message
        for path, data in files.items()
        if path.startswith("/conversation_history/")
        for message in parse(data["content"])
    ]


# --- what a caller's middleware puts into requests ---


def test_a_message_in_the_form_of_a_dict_is_taken(call_mode: CallMode) -> None:
    said = {"role": "user", "content": "It is Monday."}
    model = WindowedModel(*steps(30), "Done.", window=12_000)
    agent = create_deep_agent(
        model, tools=[look_up], middleware=[Putting(lambda messages: [*messages, said])]
    )
    result = call_mode.invoke(agent, {"messages": "Look."}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert all(turn.last == "It is Monday." for turn in model.turns)
    assert model.summaries != []


def test_a_picture_in_the_form_of_a_dict_is_told_to_a_model_that_takes_none() -> None:
    picture = {"type": "image", "base64": "QUJD", "mime_type": "image/png"}
    model = WindowedModel("Done.", profile={"image_inputs": False})
    putting = Putting(lambda messages: [{"role": "user", "content": [picture]}, *messages])
    create_deep_agent(model, middleware=[putting]).invoke({"messages": "Look."})

    assert "is not shown" in str(model.turns[0].messages[1].content)


def test_without_compaction_it_is_taken_too() -> None:
    said = {"role": "user", "content": [{"type": "text", "text": "It is Monday."}]}
    model = ScriptedModel("Done.", profile={"image_inputs": False})
    layers = [Putting(lambda messages: [*messages, said]), UnsupportedContentMiddleware()]
    agent: Any = create_agent(model, middleware=layers)
    agent.invoke({"messages": "Look."})

    assert model.asked[0].last == "It is Monday."


def test_where_prompts_are_cached_it_is_taken_too() -> None:
    said = {"role": "user", "content": "It is Monday."}
    with serving() as claude:
        layers = [Putting(lambda messages: [*messages, said]), AnthropicPromptCachingMiddleware()]
        agent: Any = create_agent(claude.model(), middleware=layers)
        agent.invoke({"messages": "Look."})

    assert "It is Monday." in str(claude.asked[0]["messages"][-1])


@pytest.mark.parametrize("message_id", [None, "of the day"])
def test_context_put_in_front_is_in_every_request_and_in_no_archive(
    call_mode: CallMode, message_id: str | None
) -> None:
    context = HumanMessage("It is Monday.", id=message_id)
    model = WindowedModel(*steps(40), "Done.", window=12_000)
    agent = create_deep_agent(
        model,
        tools=[look_up],
        middleware=[Putting(lambda messages: [context, *messages])],
        checkpointer=InMemorySaver(),
    )
    call_mode.invoke(agent, {"messages": "Look."}, THREAD)

    assert len(model.summaries) > 2
    assert all(context in turn.messages for turn in model.turns)
    assert all("Monday" not in asked.last for asked in model.summaries)
    assert archived(agent) != []
    assert "It is Monday." not in {each.text for each in archived(agent)}


def test_calls_that_only_requests_have_stay_with_their_results() -> None:
    example: list[Any] = [
        {"role": "user", "content": "How does one look up?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"name": "look_up", "args": {"topic": "x"}, "id": "example", "type": "tool_call"}],
        },
        {"role": "tool", "tool_call_id": "example", "content": "x fact."},
    ]
    model = WindowedModel(*steps(40), "Done.", window=12_000)
    agent = create_deep_agent(
        model, tools=[look_up], middleware=[Putting(lambda messages: [*example, *messages])]
    )
    agent.invoke({"messages": "Look."}, THREAD)

    assert len(model.summaries) > 2
    assert all(history_faults(turn.messages) == [] for turn in model.turns)
    assert all("x fact." in [each.text for each in turn.messages] for turn in model.turns)


@pytest.mark.parametrize("named", [True, False])
def test_a_reminder_at_the_end_of_each_request_loses_no_report(named: bool) -> None:
    def reminding(messages: list[AnyMessage]) -> list[Any]:
        return [*messages, HumanMessage("It is Monday.", id=str(uuid4()) if named else None)]

    model = WindowedModel(*steps(60, "read"), "Done.", window=16_000, counter=chinese)
    agent = create_deep_agent(
        model, tools=[read], middleware=[Putting(reminding)], checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": "Read."}, THREAD)

    assert model.refused == []
    assert len(model.summaries) > 2


# --- what is done to the state ---


def test_deleting_the_last_exchange_loses_no_report() -> None:
    model = WindowedModel(window=16_000, counter=chinese)
    agent = create_deep_agent(model, tools=[read], checkpointer=InMemorySaver())
    for turn in range(20):
        known = len(model.summaries)
        model.then(*steps(4, "read"), "Done.")
        agent.invoke({"messages": f"Part {turn}."}, THREAD)
        messages = agent.get_state(THREAD).values["messages"]
        if len(model.summaries) > known:
            asked = max(at for at, each in enumerate(messages) if each.type == "human")
            gone = [RemoveMessage(each.id) for each in messages[asked:]]
            agent.update_state(THREAD, {"messages": gone})

    assert model.refused == []
    assert len(model.summaries) > 2


def test_after_all_messages_are_removed_nothing_of_them_is_shown() -> None:
    model = WindowedModel(*steps(20), "Done.", *steps(20), "Done.", window=12_000)
    agent = create_deep_agent(model, tools=[look_up], checkpointer=InMemorySaver())
    agent.invoke({"messages": "Whales, and keep it secret."}, THREAD)
    before = len(model.turns), len(model.summaries)
    agent.update_state(THREAD, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    result = agent.invoke({"messages": "Ships."}, THREAD)

    assert all("secret" not in str(turn.messages) for turn in model.turns[before[0] :])
    assert [each.text for each in model.turns[before[0]].messages[1:]] == ["Ships."]
    assert len(model.summaries) > before[1]
    assert result["messages"][-1].text == "Done."


def test_a_summary_outlives_the_messages_that_it_stands_for() -> None:
    model = WindowedModel(*steps(20), "Done.", "Hello.", window=12_000)
    agent = create_deep_agent(model, tools=[look_up], checkpointer=InMemorySaver())
    agent.invoke({"messages": "Whales."}, THREAD)
    gone = [RemoveMessage(each) for each in agent.get_state(THREAD).values["_summarized_ids"]]
    agent.update_state(THREAD, {"messages": gone})
    agent.invoke({"messages": "Say hello."}, THREAD)

    assert "<summary>" in model.turns[-1].messages[1].text


def test_a_history_sent_back_as_a_whole_is_not_taken_for_what_was_left_of_it() -> None:
    model = WindowedModel(window=12_000)
    agent = create_deep_agent(model, tools=[look_up])
    history: list[Any] = []
    for _ in range(6):
        model.then(*steps(12), "Done.")
        given = {"messages": [*history, HumanMessage("Look.")]}
        history = agent.invoke(given, {"recursion_limit": 500})["messages"]

    assert model.refused == []


def test_an_agent_as_a_node_is_not_misled_by_reports_of_an_earlier_turn() -> None:
    model = WindowedModel(window=12_000)
    graph: Any = StateGraph(cast(Any, MessagesState))
    graph.add_node("agent", create_deep_agent(model, tools=[look_up]))
    graph.add_edge(START, "agent")
    compiled = graph.compile(checkpointer=InMemorySaver())
    for _ in range(3):
        model.then(*steps(12), "Done.")
        compiled.invoke({"messages": "Look."}, THREAD)

    assert model.refused == []


def test_an_event_that_was_taken_away_leaves_no_report_of_it() -> None:
    model = WindowedModel(*steps(60), "Done.", "Hello.", window=12_000)
    agent = create_deep_agent(model, tools=[look_up], checkpointer=InMemorySaver())
    agent.invoke({"messages": "Look."}, THREAD)
    agent.update_state(THREAD, {"_summarization_event": None})
    agent.invoke({"messages": "Say hello."}, THREAD)

    assert model.refused == []
    assert model.turns[-1].tokens < 12_000


# --- two layers ---


class Mine(SummarizationMiddleware):
    """One under a name of its own."""


@pytest.mark.parametrize("trigger", [("fraction", 0.6), ("fraction", 0.95), None])
def test_a_subclass_under_its_own_name_and_the_usual_one_share_their_summaries(trigger: Any) -> None:
    model = WindowedModel(*steps(40), "Done.", window=12_000)
    mine = Mine(model, backend=StateBackend(), trigger=trigger, keep=("fraction", 0.1))
    agent = create_deep_agent(model, tools=[look_up], middleware=[mine], checkpointer=InMemorySaver())
    agent.invoke({"messages": "Look."}, THREAD)
    shown = [[each for each in turn.messages if "<summary>" in each.text] for turn in model.turns]
    kept = archived(agent)

    assert model.refused == []
    assert max(map(len, shown)) == 1
    assert len({each[0].id for each in shown if each}) == len(model.summaries) <= 5
    assert len(kept) == len({each.id for each in kept}) > 40
    assert_prefix_kept(model.turns, lambda broken: broken.after.messages[1].text.startswith("You are in the"))


# --- what counters and reports say ---


def test_a_counter_that_takes_whole_requests_only_is_enough() -> None:
    def doubled(messages: Sequence[BaseMessage], tools: Any = None) -> int:
        return 2 * count_tokens_approximately(messages, tools=tools or [])

    def counter(messages: Sequence[BaseMessage], tools: Any = None) -> int:
        if not messages or history_faults(list(messages)):
            raise ValueError("400: no valid request")
        return doubled(messages, tools)

    model = WindowedModel(*steps(40), "Done.", window=24_000, counter=doubled, honesty=None)
    own = create_summarization_middleware(model, StateBackend(), token_counter=counter)
    result = create_deep_agent(model, tools=[look_up], middleware=[own]).invoke({"messages": "Look."}, THREAD)

    assert result["messages"][-1].text == "Done."
    assert model.refused == []
    assert 2 <= len(model.summaries) <= 5


@pytest.mark.parametrize("honesty", [3.0, 10.0])
def test_reports_that_are_too_large_bring_no_summary_with_every_step(honesty: float) -> None:
    model = WindowedModel(*steps(60), "Done.", window=6_000, honesty=honesty)
    agent = create_deep_agent(model, tools=[look_up], checkpointer=InMemorySaver())
    agent.invoke({"messages": "Look."}, THREAD)

    assert model.refused == []
    assert len(model.summaries) <= 30


def test_reasoning_that_is_not_sent_again_takes_no_room() -> None:
    def reasoning(number: int) -> Callable[[Asked], AIMessage]:
        def answer(asked: Asked) -> AIMessage:
            usage: Any = {
                "input_tokens": asked.tokens,
                "output_tokens": 9_000,
                "total_tokens": asked.tokens + 9_000,
                "output_token_details": {"reasoning": 8_950},
            }
            return call("look_up", topic=f"whale {number}").model_copy(update={"usage_metadata": usage})

        return answer

    model = WindowedModel(*map(reasoning, range(60)), "Done.", window=32_000)
    create_deep_agent(model, tools=[look_up]).invoke({"messages": "Look."}, THREAD)

    assert model.refused == []
    assert max(turn.tokens for turn in model.turns) > 0.75 * 32_000


@pytest.mark.parametrize("window", [200_000, 40_000])
def test_a_large_document_alone_brings_no_summary(window: int) -> None:
    def real(messages: Sequence[BaseMessage], tools: Any = None) -> int:
        texts = [each for each in messages if isinstance(each.content, str)]
        shown = 5_000 * (len(messages) - len(texts))
        return count_tokens_approximately(texts, tools=tools or []) + shown

    document: Any = {
        "type": "file",
        "base64": base64.b64encode(bytes(10_000_000)).decode(),
        "mime_type": "application/pdf",
    }
    model = WindowedModel(*["answer " * 2_000] * 4, "Done.", window=window, counter=real)
    agent = create_deep_agent(model, checkpointer=InMemorySaver())
    for _ in range(4):
        agent.invoke({"messages": "Tell me more."}, THREAD)
    agent.invoke({"messages": [HumanMessage(cast(Any, ["See:", document]))]}, THREAD)

    assert model.summaries == []
    assert model.refused == []

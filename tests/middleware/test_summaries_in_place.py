"""A summary is asked for in the conversation itself, so that a cache serves what came before."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import create_summarization_middleware
from deepagents.testing import (
    Asked,
    WindowedModel,
    assert_prefix_kept,
    call,
    is_summary_request,
    shared_prefix,
)
from tests.conftest import CallMode
from tests.middleware.claude import marked_texts, marks, serving
from tests.middleware.voyages import PIXEL, THREAD, research, steps

NOTES: dict[str, Any] = {"/AGENTS.md": {"content": "Use tabs.", "encoding": "utf-8"}}


def summed_up(model: WindowedModel) -> list[tuple[Asked, Asked]]:
    """Return each request for a summary, behind the request before it."""
    return [(before, each) for before, each in pairwise(model.asked) if is_summary_request(each)]


def test_the_request_for_a_summary_begins_with_the_whole_request_before_it(call_mode: CallMode) -> None:
    model = WindowedModel(*steps(20, much=2), "Done.", window=12_000)
    agent = create_deep_agent(model, tools=[research], memory=["/AGENTS.md"], checkpointer=InMemorySaver())
    result = call_mode.invoke(agent, {"messages": "Whales.", "files": NOTES}, THREAD)

    assert len(summed_up(model)) >= 2
    for before, asked in summed_up(model):
        assert shared_prefix(before, asked).whole
        assert asked.tool_names == before.tool_names
        assert asked.options == before.options
        assert "Use tabs." in asked.system
    assert_prefix_kept(model.asked, lambda each: "<summary>" in each.after.messages[1].text)
    assert len(result["messages"]) == 42
    assert not any(is_summary_request(Asked([each])) for each in result["messages"])


def test_nothing_of_it_is_streamed(call_mode: CallMode) -> None:
    model = WindowedModel(*steps(17), "Done.", window=12_000, summary=lambda asked: "The whale is white.")
    agent = create_deep_agent(model, tools=[research])
    parts = call_mode.stream(agent, {"messages": "Whales."}, THREAD, stream_mode="messages")

    assert len(summed_up(model)) == 1
    assert "white" not in "".join(part[0].text for part in parts)


def test_a_call_instead_of_a_summary_is_not_run_and_the_messages_are_quoted() -> None:
    def want(asked: Asked) -> Any:
        return call("research", topic="krill") if asked.tools else "The whale is white."

    model = WindowedModel(*steps(17), "Done.", window=12_000, summary=want)
    result = create_deep_agent(model, tools=[research]).invoke({"messages": "Whales."}, THREAD)

    assert [bool(each.tools) for each in model.summaries] == [True, False]
    assert "<messages>\nMessages to summarize:" in model.summaries[1].last
    assert "The whale is white." in model.turns[-1].messages[1].text
    assert not any(
        isinstance(each, ToolMessage) and each.text.startswith("About krill") for each in result["messages"]
    )


def test_an_empty_answer_is_asked_for_again_too() -> None:
    model = WindowedModel(
        *steps(17), "Done.", window=12_000, summary=lambda asked: "" if asked.tools else "The whale is white."
    )
    create_deep_agent(model, tools=[research]).invoke({"messages": "Whales."}, THREAD)

    assert "The whale is white." in model.turns[-1].messages[1].text


class Whale(BaseModel):
    """What is to be found out."""

    name: str


@pytest.mark.parametrize("why", ["another model", "a form of answers", "no room", "less may be read"])
def test_elsewhere_the_messages_are_quoted(why: str) -> None:
    jump = call("research", topic="krill. " * 2_200) if why == "no room" else steps(1)[0]
    end: Any = call("Whale", name="Moby") if why == "a form of answers" else "Done."
    model = WindowedModel(*steps(10), jump, *steps(2 if why == "no room" else 6, 10), end, window=12_000)
    writer = WindowedModel(window=12_000, model_name="another") if why == "another model" else model
    most = 3_000 if why == "less may be read" else None
    own = [
        create_summarization_middleware(
            model, StateBackend(), summarizer=writer, trim_tokens_to_summarize=most
        )
    ]
    form = Whale if why == "a form of answers" else None
    agent = create_deep_agent(model, tools=[research], middleware=own, response_format=form)
    agent.invoke({"messages": "Whales."}, THREAD)

    assert writer.summaries
    assert not any(each.tools for each in writer.summaries)
    assert "<messages>\nMessages to summarize:" in writer.summaries[0].last


def test_media_are_named_by_their_files() -> None:
    picture: Any = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
    asked = HumanMessage([{"type": "text", "text": "What is this?"}, picture])
    model = WindowedModel(*steps(17), "Done.", window=12_000)
    create_deep_agent(model, tools=[research]).invoke({"messages": [asked]}, THREAD)

    assert 'Their media, in order: <image url="/conversation_history/media/' in model.summaries[0].last


def test_marks_for_the_cache_stand_in_the_same_places() -> None:
    with serving() as claude:
        model = claude.model(profile={"max_input_tokens": 12_000})
        for n in range(16):
            claude.will_call("research", topic=f"whale {n}")
        agent = create_deep_agent(model, tools=[research], memory=["/AGENTS.md"])
        agent.invoke({"messages": "Whales.", "files": NOTES})
        at = next(
            at
            for at, body in enumerate(claude.asked)
            if "working notes" in str(body["messages"][-1]["content"])
        )
        before, asked = claude.asked[at - 1], claude.asked[at]

    assert marks(asked) == marks(before)
    assert marked_texts(asked) == marked_texts(before)
    assert (asked["system"], asked["tools"]) == (before["system"], before["tools"])
    assert asked["messages"][: len(before["messages"]) - 1] == before["messages"][:-1]
    assert "tool_choice" not in asked


def test_a_request_for_a_summary_is_never_refused_as_too_long() -> None:
    def report(lines: int) -> str:
        """Report."""
        return "A line of it. " * lines

    # One large result brings the context from two thirds of the window to just below all of it.
    for lines in range(450, 525, 12):
        script = [*steps(4), call("report", lines=lines), "Done."]
        model = WindowedModel(*script, window=6_000, honesty=None)
        create_deep_agent(model, tools=[research, report]).invoke({"messages": "Whales."}, THREAD)

        assert [each for each in model.summaries if model.refuses(each)] == [], lines

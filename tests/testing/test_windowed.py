"""The model with a window counts as it says, refuses what is too long, and tells its usage."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolCall
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import tool

from deepagents.errors import ScriptError
from deepagents.testing import WindowedModel, call, is_summary_request
from tests.conftest import CallMode


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_it_says_how_large_its_window_is() -> None:
    assert WindowedModel(window=1_000).profile == {"max_input_tokens": 1_000}


def test_each_request_is_kept_with_its_size(call_mode: CallMode) -> None:
    model = WindowedModel("one", "two")
    call_mode.invoke(model, "Hi")
    call_mode.invoke(model.bind_tools([add]), [SystemMessage("Be kind."), HumanMessage("Hi")])

    assert model.asked[0].tokens == count_tokens_approximately([HumanMessage("Hi")])
    assert model.asked[1].tokens == count_tokens_approximately(
        [SystemMessage("Be kind."), HumanMessage("Hi")], tools=[*model.asked[1].tools]
    )


def test_what_is_above_the_window_is_refused_and_takes_nothing_from_the_script(call_mode: CallMode) -> None:
    with WindowedModel("short", window=100) as model:
        with pytest.raises(ContextOverflowError, match="maximum context length is 100"):
            call_mode.invoke(model, "x" * 1_000)
        assert call_mode.invoke(model, "x").text == "short"

    assert [len(each) for each in (model.refused, model.turns, model.asked)] == [1, 1, 2]


def test_a_request_as_large_as_the_window_is_taken() -> None:
    size = count_tokens_approximately([HumanMessage("x" * 1_000)])

    assert WindowedModel("ok", window=size).invoke("x" * 1_000).text == "ok"
    with pytest.raises(ContextOverflowError):
        WindowedModel("ok", window=size - 1).invoke("x" * 1_000)


def test_a_counter_of_the_callers_own_decides() -> None:
    def one_each(messages: list[Any], tools: Any = None) -> int:
        return len(messages)

    model = WindowedModel("ok", window=1, counter=one_each)

    assert model.invoke("x" * 10_000).text == "ok"
    with pytest.raises(ContextOverflowError):
        model.invoke(["a", "b"])


def test_usage_is_told_as_a_provider_tells_it(call_mode: CallMode) -> None:
    model = WindowedModel(call("add", a=1, b=2))
    said: AIMessage = call_mode.invoke(model, "Hi")
    usage = said.usage_metadata

    assert usage is not None
    assert usage["input_tokens"] == model.asked[0].tokens
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > usage["input_tokens"]
    assert said.response_metadata["model_provider"] == "scripted"


def test_usage_can_be_told_too_low_or_not_at_all(call_mode: CallMode) -> None:
    low, silent = WindowedModel("ok", honesty=0.5), WindowedModel("ok", honesty=None)

    assert call_mode.invoke(low, "x" * 4_000).usage_metadata["input_tokens"] == low.asked[0].tokens // 2
    assert call_mode.invoke(silent, "Hi").usage_metadata is None


def test_usage_that_the_script_tells_stays() -> None:
    told: Any = {"input_tokens": 7, "output_tokens": 1, "total_tokens": 8}

    assert WindowedModel(AIMessage("ok", usage_metadata=told)).invoke("Hi").usage_metadata == told


def test_requests_for_a_summary_have_an_answer_of_their_own(call_mode: CallMode) -> None:
    model = WindowedModel("a reply", summary=lambda asked: f"In short: {asked.last[-9:]}")
    short = call_mode.invoke(model, "Summarize.\n<messages>\nHi\nthe end</messages>")

    assert short.text == "In short: messages>"
    assert call_mode.invoke(model, "Hi").text == "a reply"
    assert [len(model.summaries), len(model.turns)] == [1, 1]


def test_a_request_with_tools_is_never_one_for_a_summary() -> None:
    model = WindowedModel("ok")
    model.bind_tools([add]).invoke("What does <messages> mean?")

    assert not is_summary_request(model.asked[0])


def test_a_history_that_providers_refuse_fails_the_test_unless_that_is_wanted(call_mode: CallMode) -> None:
    history = ["Hi", AIMessage("", tool_calls=[ToolCall(name="add", args={}, id="1")]), HumanMessage("So?")]

    with pytest.raises(ScriptError, match="no result for call '1'"):
        call_mode.invoke(WindowedModel("ok"), history)
    assert call_mode.invoke(WindowedModel("ok", strict=False), history).text == "ok"


def test_a_streamed_reply_tells_its_usage_once(call_mode: CallMode) -> None:
    pieces: list[Any] = call_mode.stream(WindowedModel("one two three"), "Hi")
    whole: Any = sum(pieces[1:], pieces[0])

    assert whole.usage_metadata["total_tokens"] == sum(
        piece.usage_metadata["total_tokens"] for piece in pieces if piece.usage_metadata
    )
    assert whole.usage_metadata["input_tokens"] > 0

"""The scripted model is strict: it says what it was told, keeps what it was asked, and fails loudly."""

from __future__ import annotations

import asyncio
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.tools import StructuredTool, tool

from deepagents.errors import ScriptError
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests.conftest import CallMode


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_replies_come_in_order(call_mode: CallMode) -> None:
    with ScriptedModel("one", AIMessage("two")) as model:
        said = [call_mode.invoke(model, "Hi").text for _ in range(2)]

    assert said == ["one", "two"]


def test_a_function_answers_from_the_request(call_mode: CallMode) -> None:
    model = ScriptedModel(lambda asked: f"You said {asked.last}")

    assert call_mode.invoke(model, "Hi").text == "You said Hi"


def test_always_answers_every_request() -> None:
    model = ScriptedModel(always=lambda asked: asked.last.upper())

    assert [model.invoke(word).text for word in ("a", "b")] == ["A", "B"]


def test_a_model_that_answers_for_hours_may_forget_what_it_was_asked() -> None:
    model = ScriptedModel(always=lambda asked: asked.last.upper(), remembers=False)
    assert [model.invoke(text).content for text in ("Hi", "Ho")] == ["HI", "HO"]
    assert not model.asked


def test_a_model_that_forgets_still_counts_its_requests() -> None:
    model = ScriptedModel("Hi", remembers=False)
    model.invoke("Hi")

    with pytest.raises(ScriptError, match="request 2 ended with 'Ho'"):
        model.invoke("Ho")


def test_a_model_does_not_keep_the_tools_of_every_run() -> None:
    model = ScriptedModel()

    def use_a_new_tool() -> weakref.ref[Any]:
        made = StructuredTool.from_function(lambda: "now", name="look", description="Look.")
        model.bind_tools([made])
        return weakref.ref(made)

    first, *_ = [use_a_new_tool() for _ in range(600)]
    gc.collect()

    assert first() is None


def test_an_exception_is_raised(call_mode: CallMode) -> None:
    with pytest.raises(TimeoutError, match="slow"):
        call_mode.invoke(ScriptedModel(TimeoutError("slow")), "Hi")


def test_requests_are_kept_with_their_tools(call_mode: CallMode) -> None:
    model = ScriptedModel("ok")
    call_mode.invoke(model.bind_tools([add], tool_choice="any"), [("system", "Be kind."), HumanMessage("Hi")])
    asked = model.asked[0]

    assert (asked.system, asked.last, asked.tool_names) == ("Be kind.", "Hi", ["add"])
    assert asked.options["tool_choice"] == "any"


def test_a_reply_streams_in_pieces_that_add_up(call_mode: CallMode) -> None:
    reply = calls(("add", {"a": 1, "b": 2}), text="Let me add")
    pieces: list[AIMessageChunk] = call_mode.stream(ScriptedModel(reply), "Hi")
    whole = sum(pieces[1:], pieces[0])

    assert len(pieces) > 3
    assert whole.text == "Let me add"
    assert [(each["name"], each["args"]) for each in whole.tool_calls] == [("add", {"a": 1, "b": 2})]


def test_running_out_fails_loudly(call_mode: CallMode) -> None:
    with pytest.raises(ScriptError, match="run out.*'Hi'"):
        call_mode.invoke(ScriptedModel(), "Hi")


def test_replies_left_over_fail_loudly() -> None:
    with pytest.raises(ScriptError, match="1 scripted replies.*'two'"), ScriptedModel("one", "two") as model:
        model.invoke("Hi")


def test_another_failure_is_not_hidden_by_what_is_left() -> None:
    with pytest.raises(KeyError), ScriptedModel("one"):
        raise KeyError("first")


def test_a_script_can_be_added_to() -> None:
    with ScriptedModel("one").then("two") as model:
        assert [model.invoke("Hi").text for _ in range(2)] == ["one", "two"]


def test_every_call_has_an_id_of_its_own() -> None:
    made = [*calls(("add", {}), ("add", {})).tool_calls, *call("add").tool_calls]

    assert len({each["id"] for each in made}) == 3


def test_parallel_callers_each_get_one_reply() -> None:
    with ScriptedModel(*(str(number) for number in range(50))) as model, ThreadPoolExecutor(10) as pool:
        said = list(pool.map(lambda _: model.invoke("Hi").text, range(50)))

    assert sorted(said, key=int) == [str(number) for number in range(50)]
    assert len(model.asked) == 50


def test_many_awaiting_callers_each_get_one_reply() -> None:
    async def everyone(model: ScriptedModel) -> list[Any]:
        return await asyncio.gather(*(model.ainvoke("Hi") for _ in range(50)))

    with ScriptedModel(*(str(number) for number in range(50))) as model:
        said = asyncio.run(everyone(model))

    assert len({message.text for message in said}) == 50


def test_a_request_speaks_of_empty_histories() -> None:
    assert (Asked([]).system, Asked([]).last) == ("", "")

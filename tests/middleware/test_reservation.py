"""Reservations: what a request may cost is kept from others, and no tree of agents is over its limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from threading import Event
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from benchmarks.trees import drill
from deepagents import Limits, Price, create_deep_agent
from deepagents.errors import LimitExceeded
from deepagents.middleware.limits import LIMIT_REACHED
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests.conftest import CallMode

PRICES = {"*": Price(input=1_000_000, output=1_000_000)}
SPARE: Any = {"name": "spare", "description": "d", "system_prompt": "You help."}


class Bounded(ScriptedModel):
    """Takes `max_tokens`, and reports input of 2,000 tokens."""

    max_tokens: int | None = 64_000
    thinking: Any = None

    # A class with a field of its own is taken for one that is made by keywords alone.
    def __init__(self, *replies: Any, **settings: Any) -> None:
        super().__init__(*replies, **settings)

    @property
    def bounds(self) -> list[int | None]:
        return [each.options.get("max_tokens") for each in self.asked]


def reporting(answer: AIMessage, written: int, read: int = 2_000) -> AIMessage:
    usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    return answer.model_copy(update={"usage_metadata": usage})


def two_tasks() -> AIMessage:
    return reporting(calls(*[("task", {"description": "d", "subagent_type": "spare"})] * 2), 100)


def stopped(result: Any) -> Any:
    return result["messages"][-1].additional_kwargs.get(LIMIT_REACHED)


def test_no_tree_of_agents_is_over_its_limits() -> None:
    found = asyncio.run(drill(range(12)))

    assert found.over == []
    assert found.stopped > 4


@pytest.mark.parametrize("limits", [Limits(tokens=9_000), Limits(money=9_000, prices=PRICES)])
def test_the_last_answer_gets_what_is_left(limits: Limits, call_mode: CallMode) -> None:
    model = Bounded(reporting(call("ls", path="/"), 1_000), reporting(AIMessage("Done."), 1))
    result = call_mode.invoke(create_deep_agent(model, limits=limits), {"messages": "Go"})

    first, second = model.bounds
    assert result["messages"][-1].text == "Done."
    assert 6_500 < (first or 0) < 7_500
    assert 3_500 < (second or 0) <= 4_000


def test_an_answer_is_not_bounded_where_enough_is_left() -> None:
    model = Bounded("Done.")
    create_deep_agent(model, limits=Limits(tokens=1_000_000)).invoke({"messages": "Go"})
    assert model.bounds == [None]


def test_a_model_that_takes_no_bound_is_asked_once_more() -> None:
    model = ScriptedModel(reporting(call("ls", path="/"), 1_000), reporting(AIMessage("Done."), 6_000))
    result = create_deep_agent(model, limits=Limits(tokens=7_000)).invoke({"messages": "Go"})

    assert result["messages"][-1].text == "Done."


def test_a_thinking_model_is_not_asked_for_less_than_it_thinks() -> None:
    model = Bounded(
        reporting(call("ls", path="/"), 1_000), thinking={"type": "enabled", "budget_tokens": 4_000}
    )
    result = create_deep_agent(model, limits=Limits(tokens=9_000)).invoke({"messages": "Go"})

    assert len(model.asked) == 1
    assert stopped(result)["spent"] == 3_000


def test_agents_wait_for_each_other_rather_than_stop(call_mode: CallMode) -> None:
    def answer(asked: Asked) -> AIMessage:
        if "You help." in asked.system:
            return reporting(AIMessage("Helped."), 1_000)
        return two_tasks() if asked.messages[-1].type == "human" else reporting(AIMessage("Done."), 10)

    # Beside an answer of 8,192 tokens there is no room for another one.
    model = Bounded(always=answer)
    agent = create_deep_agent(model, subagents=[SPARE], limits=Limits(tokens=18_000))
    result = call_mode.invoke(agent, {"messages": "Go"})

    assert [each.text for each in result["messages"][2:]] == ["Helped.", "Helped.", "Done."]
    assert min(each or 0 for each in model.bounds[1:3]) >= 8_192


def test_a_failed_request_gives_back_what_it_held(call_mode: CallMode) -> None:
    model = Bounded(ConnectionError("lost"), reporting(AIMessage("Done."), 10))
    agent = create_deep_agent(model, limits=Limits(tokens=9_000))
    with pytest.raises(ConnectionError):
        call_mode.invoke(agent, {"messages": "Go"})
    result = call_mode.invoke(agent, {"messages": "Go"})

    assert result["messages"][-1].text == "Done."
    assert model.bounds[0] == model.bounds[1]


async def test_a_cancelled_request_gives_back_what_it_held() -> None:
    begun, hangs = asyncio.Event(), Event()

    def answer(asked: Asked) -> AIMessage:
        loop.call_soon_threadsafe(begun.set)
        hangs.wait()
        return reporting(AIMessage("Late."), 10)

    loop = asyncio.get_running_loop()
    hanging = create_deep_agent(Bounded(always=answer))

    @tool
    async def give_up() -> str:
        """Ask, and wait for no answer."""
        asking = asyncio.ensure_future(hanging.ainvoke({"messages": "Go"}))
        await begun.wait()
        asking.cancel()
        await asyncio.wait([asking])
        return "cancelled"

    model = Bounded(reporting(call("give_up"), 10), reporting(AIMessage("Done."), 10))
    agent = create_deep_agent(model, [give_up], limits=Limits(tokens=12_000))
    result = await agent.ainvoke({"messages": "Go"})
    hangs.set()

    assert result["messages"][-1].text == "Done."


class Cut(Bounded):
    """Loses its connection, or says nothing more, behind the first piece of an answer."""

    hangs: bool = False

    def __init__(self, *replies: Any, **settings: Any) -> None:
        super().__init__(*replies, **settings)

    async def _astream(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        async for piece in super()._astream(*args, **options):
            yield piece
            if self.hangs:
                await asyncio.Event().wait()
            raise ConnectionError("lost")


@pytest.mark.parametrize(("hangs", "error"), [(False, ConnectionError), (True, TimeoutError)])
async def test_an_answer_that_is_cut_in_the_middle_gives_back_what_it_held(
    hangs: bool, error: type[Exception]
) -> None:
    cut = create_deep_agent(Cut("Once upon a time.", hangs=hangs))
    seen: list[Any] = []

    @tool
    async def listen() -> str:
        """Listen to an answer, for a while."""
        with pytest.raises(error):
            await hear_all()
        return "cut"

    async def hear_all() -> None:
        async with asyncio.timeout(0.5 if hangs else None):
            async for piece in cut.astream({"messages": "Go"}, stream_mode="messages"):
                seen.append(piece)

    model = Bounded(reporting(call("listen"), 10), reporting(AIMessage("Done."), 10))
    agent = create_deep_agent(model, [listen], limits=Limits(tokens=14_000))
    result = await agent.ainvoke({"messages": "Go"})

    assert result["messages"][-1].text == "Done."
    assert seen, "it was cut before it began"


def test_a_model_that_asks_an_agent_does_not_wait_for_itself(call_mode: CallMode) -> None:
    inside = create_deep_agent(Bounded(reporting(AIMessage("Inside."), 10)))
    model = Bounded(lambda _: reporting(inside.invoke({"messages": "Go"})["messages"][-1], 10))
    result = call_mode.invoke(create_deep_agent(model, limits=Limits(tokens=9_000)), {"messages": "Go"})

    assert result["messages"][-1].text == "Inside."


async def test_a_call_that_blocks_the_event_loop_does_not_wait_on_it() -> None:
    begun, goes_on = asyncio.Event(), Event()

    def answer(asked: Asked) -> AIMessage:
        loop.call_soon_threadsafe(begun.set)
        goes_on.wait()
        return reporting(AIMessage("Slow."), 10)

    loop = asyncio.get_running_loop()
    slow = create_deep_agent(Bounded(always=answer))
    blocking = create_deep_agent(Bounded(always=lambda _: reporting(AIMessage("Blocking."), 10)))

    @tool
    async def both() -> str:
        """Ask one agent, and meanwhile block for another one."""
        asking = asyncio.ensure_future(slow.ainvoke({"messages": "Go"}))
        await begun.wait()
        said = blocking.invoke({"messages": "Go"})["messages"][-1].text
        goes_on.set()
        await asking
        return said

    model = Bounded(reporting(call("both"), 10), reporting(AIMessage("Done."), 10))
    result = await create_deep_agent(model, [both], limits=Limits(tokens=17_000)).ainvoke({"messages": "Go"})

    assert [each.text for each in result["messages"][2:]] == ["Blocking.", "Done."]


def test_requests_are_taken_to_be_as_dense_as_the_last_one_was() -> None:
    model = Bounded(reporting(call("ls", path="/"), 100, read=20_000), reporting(call("ls", path="/"), 100))
    result = create_deep_agent(model, limits=Limits(tokens=40_000)).invoke({"messages": "Go"})

    assert len(model.asked) == 1
    assert stopped(result)["spent"] == 20_100


def test_a_dense_file_does_not_make_all_that_follows_as_dense() -> None:
    @tool
    def text() -> str:
        """Return a long text."""
        return "word " * 8_000

    # The first request has a PDF, say, for which the provider counts far more than its characters tell.
    model = Bounded(reporting(call("text"), 100, read=40_000), reporting(AIMessage("Done."), 10, read=50_000))
    result = create_deep_agent(model, [text], limits=Limits(tokens=150_000)).invoke({"messages": "Go"})

    assert result["messages"][-1].text == "Done."


async def test_a_model_that_a_tool_asks_keeps_its_part_from_others() -> None:
    begun, go = asyncio.Event(), Event()

    def answer(asked: Asked) -> AIMessage:
        loop.call_soon_threadsafe(begun.set)
        go.wait()
        return reporting(AIMessage("Slow."), 10)

    loop = asyncio.get_running_loop()
    slow, quick = ScriptedModel(answer), ScriptedModel(reporting(AIMessage("Quick."), 10))

    @tool
    async def ask() -> str:
        """Ask two models at once, and one of them once more."""
        asking = asyncio.ensure_future(slow.ainvoke("Go"))
        await begun.wait()
        with pytest.raises(LimitExceeded):
            await quick.ainvoke("Go")
        go.set()
        return f"{(await asking).text} {(await quick.ainvoke('Go')).text}"

    model = Bounded(reporting(call("ask"), 10), reporting(AIMessage("Done."), 10))
    agent = create_deep_agent(model, [ask], limits=Limits(tokens=9_000))
    result = await agent.ainvoke({"messages": "Go"})

    assert result["messages"][-2].text == "Slow. Quick."


class Predicting(ScriptedModel):
    """Bounds its answers by a field that calls do not take, as models of Ollama do."""

    num_predict: int | None = None

    def __init__(self, *replies: Any, **settings: Any) -> None:
        super().__init__(*replies, **settings)


def test_an_answer_is_bounded_by_the_field_that_the_model_has(call_mode: CallMode) -> None:
    bounds: list[int | None] = []

    class Noting(Predicting):
        def _generate(self, *given: Any, **options: Any) -> Any:
            bounds.append(self.num_predict)
            return super()._generate(*given, **options)

        def __init__(self, *replies: Any, **settings: Any) -> None:
            super().__init__(*replies, **settings)

    model = Noting(reporting(call("ls", path="/"), 1_000), reporting(AIMessage("Done."), 1))
    call_mode.invoke(create_deep_agent(model, limits=Limits(tokens=9_000)), {"messages": "Go"})

    assert [3_000 < (each or 0) < 7_500 for each in bounds] == [True, True]
    assert model.num_predict is None

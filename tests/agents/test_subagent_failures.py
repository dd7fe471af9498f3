"""What goes wrong with one subagent stays with that one, and limits bind all the way down."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from deepagents import CompiledSubAgent, SubAgentMiddleware, create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call
from tests.agents.delegating import together, worker
from tests.conftest import CallMode

GO = {"messages": "Go"}


def writer() -> Any:
    return worker("good", call("write_file", file_path="/a.txt", content="A"), "fine")


def answers(result: Any) -> list[tuple[str, str]]:
    found = [each for each in result["messages"] if each.type == "tool"]
    return [(each.status, each.additional_kwargs.get("error_code", each.text)) for each in found]


def cancels(_: Any) -> Any:
    raise asyncio.CancelledError


def times_out(_: Any) -> Any:
    raise TimeoutError("no answer in time")


@pytest.mark.parametrize(
    ("work", "code"), [(cancels, "cancelled"), (times_out, "tool_failed")], ids=["cancelled", "timed out"]
)
def test_who_finished_keeps_its_result_when_a_sibling_is_cancelled_or_too_late(
    call_mode: CallMode, work: Any, code: str
) -> None:
    ready = CompiledSubAgent(name="bad", description="d", runnable=RunnableLambda(work))
    with ScriptedModel(together("bad", "good", "bad"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=[ready, writer()]), GO)

    assert answers(result) == [("error", code), ("success", "fine"), ("error", code)]
    assert result["files"]["/a.txt"]["content"] == "A"
    assert result["messages"][-1].text == "Done."


def test_a_run_that_is_cancelled_from_outside_is_cancelled() -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def wait(_: Any) -> Any:
            begun.set()
            await asyncio.Event().wait()

        def never(_: Any) -> Any:
            raise AssertionError

        ready = CompiledSubAgent(name="slow", description="d", runnable=RunnableLambda(never, wait))
        agent = create_deep_agent(ScriptedModel(together("slow")), subagents=[ready])
        running = asyncio.create_task(agent.ainvoke({"messages": [("user", "Go")]}))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


LOOK = call("ls", path="/")


@tool
def ls(path: str) -> str:
    """List."""
    return "nothing"


@pytest.mark.parametrize("kind", ["isolated", "fork", "compiled", "grandchild"])
def test_a_limit_of_the_call_binds_whoever_is_called(kind: str) -> None:
    asked: list[Asked] = []
    endless = ScriptedModel(always=lambda request: asked.append(request) or LOOK)
    nested = SubAgentMiddleware(subagents=[worker("child", tools=[ls]) | {"model": endless}])
    compiled: Any = create_deep_agent(endless)
    subagent: Any = {
        "isolated": worker("child") | {"model": endless},
        "fork": worker("child", mode="fork") | {"model": endless},
        "compiled": CompiledSubAgent(name="child", description="d", runnable=compiled),
        "grandchild": worker("child", together("child"), "My child ran on.", middleware=[nested]),
    }[kind]
    with ScriptedModel(together("child"), "Done.") as model:
        agent = create_deep_agent(model, subagents=[subagent])
        result = agent.invoke(GO, {"recursion_limit": 12})

    ended = ("success", "My child ran on.") if kind == "grandchild" else ("error", "tool_failed")
    assert 2 <= len(asked) <= 6
    assert answers(result)[0] == ended
    assert result["messages"][-1].text == "Done."


@pytest.mark.parametrize(("own", "callers"), [(None, 20), (10, 30), (30, 10)])
def test_the_lower_limit_ends_a_subagent_and_not_the_run(
    call_mode: CallMode, own: int | None, callers: int
) -> None:
    endless = ScriptedModel(always=lambda _: LOOK)
    graph: Any = create_agent(endless, tools=[ls])
    bounded = graph.with_config({"recursion_limit": own})
    compiled = CompiledSubAgent(name="child", description="loops", runnable=bounded)
    spec: Any = compiled if own else worker("child") | {"model": endless}
    with ScriptedModel(together("child"), "I see.") as model:
        agent = create_deep_agent(model, subagents=[spec])
        result = call_mode.invoke(agent, GO, {"recursion_limit": callers})

    ended = result["messages"][-2]
    assert ended.status == "error"
    assert f"Recursion limit of {min(own or callers, callers)} reached" in ended.text


def test_without_a_limit_of_the_caller_a_subagent_works_long() -> None:
    working = ScriptedModel(always=lambda asked: LOOK if len(asked.messages) < 90 else "done")
    with ScriptedModel(together("child"), "I see.") as model:
        agent = create_deep_agent(model, subagents=[worker("child") | {"model": working}])
        result = agent.invoke(GO)

    assert result["messages"][-2].text == "done"

"""What goes wrong with one subagent stays with that one, and limits bind all the way down."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from deepagents import CompiledSubAgent, SubAgentMiddleware, create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests.conftest import CallMode

GO = {"messages": "Go"}


def together(*to: str) -> AIMessage:
    return calls(*(("task", {"description": "Go", "subagent_type": name}) for name in to))


def worker(name: str, *script: Any, **rest: Any) -> Any:
    return {"name": name, "description": f"does {name}", "model": ScriptedModel(*script), **rest}


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


def forever(_: Asked) -> AIMessage:
    return call("ls", path="/")


@pytest.mark.parametrize("kind", ["isolated", "fork", "compiled", "grandchild"])
def test_a_limit_of_the_call_binds_whoever_is_called(call_mode: CallMode, kind: str) -> None:
    asked: list[int] = []

    def say(request: Asked) -> AIMessage:
        asked.append(1)
        return forever(request)

    endless = {"name": "child", "description": "d", "model": ScriptedModel(always=say)}
    subagent: Any = {
        "isolated": endless,
        "fork": {**endless, "mode": "fork"},
        "compiled": {
            "name": "child",
            "description": "d",
            "runnable": create_deep_agent(ScriptedModel(always=say)),
        },
        "grandchild": {
            **endless,
            "model": ScriptedModel(together("child"), "My child ran on."),
            "middleware": [
                SubAgentMiddleware(
                    subagents=[worker("child", tools=[_listing()]) | {"model": endless["model"]}]
                )
            ],
        },
    }[kind]
    with ScriptedModel(together("child"), "Done.") as model:
        agent = create_deep_agent(model, subagents=[subagent])
        result = call_mode.invoke(agent, GO, {"recursion_limit": 12})

    assert 2 <= len(asked) <= 6
    (status, said) = answers(result)[0]
    assert (status, said) == (
        ("success", "My child ran on.") if kind == "grandchild" else ("error", "tool_failed")
    )
    assert result["messages"][-1].text == "Done."


def _listing() -> Any:
    @tool
    def ls(path: str) -> str:
        """List."""
        return "nothing"

    return ls


def test_a_limit_that_a_compiled_subagent_has_stays_where_it_is_lower(call_mode: CallMode) -> None:
    asked: list[int] = []

    def say(request: Asked) -> AIMessage:
        asked.append(1)
        return call("ls", path="/")

    graph: Any = create_agent(ScriptedModel(always=say), tools=[_listing()])
    ready = CompiledSubAgent(
        name="child", description="d", runnable=graph.with_config({"recursion_limit": 6})
    )
    with ScriptedModel(together("child"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=[ready]), GO)

    assert len(asked) <= 3
    assert answers(result) == [("error", "tool_failed")]

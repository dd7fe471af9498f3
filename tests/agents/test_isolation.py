"""Many agents at once, in threads and on one event loop, do not disturb each other."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from deepagents import create_deep_agent
from deepagents.testing import Asked, ScriptedModel, call, calls
from deepagents.testing.scripted import ScriptedAnswer


def script_of(number: int) -> tuple[Any, ...]:
    return (
        calls(
            ("write_file", {"file_path": "/mine.txt", "content": f"I am {number}"}),
            ("task", {"description": f"Task {number}", "subagent_type": "general-purpose"}),
        ),
        call("write_file", file_path=f"/child-{number}.txt", content=f"Child of {number}"),
        f"report {number}",
        call("read_file", file_path="/mine.txt"),
        f"done {number}",
    )


def check(number: int, files: dict[str, str], result: dict[str, Any]) -> None:
    assert files == {"/mine.txt": f"I am {number}", f"/child-{number}.txt": f"Child of {number}"}
    assert result["messages"][-1].text == f"done {number}"
    assert f"I am {number}" in result["messages"][-2].text


def in_state(result: dict[str, Any]) -> dict[str, str]:
    return {path: data["content"] for path, data in result["files"].items()}


@pytest.mark.slow
def test_many_agents_on_one_event_loop() -> None:
    async def life(number: int) -> None:
        with ScriptedModel(*script_of(number)) as model:
            result = await create_deep_agent(model).ainvoke({"messages": f"Go {number}"})
        check(number, in_state(result), result)

    async def everyone() -> None:
        await asyncio.gather(*(life(number) for number in range(20)))

    asyncio.run(everyone())


def test_one_agent_serves_many_threads_of_conversation() -> None:
    threads = 20

    def answer(asked: Asked) -> ScriptedAnswer:
        number = next(message.text for message in asked.messages if message.type == "human")
        wrote = any(message.type == "tool" for message in asked.messages)
        return f"done {number}" if wrote else call("write_file", file_path="/mine.txt", content=number)

    agent = create_deep_agent(ScriptedModel(always=answer))

    def life(number: int) -> None:
        result = agent.invoke({"messages": str(number)})
        assert in_state(result) == {"/mine.txt": str(number)}
        assert result["messages"][-1].text == f"done {number}"

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(life, range(threads)))

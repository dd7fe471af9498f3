"""Hooks that callers write around tools work in a deep agent as documented."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.types import Command

from deepagents import AsyncSubAgentMiddleware, FilesystemMiddleware, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware.memory import MemoryMiddleware
from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
from deepagents.middleware.rubric import RubricMiddleware
from deepagents.middleware.skills import SkillsMiddleware
from deepagents.middleware.subagents import SubAgentMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

QUESTION = {"messages": [{"role": "user", "content": "Go"}]}
FEATURES = (
    *(AsyncSubAgentMiddleware, FilesystemMiddleware, MemoryMiddleware, PatchToolCallsMiddleware),
    *(RubricMiddleware, SkillsMiddleware, SubAgentMiddleware, SummarizationMiddleware),
)
Result: TypeAlias = ToolMessage | Command[Any]
Next: TypeAlias = Callable[[ToolCallRequest], Result]
AsyncNext: TypeAlias = Callable[[ToolCallRequest], Awaitable[Result]]


def flaky(failures: int) -> BaseTool:
    left = [*range(failures)]

    @tool
    def knock(times: int) -> str:
        """Knock."""
        if left:
            left.pop()
            raise OSError("nobody home")
        return f"knocked {times} times"

    return knock


def said(result: Any) -> str:
    return result["messages"][-2].text


def test_a_hook_changes_the_arguments_before_the_call() -> None:
    class Doubling(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: ToolCallRequest, handler: Next) -> Result:
            request.tool_call["args"]["times"] *= 2
            return handler(request)

    with ScriptedModel(call("knock", times=2), "Done.") as model:
        result = create_deep_agent(model, tools=[flaky(0)], middleware=[Doubling()]).invoke(QUESTION)

    assert said(result) == "knocked 4 times"


def test_a_hook_sees_the_failure_and_tries_again() -> None:
    class Again(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: ToolCallRequest, handler: Next) -> Result:
            for _ in range(2):
                try:
                    return handler(request)
                except OSError:
                    continue
            return handler(request)

    with ScriptedModel(call("knock", times=1), "Done.") as model:
        result = create_deep_agent(model, tools=[flaky(2)], middleware=[Again()]).invoke(QUESTION)

    assert said(result) == "knocked 1 times"


def test_a_hook_tries_again_when_the_result_is_an_error() -> None:
    class UntilItExists(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: ToolCallRequest, handler: Next) -> Result:
            result = handler(request)
            if isinstance(result, ToolMessage) and result.status == "error":
                request.tool_call["args"]["path"] = "/"
                return handler(request)
            return result

    with ScriptedModel(call("ls", path="not/../../here"), "Done.") as model:
        result = create_deep_agent(model, middleware=[UntilItExists()]).invoke(QUESTION)

    assert result["messages"][-2].status == "success"


async def test_an_async_hook_tries_again() -> None:
    class Again(AgentMiddleware[Any, Any, Any]):
        async def awrap_tool_call(self, request: ToolCallRequest, handler: AsyncNext) -> Result:
            try:
                return await handler(request)
            except OSError:
                return await handler(request)

    with ScriptedModel(call("knock", times=1), "Done.") as model:
        result = await create_deep_agent(model, tools=[flaky(1)], middleware=[Again()]).ainvoke(QUESTION)

    assert said(result) == "knocked 1 times"


async def test_an_async_hook_answers_from_a_cache() -> None:
    class Remembering(AgentMiddleware[Any, Any, Any]):
        async def awrap_tool_call(self, request: ToolCallRequest, handler: AsyncNext) -> Result:
            return ToolMessage(content="remembered", tool_call_id=request.tool_call["id"] or "")

    with ScriptedModel(call("knock", times=1), "Done.") as model:
        agent = create_deep_agent(model, tools=[flaky(9)], middleware=[Remembering()])
        result = await agent.ainvoke(QUESTION)

    assert said(result) == "remembered"


async def test_skills_with_a_hook_that_awaits_run_blocking_too(tmp_path: Path) -> None:
    class Routed(SkillsMiddleware):
        @property
        def name(self) -> str:
            return "SkillsMiddleware"

        async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {"messages": [HumanMessage("Tides fit.", id="routed")]}

    (tmp_path / "skills" / "tides").mkdir(parents=True)
    (tmp_path / "skills" / "tides" / "SKILL.md").write_text("---\nname: tides\ndescription: Tides.\n---\n")
    backend = FilesystemBackend(root_dir=tmp_path)
    model = ScriptedModel("Blocking.", "Awaited.")
    routed = Routed(backend=backend, sources=["/skills"])
    agent = create_deep_agent(model, backend=backend, skills=["/skills"], middleware=[routed])
    agent.invoke(QUESTION)
    await agent.ainvoke(QUESTION)

    assert [each.last for each in model.asked] == ["Go", "Tides fit."]
    assert "tides" in model.asked[0].system


def test_a_hook_in_one_form_is_reached_through_super_in_the_other(call_mode: CallMode) -> None:
    seen: list[str] = []

    class Mine(PatchToolCallsMiddleware):
        def before_agent(self, state: Any, runtime: Any) -> Any:
            seen.append("sync")
            return super().before_agent(state, runtime)

        async def abefore_agent(self, state: Any, runtime: Any) -> Any:
            seen.append("async")
            return await super().abefore_agent(state, runtime)

    history = [
        HumanMessage("Go"),
        AIMessage("", tool_calls=[call("ls", path="/").tool_calls[0]]),
        HumanMessage("On"),
    ]
    with ScriptedModel("Done.") as model:
        call_mode.invoke(create_deep_agent(model, middleware=[Mine()]), {"messages": history})

    assert seen[0] == call_mode.name
    assert model.asked[0].messages[3].type == "tool"


def test_a_hook_overridden_in_one_form_runs_in_both(call_mode: CallMode) -> None:
    seen: list[str] = []

    class Mine(PatchToolCallsMiddleware):
        def before_agent(self, state: Any, runtime: Any) -> Any:
            seen.append("mine")
            return super().before_agent(state, runtime)

    call_mode.invoke(create_deep_agent(ScriptedModel("Done."), middleware=[Mine()]), QUESTION)

    assert seen == ["mine"]


def test_no_hook_of_the_library_has_one_form_only() -> None:
    hooks = (
        "before_agent",
        "after_agent",
        "before_model",
        "after_model",
        "wrap_model_call",
        "wrap_tool_call",
    )
    assert [
        (kind, hook)
        for kind in FEATURES
        for hook in hooks
        if (getattr(kind, hook) is getattr(AgentMiddleware, hook))
        is not (getattr(kind, f"a{hook}") is getattr(AgentMiddleware, f"a{hook}"))
    ] == []

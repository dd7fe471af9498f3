"""Run commands of a person, or of a trusted project, before and after tools and at the end of a turn."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from itertools import takewhile
from typing import Any, Final, Literal, TypeAlias, cast

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.backends.results import ExecuteResponse
from deepagents.middleware import is_from_person
from deepagents.undo import FileHistory
from deepagents_cli.approval.backends import printed_by, run_with_input
from deepagents_cli.project.plugins import as_claude_code
from deepagents_cli.project.project import Project
from deepagents_cli.project.settings import Hook
from deepagents_cli.project.tools import names_of
from deepagents_cli.text import cut, one_line

Result: TypeAlias = ToolMessage | Command[Any]
ToolHandler: TypeAlias = Callable[[ToolCallRequest], Awaitable[Result]]
"""Runs a call of a tool, behind the middleware that is given it."""

_BLOCKS: Final = 2
"""The exit code with which a hook refuses, as in Claude Code."""
_SECONDS: Final = 60
_LONGEST_TEXT: Final = 10_000
"""Characters of an argument or a result that a hook is given."""
_LONGEST_REASON: Final = 2_000
_MOST_TURNS: Final = 3
"""How often in a row a hook can make the agent go on, so that no hook does it forever."""
_BY_HOOK: Final = "hook"


class Hooks:
    """Runs hooks with the shell that `find_shell` returns; of one that fails otherwise, `notify` hears."""

    def __init__(
        self,
        hooks: Iterable[Hook],
        project: Project,
        find_shell: Callable[[], SandboxBackendProtocol],
        notify: Callable[[str], None],
    ) -> None:
        self._find_shell = find_shell
        self._notify = notify
        self._project = project
        self._hooks = [*hooks]

    def of(self, event: str, tool: str = "") -> list[Hook]:
        """Return the hooks of an event, and of a tool where it is about one."""
        names = names_of(tool)
        return [
            each
            for each in self._hooks
            if each.event == event and (not each.tools or not names.isdisjoint(each.tools))
        ]

    async def refusal(self, event: str, facts: Mapping[str, Any], tool: str = "") -> str | None:
        """Run the hooks of an event, one after the other; return why the first that refuses does."""
        for hook in self.of(event, tool):
            given = {"event": event, "directory": str(self._project.directory), **facts}
            given |= as_claude_code(event, given) if hook.plugin else {}
            ended = await self._run(hook, json.dumps(_clip(given), default=str))
            output = printed_by(ended).strip()[:_LONGEST_REASON]
            if ended.exit_code == _BLOCKS:
                return output or f"{one_line(hook.command)} refused"
            if ended.exit_code:
                printed = f": {output}" if output else ""
                self._notify(f"the hook {hook.command!r} ended with {ended.exit_code}{printed}")
        return None

    async def _run(self, hook: Hook, given: str) -> ExecuteResponse:
        return await run_with_input(self._find_shell(), hook.command, given, _SECONDS)


class ToolHooks(AgentMiddleware[Any, Any, Any]):
    """Asks hooks before a tool runs, and shows them its result; for the agent and its subagents."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__()
        self._hooks = hooks

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> Result:
        """Run the hooks around a call."""
        call = request.tool_call
        facts: dict[str, Any] = {"tool": call["name"], "arguments": call["args"]}
        if reason := await self._hooks.refusal("before_tool", facts, call["name"]):
            text = f"A hook of this project refused the call: {reason}"
            return ToolMessage(text, name=call["name"], tool_call_id=call["id"], status="error")
        result = await handler(request)
        if isinstance(result, ToolMessage) and self._hooks.of("after_tool", call["name"]):
            facts |= {"result": result.text, "status": result.status}
            if reason := await self._hooks.refusal("after_tool", facts, call["name"]):
                text = f"{result.text}\n\nA hook of this project says: {reason}"
                return result.model_copy(update={"content": text})
        return result


class TurnHooks(AgentMiddleware[Any, Any, Any]):
    """Asks hooks at the end of a turn; a refusal is a message by which the agent goes on.

    What they change belongs to the turn, in the history of the agent, which is `made` after this.
    """

    def __init__(self, hooks: Hooks, history: FileHistory | None = None, made: Sequence[Any] = ()) -> None:
        super().__init__()
        self._hooks = hooks
        self._history = history
        self._made = made

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Run the hooks."""
        messages = state["messages"]
        if count_sent_back(messages, _BY_HOOK) >= _MOST_TURNS:
            return None
        answer = messages[-1].text if messages else ""
        async with self._history.arecording(self._made[0]) if self._history else nullcontext():
            reason = await self._hooks.refusal("end_of_turn", {"answer": answer})
        return None if reason is None else send_back(reason, _BY_HOOK)


def send_back(reason: str, source: str) -> dict[str, Any]:
    """Return the update by which an agent that has ended its turn goes on, since it reads a reason."""
    jump: Literal["model"] = "model"
    return {"messages": [HumanMessage(reason, additional_kwargs={"lc_source": source})], "jump_to": jump}


def count_sent_back(messages: Sequence[BaseMessage], source: str) -> int:
    """Count how often that was done since a person wrote: what the library adds begins no task."""
    turn = takewhile(lambda message: not is_from_person(message), reversed(messages))
    return sum(message.additional_kwargs.get("lc_source") == source for message in turn)


def _clip(value: Any) -> Any:
    match value:
        case str():
            return cut(value, _LONGEST_TEXT)
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return {str(key): _clip(each) for key, each in pairs}
        case list():
            return [_clip(each) for each in cast("list[Any]", value)]
        case _:
            return value

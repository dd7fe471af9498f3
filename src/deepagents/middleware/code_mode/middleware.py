"""Offer `run_code`: one turn in which a program makes many calls, and filters what they return."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from math import inf
from threading import Lock
from typing import Any, Final, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from deepagents._async import due_in
from deepagents._state.programs import can_ask
from deepagents._state.runtime import has_channel
from deepagents.errors import ConfigError, RunConfigError, ToolFailure
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import ToolResult
from deepagents.middleware.code_mode.calls import ProgramCalls
from deepagents.middleware.code_mode.program import Program
from deepagents.tools._tool import Runtime, ToolOutput, ToolSpec, make_tool, names_of_tools

RUN_CODE: Final = "run_code"
_DESCRIPTION: Final = (
    "Run a Python program that calls your tools: for many calls, or where little of what they return "
    "matters. You read what it prints and the value of its last expression, nothing else. Each tool is an "
    "async function of its name, `_` for `-`, called by keyword: `text = await NAME(argument=...)`. "
    "`asyncio.gather` makes calls together. What a tool returns is text, or a value where it has structured "
    "content; a call that fails raises RuntimeError. `tool_help('NAME')` describes a tool. json, re, math, "
    "datetime and asyncio can be imported; there are no files and no network."
)
# State keys that tell whether a person may be asked, and whether that is by this library's middleware.
_MAY_ASK: Final = "hitl_edited_tool_calls"
_ASKS_OURS: Final = "held_calls"
_MOST_TURNS: Final = 100
"""How many answers of models are known whose programs may still run."""
# The state key of LangChain's limit on calls, which looks only at what the model calls.
_COUNTS: Final = "run_tool_call_count"


class RunCodeSchema(BaseModel):
    """The arguments of `run_code`."""

    code: str = Field(description="the program")


class CodeModeMiddleware(BaseMiddleware):
    """Offer `run_code`, in which the model writes a program whose functions are the agent's tools.

    Each call of a program goes the way of any call: permissions, limits and the middleware around tools hold
    for it. One that would wait for a person is not made. Programs run in an interpreter in a process of its
    own (see `docs/concepts/code-mode.md`). In an agent of `create_agent` it stands first in `middleware`:
    only what stands behind it sees the calls of programs.

    Args:
        tools: what programs may call: tools, names of tools, or patterns such as `"mcp__github__*"`;
            `None` is all.
        seconds: how long a program may take, the time included in which it waits for its calls.
        memory: how many bytes its values may take.
        calls: how many calls it may make.

    Raises:
        ConfigError: for values that are not positive, and where the interpreter is not installed.
    """

    def __init__(
        self,
        *,
        tools: Collection[str | BaseTool | Callable[..., Any]] | None = None,
        seconds: float = 30.0,
        memory: int = 256 * 2**20,
        calls: int = 1000,
    ) -> None:
        super().__init__()
        numbers: dict[str, Any] = {"seconds": seconds, "memory": memory, "calls": calls}
        for name, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
                raise ConfigError(f"{name} of CodeModeMiddleware must be a positive number, got {value!r}")
        if isinstance(tools, str):
            raise ConfigError(f"tools of CodeModeMiddleware must be a list, got {tools!r}; write [{tools!r}]")
        if find_spec("pydantic_monty") is None:
            raise ConfigError("code mode needs an interpreter: install deepagents[code]")
        given = () if tools is None else tools
        named = {each for each in given if isinstance(each, str)} | names_of_tools(given)
        self._allowed = None if tools is None else named
        self._claimed: dict[str, dict[str, str]] = {}
        self._lock = Lock()
        self._seconds, self._memory, self._calls = seconds, int(memory), int(calls)
        self._spec = ToolSpec(RUN_CODE, _DESCRIPTION, RunCodeSchema, _refuse, summary_arguments=("code",))
        self.tools = [make_tool(self._spec, lambda runtime: runtime)]

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        if request.tool is not self.tools[0]:
            return await inner(handler, request)
        self._require_known_rules()
        calls = ProgramCalls(request, handler, self._allowed, self._calls, self._find_claimed(request))

        async def run_program(runtime: Runtime, code: str) -> ToolOutput:
            if not can_ask():
                raise ToolFailure("not_supported", "a program cannot run another one")
            with due_in(self._seconds):
                try:
                    return await Program(calls, self._seconds, self._memory).run(code)
                except Exception:
                    if calls.broken is None:
                        raise
                    return ToolOutput("")

        # A tool of this call alone: only here is known what stands around the tools of the agent.
        own = make_tool(replace(self._spec, run=run_program), lambda runtime: runtime)
        result = await inner(handler, request.override(tool=own))
        if calls.broken is not None:
            # Here and not there, where it would count as raised by `run_code`.
            raise calls.broken
        return result

    def _find_claimed(self, request: ToolCallRequest) -> dict[str, str]:
        """Return what the programs of one answer of the model share."""
        messages: Sequence[Any] = cast("Mapping[str, Any]", request.state).get("messages") or ()
        turn = next((str(each.id) for each in reversed(messages) if isinstance(each, AIMessage)), "")
        with self._lock:
            claimed = self._claimed.setdefault(turn, {})
            if len(self._claimed) > _MOST_TURNS:
                del self._claimed[next(iter(self._claimed))]
        return claimed

    def _require_known_rules(self) -> None:
        """Refuse to run with what looks at calls of the model alone.

        Raises:
            RunConfigError: with LangChain's own approval or limit on calls, unless the tools are named.
        """
        if self._allowed is None and has_channel(_MAY_ASK) and not has_channel(_ASKS_OURS):
            raise RunConfigError(
                "CodeModeMiddleware cannot know about which calls this agent's HumanInTheLoopMiddleware asks "
                "a person; use create_deep_agent(interrupt_on=...), or name in tools=[...] what programs may "
                "call without asking"
            )
        if self._allowed is None and has_channel(_COUNTS):
            raise RunConfigError(
                "ToolCallLimitMiddleware does not count the calls of programs; use "
                "create_deep_agent(limits=Limits(tool_calls=...)), or name in tools=[...] of "
                "CodeModeMiddleware what programs may call without being counted"
            )


async def _refuse(runtime: Runtime, code: str) -> ToolOutput:
    raise ToolFailure(
        "not_supported", "a person put this program in the place of another call; it was not run"
    )

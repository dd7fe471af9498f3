"""A spec and its flow become one LangChain tool; what it answers becomes a message here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from langchain.tools import ToolRuntime
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command
from pydantic import BaseModel

from deepagents._async import Coro, arun, run
from deepagents.backends.calls import Files
from deepagents.backends.kinds import looks_binary
from deepagents.errors import BackendError, ErrorCode, ToolFailure
from deepagents.tools._file_versions import FileVersions

READ_ON: Final = (
    "Read it in parts with read_file, for example with offset=0 and limit=100, or search it with grep."
)
CHARACTERS_PER_TOKEN: Final = 4

_NOT_TEXT: Final = (
    "It holds characters that are no text, so read_file cannot show it in parts; a command can."
)

Runtime: TypeAlias = ToolRuntime[Any, Any]
Content: TypeAlias = str | list[str | dict[Any, Any]]
Answer: TypeAlias = ToolMessage | Command[Any]


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """How much one tool call may return or take. Tokens are counted as four characters each."""

    result_tokens: int | None = 20_000
    grep_matches: int | None = 1000
    execute_seconds: int = 3600


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a file tool works with during one call."""

    files: Files
    seen: FileVersions
    limits: ToolLimits
    read_format: str = "numbered"
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool tells the model, and what it leaves for programs.

    `beside` holds content for a message of its own, where a tool's message could not carry it. With a `code`
    it is a failure, told in words of its own.
    """

    content: Content
    artifact: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    update: Mapping[str, Any] | None = None
    beside: Content | None = None
    code: ErrorCode | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool: its name, what the model reads about it, its arguments and its flow."""

    name: str
    description: str
    args: type[BaseModel]
    flow: Callable[..., Coro[ToolOutput]]


def read_on(text: str) -> str:
    """Say how to read on in a file that holds such text."""
    try:
        return _NOT_TEXT if looks_binary(text.encode()) else READ_ON
    except UnicodeEncodeError:
        return _NOT_TEXT


def make_tool(spec: ToolSpec, desk: Callable[[Runtime], Any], description: str | None = None) -> BaseTool:
    """Build the LangChain tool of a spec, in both colours; `desk` makes what its flow works with."""

    async def start(runtime: Runtime, arguments: dict[str, Any]) -> Answer:
        return await _answer(spec, runtime, lambda: spec.flow(desk(runtime), **arguments))

    def blocking(runtime: Runtime, **arguments: Any) -> Answer:
        return run(start(runtime, arguments))

    async def awaiting(runtime: Runtime, **arguments: Any) -> Answer:
        return await arun(start(runtime, arguments))

    return StructuredTool.from_function(
        func=blocking,
        coroutine=awaiting,
        name=spec.name,
        description=description or spec.description,
        args_schema=spec.args,
        infer_schema=False,
    )


async def _answer(spec: ToolSpec, runtime: Runtime, begin: Callable[[], Coro[ToolOutput]]) -> Answer:
    call_id = runtime.tool_call_id or ""
    try:
        reply = await begin()
    except (ToolFailure, BackendError) as failure:
        return failure_message(spec.name, call_id, failure.code, failure.text)
    message = ToolMessage(
        content=reply.content,
        name=spec.name,
        tool_call_id=call_id,
        artifact=reply.artifact,
        status="error" if reply.code else "success",
        additional_kwargs={**reply.extra, **({"error_code": reply.code} if reply.code else {})},
    )
    messages: list[BaseMessage] = [message]
    if reply.beside is not None:
        messages.append(_shown_beside(reply, call_id))
    elif reply.update is None:
        return message
    return Command(update={**(reply.update or {}), "messages": messages})


def _shown_beside(reply: ToolOutput, call_id: str) -> HumanMessage:
    marks = {"read_file_media_result": True, "read_file_tool_call_id": call_id}
    path = reply.extra.get("read_file_path")
    return HumanMessage(content=reply.beside or "", additional_kwargs={**marks, "read_file_path": path})


def artifact_name(call_id: str, mark: str) -> str:
    """Name a file for what a call returned: readable, and told apart from others by its mark."""
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:60]
    return f"{readable}-{mark}" if readable else mark


def failure_message(tool: str, call_id: str, code: ErrorCode, text: str) -> ToolMessage:
    """Tell the model what went wrong and leave the code for programs."""
    return ToolMessage(
        content=failure_text(code, text),
        name=tool,
        tool_call_id=call_id,
        status="error",
        additional_kwargs={"error_code": code},
    )


def failure_text(code: ErrorCode, text: str) -> str:
    """Phrase a failure for the model: one prefix, the sentence, the code."""
    said = text if text.startswith("Error") else f"Error: {text}"
    return f"{said} [{code}]"

"""Make LangChain tools of what servers offer."""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import Any, Final

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command
from pydantic import Field

from deepagents._async import arun, run, setting
from deepagents._values import valueclass

_call_id: Final[ContextVar[str | None]] = ContextVar("deepagents_mcp_call_id", default=None)
# Blocks that LangChain keeps in the content of a tool's message; it writes out others as text.
_KEPT: Final = frozenset({"text", "image", "file"})


@valueclass
class CallResult:
    """What a call of a tool brought."""

    content: str | list[dict[str, Any]]
    artifact: dict[str, Any]


class MCPTool(BaseTool):
    """One tool of a server, blocking and awaiting; its arguments go to the server as they are."""

    response_format: Any = "content_and_artifact"
    call: Any = Field(exclude=True, repr=False)

    def run(self, tool_input: Any, *args: Any, tool_call_id: str | None = None, **options: Any) -> Any:
        """Run the tool; it knows the id of its call, for its progress and for what it asks."""
        with setting(_call_id, tool_call_id):
            return super().run(tool_input, *args, tool_call_id=tool_call_id, **options)

    async def arun(self, tool_input: Any, *args: Any, tool_call_id: str | None = None, **options: Any) -> Any:
        """Run the tool without blocking."""
        with setting(_call_id, tool_call_id):
            return await super().arun(tool_input, *args, tool_call_id=tool_call_id, **options)

    # Positional: an argument may be named `self`, and LangChain drops what is named `config` elsewhere.
    def _run(self, /, **arguments: Any) -> Any:
        return run(self._answer(arguments))

    async def _arun(self, /, **arguments: Any) -> Any:
        return await arun(self._answer(arguments))

    async def _answer(self, arguments: dict[str, Any]) -> tuple[Any, Any]:
        call_id = _call_id.get()
        content, artifact = await self.call(arguments, call_id)
        if call_id is None or isinstance(content, str) or all(each["type"] in _KEPT for each in content):
            return content, artifact
        message = ToolMessage(content=[*content], name=self.name, tool_call_id=call_id, artifact=artifact)
        # Inside a command it stays as it is.
        return Command(update={"messages": [message]}), artifact


def make_resource_tools(servers: Any) -> list[BaseTool]:
    """Make the tools by which a model reads what servers hold: one lists, one reads."""

    def show(rows: list[dict[str, Any]]) -> str:
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) or "There are no resources."

    def show_blocks(blocks: list[dict[str, Any]]) -> Any:
        texts = [block.get("text") for block in blocks]
        return "\n".join(map(str, texts)) if all(each is not None for each in texts) else blocks

    def list_blocking(server: str | None = None) -> str:
        return show(servers.resources(server))

    async def list_awaiting(server: str | None = None) -> str:
        return show(await servers.aresources(server))

    def read_blocking(server: str, uri: str) -> Any:
        return show_blocks(servers.read_resource(server, uri))

    async def read_awaiting(server: str, uri: str) -> Any:
        return show_blocks(await servers.aread_resource(server, uri))

    server = {"type": "string", "description": "Name of the server."}
    return [
        StructuredTool(
            name="list_mcp_resources",
            description="List the resources of MCP servers, of one or of all: one JSON object a line.",
            args_schema={"type": "object", "properties": {"server": server}},
            func=list_blocking,
            coroutine=list_awaiting,
        ),
        StructuredTool(
            name="read_mcp_resource",
            description="Read a resource of an MCP server by its URI.",
            args_schema={
                "type": "object",
                "properties": {"server": server, "uri": {"type": "string"}},
                "required": ["server", "uri"],
            },
            func=read_blocking,
            coroutine=read_awaiting,
        ),
    ]

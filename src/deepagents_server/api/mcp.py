"""Serve graphs as tools, for clients of the Model Context Protocol: each call is a run of its own."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.responses import Response
from starlette.types import Message, Receive, Send
from starlette.types import Scope as Asgi

from deepagents_server.api.access import ask_handlers
from deepagents_server.api.assistants import json_schema, of_graphs
from deepagents_server.api.endpoint import JSON_OR_STREAM, Endpoint
from deepagents_server.api.forms import as_text, make_form, read_form
from deepagents_server.api.parameters import parse_id
from deepagents_server.api.runs import BEAT, check_end, end_with_client
from deepagents_server.api.threads import find_thread
from deepagents_server.create import create_run
from deepagents_server.database.engine import Row
from deepagents_server.database.threads import questions_of
from deepagents_server.errors import ApiError
from deepagents_server.graphs import Graph
from deepagents_server.serialize import dump, load
from deepagents_server.server import Server
from deepagents_server.thread_events import read_run

if TYPE_CHECKING:
    from mcp import types
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[Any, Any]

_log: Final = logging.getLogger("deepagents.server")
_ASKS: Final = "2026-07-28"
"""The first revision in which an answer may ask back, so that no connection has to wait for a person."""
_PACKAGE: Final = "mcp.server.streamable_http_manager"
_DEFINITION: Final = re.compile(rb'"#/\$defs/([^"]+)"')
_MESSAGES: Final = {
    "type": "array",
    "description": "The conversation so far; its last message says what to do.",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "role": {"type": "string", "enum": ["user", "assistant", "system"]},
            "content": {"type": "string"},
        },
        "required": ["role", "content"],
    },
}
"""What LangChain's own schema says in 20,000 characters, which every model with this tool would read."""


async def answer_message(server: Server, message: Any) -> Response:
    """Answer a message of the Model Context Protocol: list the graphs as tools, or call one."""
    # It takes a second, once: who serves no tools never waits for it.
    await asyncio.to_thread(import_module, _PACKAGE)
    return _Exchange(server, dump(message))


class _Exchange(Response):
    """One message and its answer, which may be a stream; nothing is kept for the next one."""

    def __init__(self, server: Server, message: bytes) -> None:
        super().__init__()
        self._server, self._message = server, message

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Let the package of the protocol answer."""
        from mcp.server.lowlevel import Server as Protocol
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        protocol = Protocol[Any](
            "deepagents",
            version=version("deepagents"),
            on_list_tools=partial(_list_tools, self._server),
            on_call_tool=partial(_call_tool, self._server),
            # No argument is also a header; without this, each call would list the tools first.
            get_tool_input_schema=lambda _: None,
        )
        most = self._server.max_body
        manager = StreamableHTTPSessionManager(protocol, stateless=True, max_request_body_size=most)
        async with manager.run():
            await manager.handle_request(scope, _replay(self._message, receive), send)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read to who reads it again."""
    sent = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        return next(sent, None) or await receive()

    return receive_again


async def _list_tools(server: Server, _: Context, __: Any) -> types.ListToolsResult:
    from mcp import types

    server, _given = await ask_handlers(server, "assistants", "search", {})
    tools: list[types.Tool] = []
    for row in await of_graphs(server):
        try:
            async with server.graphs.open(row["graph_id"], row["config"]) as graph:
                schema = _input_schema(graph)
        except Exception:  # noqa: BLE001
            # Code of the user makes it: whatever it raises must not hide the others.
            _log.exception("The graph %r cannot be made, and is not listed as a tool", row["graph_id"])
            continue
        if schema is not None:
            described = row["description"] or f"The agent {row['name']!r}."
            tools.append(types.Tool(name=row["graph_id"], description=described, input_schema=schema))
    return types.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")


def _input_schema(graph: Graph) -> dict[str, Any] | None:
    """Describe what a graph takes; `None` if that is not an object, as arguments of tools are."""
    schema: dict[str, Any] = json_schema(graph.get_input_jsonschema) or {}
    if schema.get("type", "object") != "object":
        return None
    if "messages" in graph.channels:
        properties: dict[str, Any] = schema.get("properties") or {}
        schema = {**schema, "properties": {**properties, "messages": _MESSAGES}, "required": ["messages"]}
    definitions: dict[str, Any] = schema.pop("$defs", {})
    used: dict[str, Any] = {}
    waiting: list[Any] = [schema]
    while waiting:
        for name in map(bytes.decode, _DEFINITION.findall(dump(waiting.pop()))):
            if name in definitions and name not in used:
                used[name] = definitions[name]
                waiting.append(used[name])
    return {"type": "object", **schema, **({"$defs": used} if used else {})}


async def _call_tool(
    server: Server, context: Context, asked: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    from mcp import types

    try:
        thread = await _run(server, context, asked)
        if thread["status"] == "interrupted":
            return _ask(context, asked.name, thread)
    except ApiError as error:
        return types.CallToolResult(content=[types.TextContent(text=error.detail)], is_error=True)
    text, structured = _answer(load(thread["values"]) or {})
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured)


async def _run(server: Server, context: Context, asked: types.CallToolRequestParams) -> Row:
    """Run a graph, or go on with a run whose questions are answered; return the thread as it leaves it."""
    given: dict[str, Any] = {"assistant_id": asked.name}
    answers = _answers(asked.input_responses or {})
    # A client may forge it, and reaches no more than with the id of a thread on any other endpoint.
    thread_id = None if asked.request_state is None else parse_id("requestState", asked.request_state)
    given |= (
        {"thread_id": thread_id, "command": {"resume": answers}}
        if thread_id
        else {"input": asked.arguments or {}}
    )
    server, given = await ask_handlers(server, "threads", "create_run", given)
    if thread_id:
        await _check_answers(server, asked.name, thread_id, answers)
    row = await create_run(server, {**given, "stream_mode": ["updates"], "streamed": True}, thread_id)
    await _wait(server, row, context)
    return await check_end(server, row)


def _answers(responses: types.InputResponses) -> dict[str, Any]:
    """Return what a person filled in, by the id of the question."""
    from mcp import types

    accepted = {
        key: each.content
        for key, each in responses.items()
        if isinstance(each, types.ElicitResult) and each.action == "accept" and each.content
    }
    return {key: read_form(content) for key, content in accepted.items()}


async def _check_answers(server: Server, name: str, thread_id: str, answers: Mapping[str, Any]) -> None:
    """Refuse to go on unless all is answered that is asked.

    Raises:
        ApiError: if something is not, or nothing was asked.
    """
    thread = await find_thread(server, thread_id)
    if not answers or set(answers) != {each["id"] for each in questions_of(thread)}:
        raise ApiError(409, f"What the agent asks is not answered. {_way_out(name, thread)}")


def _ask(context: Context, name: str, thread: Row) -> types.InputRequiredResult:
    """Let the client ask its person what a run asks.

    Raises:
        ApiError: if it cannot.
    """
    from mcp import types

    questions = questions_of(thread)
    forms = {each["id"]: make_form(each["value"]) for each in questions}
    if not forms or not all(forms.values()) or not _shows_forms(context):
        shown = "\n".join(as_text(each["value"]) for each in questions)
        raise ApiError(409, f"The agent asks a person before it goes on. {_way_out(name, thread)}\n{shown}")
    asked: dict[str, Any] = {
        key: types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=form[0], requested_schema=form[1])
        )
        for key, form in forms.items()
        if form
    }
    return types.InputRequiredResult(input_requests=asked, request_state=thread["thread_id"])


def _shows_forms(context: Context) -> bool:
    known = context.session.client_capabilities
    able = known.elicitation if known else None
    # One that names no kind shows forms: before there was another, none was named.
    return context.protocol_version >= _ASKS and able is not None and not (able.url and not able.form)


def _way_out(name: str, thread: Row) -> str:
    body = f'{{"assistant_id": "{name}", "command": {{"resume": ANSWER}}}}'
    return (
        f"Answer with POST /threads/{thread['thread_id']}/runs/wait of this server, and {body} as its body."
    )


async def _wait(server: Server, run: Row, context: Context) -> None:
    """Wait until a run is over and report its steps; it ends early if the client stops waiting."""
    seen = 0
    with end_with_client(server, run):
        async with read_run(server, run["run_id"], 0, BEAT) as events:
            async for _ in events:
                seen += 1
                await context.session.report_progress(seen)


def _answer(values: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return what an agent answers: an object if it was made to give one, or else its last message."""
    structured: Any = values.get("structured_response")
    if isinstance(structured, dict):
        return dump(structured).decode(), cast(dict[str, Any], structured)
    messages: list[dict[str, Any]] = values.get("messages") or []
    if not messages:
        return dump(values).decode(), None
    content: Any = messages[-1]["content"]
    if isinstance(content, str):
        return content, None
    blocks = cast(list[dict[str, Any] | str], content)
    return "".join(each if isinstance(each, str) else each.get("text", "") for each in blocks), None


_MESSAGE: Final = {"type": "object", "description": "A message of JSON-RPC, as the protocol has it."}
MCP: Final = Endpoint("/mcp", "POST", answer_message, "itself", body=_MESSAGE, answer=JSON_OR_STREAM)
ENDPOINTS: Final = [MCP]

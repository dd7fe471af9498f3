"""Serve graphs as models, for clients of OpenAI's chat completions: tools run here, answers are streamed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from langchain_core.messages import convert_to_messages
from pydantic import BaseModel, Field
from starlette.responses import Response

from deepagents_server.api.access import ask_handlers
from deepagents_server.api.assistants import of_graphs
from deepagents_server.api.bodies import Metadata
from deepagents_server.api.common import answer, event_stream, openai_error
from deepagents_server.api.endpoint import JSON_OR_STREAM, Endpoint
from deepagents_server.api.parameters import parse_id
from deepagents_server.api.runs import BEAT, check_end, end_with_client
from deepagents_server.create import create_run
from deepagents_server.database.engine import Row
from deepagents_server.database.tables import assistants
from deepagents_server.errors import ApiError, not_found
from deepagents_server.events import Event
from deepagents_server.graphs import system_assistant_id
from deepagents_server.message_blocks import Messages
from deepagents_server.serialize import dump, load
from deepagents_server.server import Server
from deepagents_server.thread_events import read_end, read_run

THREAD_HEADER: Final = "x-thread-id"
"""The thread that a conversation goes on in; without it, a request brings all of its messages."""
_FIELDS: Final = ("role", "content", "name", "tool_calls", "tool_call_id")
_USAGE: Final = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
_ENDS: Final = {"length": "length", "filtered": "content_filter", "no_end": "length", "malformed": "length"}
"""How OpenAI's answers say that one broke off."""


class _StreamOptions(BaseModel):
    include_usage: bool = False


class CompletionBody(BaseModel):
    """A conversation that a graph goes on with; the settings of a model are the graph's own, and ignored."""

    model: str
    messages: list[dict[str, Any]] = Field(min_length=1, max_length=10_000)
    stream: bool = False
    stream_options: _StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    metadata: Metadata | None = None


async def complete(server: Server, given: CompletionBody, *, x_thread_id: str = "") -> Response:
    """Let a graph answer a conversation, as chat completions of OpenAI do."""
    if given.tools:
        raise ApiError(400, "tools: a graph uses its own tools, on the server; leave them out.")
    if given.n not in (None, 1):
        raise ApiError(400, "n: a graph gives one answer.")
    thread_id = parse_id(THREAD_HEADER, x_thread_id) if x_thread_id else None
    messages = [{name: each[name] for name in _FIELDS if name in each} for each in given.messages]
    _check_messages(messages)
    fields: dict[str, Any] = {
        "assistant_id": given.model,
        "input": {"messages": _new(messages) if thread_id else messages},
        "if_not_exists": "create",
    }
    fields |= {name: each for name, each in (("metadata", given.metadata), ("thread_id", thread_id)) if each}
    server, fields = await ask_handlers(server, "threads", "create_run", fields)
    row = await create_run(server, {**fields, "stream_mode": ["messages-tuple"], "streamed": True}, thread_id)
    spoken = _Completion(server, row, given)
    headers = {THREAD_HEADER: row["thread_id"]}
    if given.stream:
        return event_stream(spoken.stream(), headers)
    return answer(await spoken.whole(), headers=headers)


def _check_messages(messages: list[dict[str, Any]]) -> None:
    for place, each in enumerate(messages):
        try:
            convert_to_messages([each])
        except (ValueError, LookupError, TypeError) as error:
            # LangChain has no error of its own for it.
            reason = str(error).partition("\n")[0][:200]
            raise ApiError(400, f"messages.{place}: this is not a message ({reason}).") from error


def _new(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what came after the last answer: what was before, the thread has."""
    answered = [place for place, each in enumerate(messages) if each.get("role") == "assistant"]
    return messages[answered[-1] + 1 :] if answered else messages


class _Completion:
    """What a run says, in the shapes of OpenAI's answers."""

    def __init__(self, server: Server, run: Row, given: CompletionBody) -> None:
        self._server, self._run = server, run
        self._shows_usage = bool(given.stream_options and given.stream_options.include_usage)
        self._head = {"id": f"chatcmpl-{run['run_id']}", "created": int(time.time()), "model": given.model}
        self._usage = dict.fromkeys(_USAGE.values(), 0)
        self._messages = Messages()
        self._texts: list[list[str]] = []
        self._end = "stop"

    async def whole(self) -> dict[str, Any]:
        """Return the last message, once the run is over."""
        async for _ in self._pieces():
            pass
        texts = ["".join(pieces) for pieces in self._texts if pieces]
        message = {"role": "assistant", "content": texts[-1] if texts else ""}
        choice = {"index": 0, "message": message, "finish_reason": self._end, "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage}

    async def stream(self) -> AsyncIterator[bytes]:
        """Write all that the agent says as it says it."""
        with end_with_client(self._server, self._run):
            try:
                yield self._chunk({"role": "assistant", "content": ""})
                async for piece in self._pieces():
                    yield self._chunk({"content": piece}) if piece else b": heartbeat\n\n"
                yield self._chunk({}, self._end)
                if self._shows_usage:
                    yield _frame({**self._chunk_head(), "choices": [], "usage": self._usage})
            except ApiError as error:
                yield _frame(openai_error(error))
        yield b"data: [DONE]\n\n"

    def _chunk_head(self) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk"}

    def _chunk(self, delta: Mapping[str, Any], end: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}
        return _frame({**self._chunk_head(), "choices": [choice]})

    async def _pieces(self) -> AsyncIterator[str]:
        """Yield what the agent says, and nothing as a sign of life.

        Raises:
            ApiError: if the run fails, or asks a person.
        """
        run_id = self._run["run_id"]
        async with read_run(self._server, run_id, 0, BEAT) as events:
            async for event in events:
                for piece in self._pieces_of(event) if event else ("",):
                    yield piece
        _, failed = await read_end(self._server, run_id)
        if end := _ENDS.get(failed.get("kind", "")):
            self._end = end
            return
        thread = await check_end(self._server, self._run)
        if thread["status"] == "interrupted":
            raise ApiError(
                409,
                f"The agent asks a person before it goes on; name a thread with the header {THREAD_HEADER}, "
                f"and answer by /threads/{thread['thread_id']}/runs.",
            )

    def _pieces_of(self, event: Event) -> Iterator[str]:
        # Messages of graphs inside are the agent's work, not its answer; their names have a namespace.
        for shown in self._messages.take(*load(event.data)) if event.name == "messages" else ():
            match shown["event"]:
                case "message-start":
                    self._texts.append([])
                case "content-block-delta" if shown["delta"]["type"] == "text-delta":
                    yield from self._say(shown["delta"]["text"])
                case "message-finish":
                    for name, count in shown.get("usage", {}).items():
                        self._usage[_USAGE[name]] += count
                case _:
                    pass

    def _say(self, text: str) -> Iterator[str]:
        if not self._texts[-1] and any(self._texts[:-1]):
            yield "\n\n"
        self._texts[-1].append(text)
        yield text


def _frame(content: Mapping[str, Any]) -> bytes:
    return b"data: %s\n\n" % dump(content)


async def list_models(server: Server) -> Response:
    """List the graphs as models."""
    found = await of_graphs(server)
    return answer({"object": "list", "data": [_show(row) for row in found]})


async def show_model(server: Server, *, model: str) -> Response:
    """Show a graph as a model."""
    query = sa.select(assistants).where(assistants.c.assistant_id == system_assistant_id(model))
    row = await server.database.row(query)
    if row is None:
        raise not_found("model", model)
    return answer(_show(row))


def _show(row: Row) -> dict[str, Any]:
    created = int(datetime.fromisoformat(row["created_at"]).timestamp())
    return {"id": row["graph_id"], "object": "model", "created": created, "owned_by": "deepagents"}


_READ: Final = ("assistants", "read")
ENDPOINTS: Final = [
    Endpoint(
        "/v1/chat/completions",
        "POST",
        complete,
        "itself",
        body=CompletionBody,
        header=THREAD_HEADER,
        answer=JSON_OR_STREAM,
    ),
    Endpoint("/v1/models", "GET", list_models, _READ),
    Endpoint("/v1/models/{model}", "GET", show_model, _READ),
]

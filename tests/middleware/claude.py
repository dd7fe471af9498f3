"""A server on this machine that speaks Anthropic's protocol, keeps what it was sent, and says what it is
told.

It refuses what the provider refuses: more than four marks, and an hour's mark behind one of five minutes.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from langchain_anthropic import ChatAnthropic


@dataclass
class Claude:
    """What it will say, and the bodies of the requests that came.

    `compactions` are blocks that stand before its answer to a request, by the number of that.
    """

    replies: deque[dict[str, Any]] = field(default_factory=deque[dict[str, Any]])
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    compactions: dict[int, list[dict[str, Any]]] = field(default_factory=dict[int, list[dict[str, Any]]])
    address: str = ""

    def model(self, **settings: Any) -> ChatAnthropic:
        """Make a model whose requests come here."""
        given: dict[str, Any] = {"model": "claude", "max_tokens": 99, "api_key": "none", "max_retries": 0}
        given.update(base_url=self.address, **settings)
        return ChatAnthropic(**given)

    def will_call(self, tool: str, **arguments: Any) -> None:
        """Answer a request with a call of a tool."""
        self.replies.append(
            {"type": "tool_use", "id": f"toolu_{len(self.replies)}", "name": tool, "input": arguments}
        )


@contextmanager
def serving() -> Generator[Claude]:
    """Serve until the block ends."""
    claude = Claude()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            _answer(self, claude)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    claude.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield claude
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def marks(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the part and the lifetime of each mark, in the order in which the provider reads them."""
    found = [
        (part, control) for part in ("tools", "system", "messages") for control in _marks_in(body.get(part))
    ]
    found += [("end", body["cache_control"])] if "cache_control" in body else []
    return [(part, control.get("ttl", "5m")) for part, control in found]


def marked_texts(body: dict[str, Any]) -> list[str]:
    """Return the texts of the system's marked blocks."""
    return [each["text"] for each in body["system"] if "cache_control" in each]


def _marks_in(value: Any) -> Iterator[dict[str, str]]:
    if isinstance(value, list):
        for each in value:
            yield from _marks_in(each)
    elif isinstance(value, dict):
        if isinstance(value.get("cache_control"), dict):
            yield value["cache_control"]
        yield from _marks_in(value.get("content"))


def _refusal(body: dict[str, Any]) -> str | None:
    found = marks(body)
    lifetimes = [lifetime for _, lifetime in found]
    if len(found) > 4:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {len(found)}."
    if "1h" in lifetimes and "5m" in lifetimes[: len(lifetimes) - lifetimes[::-1].index("1h")]:
        return "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    last: Any = body["messages"][-1]["content"]
    own = last[-1].get("cache_control") if isinstance(last, list) else None
    if own and "cache_control" in body and own.get("ttl", "5m") != body["cache_control"].get("ttl", "5m"):
        return "cache_control at the top and on the last block differ"
    return None


def _answer(request: BaseHTTPRequestHandler, claude: Claude) -> None:
    body: dict[str, Any] = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
    refused = _refusal(body)
    if refused is not None:
        _send(request, 400, {"type": "error", "error": {"type": "invalid_request_error", "message": refused}})
        return
    claude.asked.append(body)
    block = claude.replies.popleft() if claude.replies else {"type": "text", "text": "Done."}
    blocks = [*claude.compactions.pop(len(claude.asked), []), block]
    _send(
        request,
        200,
        {
            "id": f"msg_{len(claude.asked)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": blocks,
            "stop_reason": "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    )


def _send(request: BaseHTTPRequestHandler, status: int, body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)

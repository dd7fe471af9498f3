"""A server on this machine that speaks Anthropic's protocol and answers from a script.

The documents name a real model. `ANTHROPIC_BASE_URL`, which Anthropic's own client reads, sends their
requests here, so an example runs exactly as it stands on its page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage

Request: TypeAlias = dict[str, Any]
"""The body of a request, as Anthropic's protocol has it."""

Answer: TypeAlias = str | AIMessage | Exception
Answers: TypeAlias = Sequence[Answer | Callable[[Request], Answer]]


class Script:
    """The answers of each model, in order; `*` answers for every model without a list of its own."""

    def __init__(self, answers: Mapping[str, Answers]) -> None:
        self._left = {model: list(each) for model, each in answers.items()}
        self._lock = Lock()  # Subagents that run side by side ask at the same time.

    def answer(self, request: Request) -> Answer:
        """Return the next answer for the model that a request names."""
        with self._lock:
            left = self._left.get(request["model"], self._left.get("*", []))
            if not left:
                return ValueError(f"no answer is left for {request['model']}: {request['messages'][-1]}")
            answer = left.pop(0)
        return answer(request) if callable(answer) else answer

    def unused(self) -> list[Any]:
        """Return the answers that no request has asked for."""
        return [answer for left in self._left.values() for answer in left]


@contextmanager
def serve(script: Script) -> Generator[str]:
    """Serve a script until the block ends; give the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = script.answer(body)
            if isinstance(answer, Exception):
                # The client tries again on most failures unless the server says that it should not.
                status = 529 if isinstance(answer, TimeoutError) else 400
                kind = {"type": "invalid_request_error", "message": str(answer)}
                self._send(status, "application/json", json.dumps({"type": "error", "error": kind}))
            elif body.get("stream"):
                self._send(200, "text/event-stream", "".join(_events(_message(body, answer))))
            else:
                self._send(200, "application/json", json.dumps(_message(body, answer)))

        def _send(self, status: int, kind: str, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("x-should-retry", "false")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _message(request: Request, answer: str | AIMessage) -> dict[str, Any]:
    message = AIMessage(answer) if isinstance(answer, str) else answer
    content: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    content += [
        {"type": "tool_use", "id": each["id"], "name": each["name"], "input": each["args"]}
        for each in message.tool_calls
    ]
    return {
        "id": f"msg_{len(request['messages'])}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": message.response_metadata.get(
            "stop_reason", "tool_use" if message.tool_calls else "end_turn"
        ),
        "stop_sequence": None,
        "usage": {"input_tokens": len(json.dumps(request)) // 4, "output_tokens": 20},
    }


def _events(message: dict[str, Any]) -> Iterator[str]:
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            words = block["text"].split(" ")
            pieces = [f" {word}" if at else word for at, word in enumerate(words)]
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        else:
            empty = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage=message["usage"])
    yield _event("message_stop")


def _event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"

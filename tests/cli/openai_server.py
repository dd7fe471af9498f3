"""A server on this machine that speaks OpenAI's chat completions and answers from a script.

It streams, calls tools, counts tokens, waits and fails as its script says, and keeps what it was asked. The
command line finds it with `DEEPAGENTS_LOCAL_SERVER` set to its `address`, and `--model local-server:NAME`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Event, Lock, Thread
from typing import Any, TypeAlias

PATIENCE = 60.0
MODEL = "scripted"


@dataclass(frozen=True)
class Request:
    """What a model was asked."""

    body: Mapping[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]

    @property
    def system(self) -> str:
        return _text(self.messages[0])

    @property
    def last(self) -> str:
        """The text of the last message."""
        return _text(self.messages[-1])

    @property
    def tools(self) -> set[str]:
        return {each["function"]["name"] for each in self.body.get("tools", [])}

    def texts(self, role: str) -> list[str]:
        """The texts of the messages of `user`, `assistant`, `tool` or `system`."""
        return [_text(each) for each in self.messages if each["role"] == role]


@dataclass(frozen=True)
class Reply:
    """An answer: a text, calls of tools, or both.

    `every` are the seconds between two words; `hold` is waited for behind the first word; `status` other than
    200 fails with the text, and `headers` come with it; `usage` is (input, output) tokens, counted where it
    is left out; `finish` is why the answer ends. `cut` breaks a stream off behind so many of its pieces, of
    which each character of a call's arguments is one; `stream` is sent as it is instead. `thought` comes
    before the text, as servers send the reasoning of a model.
    """

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    every: float = 0.0
    hold: Event | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    usage: tuple[int, int] | None = None
    finish: str | None = None
    cut: int | None = None
    stream: bytes | None = None
    thought: str = ""


Answer: TypeAlias = str | Reply | Callable[[Request], str | Reply]


def call(name: str, /, **args: Any) -> Reply:
    """An answer that calls one tool."""
    return Reply(calls=[(name, args)])


class OpenAIServer:
    """Answers each request with what the script has next, then with `always`."""

    def __init__(self, port: int, answers: Sequence[Answer], always: Answer | None, models: Sequence[str]):
        self.address = f"http://127.0.0.1:{port}/v1"
        self.models = list(models)
        self.requests: list[Request] = []
        self.closing = Event()
        """Set at the end, so that nothing waits longer."""
        self._answers, self._always = list(answers), always
        self._lock = Lock()
        self._arrived: Queue[Request] = Queue()

    def then(self, *answers: Answer) -> None:
        """Add answers to the script."""
        with self._lock:
            self._answers += answers

    def forget(self) -> None:
        """Drop what is left of the script."""
        with self._lock:
            self._answers.clear()

    def wait_for_request(self) -> Request:
        """Wait for the next request that was not waited for."""
        return self._arrived.get(timeout=PATIENCE)

    def answer(self, request: Request) -> Reply:
        """Return what a request is answered with."""
        with self._lock:
            self.requests.append(request)
            answer = self._answers.pop(0) if self._answers else self._always
        self._arrived.put(request)
        if answer is None:
            return Reply(f"The script has no answer to: {request.last[:200]}", status=400)
        given = answer(request) if callable(answer) else answer
        return Reply(given) if isinstance(given, str) else given


@contextmanager
def serving(
    *answers: Answer, always: Answer | None = None, models: Sequence[str] = (MODEL,)
) -> Generator[OpenAIServer]:
    """Serve a script until the block ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as http:
        http.daemon_threads = True
        server = OpenAIServer(http.server_port, answers, always, models)
        http.script = server  # type: ignore[attr-defined] # what a handler finds by its server
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            http.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    @property
    def script(self) -> OpenAIServer:
        return self.server.script  # type: ignore[attr-defined] # set by `serving`

    def do_GET(self) -> None:
        self._send(200, {"data": [{"id": name, "object": "model"} for name in self.script.models]})

    def do_POST(self) -> None:
        request = Request(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        reply = self.script.answer(request)
        try:
            self._reply(request, reply)
        except (BrokenPipeError, ConnectionResetError):
            # The client was stopped.
            return

    def _reply(self, request: Request, reply: Reply) -> None:
        number = len(self.script.requests)
        if reply.status != 200:
            error = {"message": reply.text, "type": "server_error", "code": None}
            self._send(reply.status, {"error": error}, reply.headers)
        elif request.body.get("stream"):
            self._stream(request, reply, number)
        else:
            self._send(200, _completion(request, reply, number))

    def _stream(self, request: Request, reply: Reply, number: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if reply.stream is not None:
            self.wfile.write(reply.stream)
            return
        for at, chunk in enumerate(_chunks(request, reply, number)):
            if at == reply.cut:
                return
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()
            if at == 1 and reply.hold:
                self._wait(reply.hold)
            if reply.every:
                self.script.closing.wait(reply.every)
        self.wfile.write(b"data: [DONE]\n\n")

    def _wait(self, hold: Event) -> None:
        while not (self.script.closing.is_set() or hold.wait(0.05)):
            continue

    def _send(self, status: int, answer: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        # The client tries again on most failures unless the server says that it should not.
        self.send_header("x-should-retry", "false")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


def _completion(request: Request, reply: Reply, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = _tool_calls(reply, number)
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    return {**_head(request, number, "chat.completion"), "choices": [choice], "usage": _usage(request, reply)}


def _chunks(request: Request, reply: Reply, number: int) -> Iterator[dict[str, Any]]:
    head = _head(request, number, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for word in _words(reply.thought) if reply.thought else ():
        yield chunk({"reasoning_content": word})
    for word in _words(reply.text) if reply.text else ():
        yield chunk({"content": word})
    for at, made in enumerate(_tool_calls(reply, number)):
        function, arguments = made["function"], made["function"]["arguments"]
        pieces = [arguments] if reply.cut is None else ["", *arguments]
        yield chunk({"tool_calls": [{"index": at, **made, "function": {**function, "arguments": pieces[0]}}]})
        for piece in pieces[1:]:
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(reply))
    if request.body.get("stream_options", {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _usage(request, reply)}


def _words(text: str) -> list[str]:
    words = text.split(" ")
    return [f" {word}" if at else word for at, word in enumerate(words)]


def _head(request: Request, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1, "model": request.body["model"]}


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def _tool_calls(reply: Reply, number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for at, (name, args) in enumerate(reply.calls)
    ]


def _usage(request: Request, reply: Reply) -> dict[str, int]:
    given, made = reply.usage or (len(json.dumps(request.body)) // 4, len(reply.text) // 4 + 10)
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)

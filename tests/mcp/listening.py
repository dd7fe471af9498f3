"""Servers over HTTP: the SDK's own, and one that answers as it is told."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Any

import uvicorn

Answer = Callable[["Crooked", Any], object]


@contextmanager
def served(app: Any) -> Generator[str]:
    """Serve an application of the SDK at an address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, ws="none"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


class Crooked(BaseHTTPRequestHandler):
    """Answers each message as its server was told, and keeps the headers of all requests."""

    protocol_version = "HTTP/1.1"

    @property
    def listening(self) -> Listening:
        server: Any = self.server
        return server

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.listening.seen.append(
            (message.get("method", ""), {name.lower(): value for name, value in self.headers.items()})
        )
        if "id" not in message:
            self.reply(202, b"")
        else:
            self.listening.answer(self, message)

    def do_GET(self) -> None:
        self.reply(405, b"")

    def do_DELETE(self) -> None:
        self.reply(200, b"")

    def reply(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"content-type": kind, "content-length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def result(self, message: Any, result: Any, **headers: str) -> None:
        self.reply(
            200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode(), **headers
        )

    def greet(self, message: Any) -> bool:
        """Answer a handshake and a list with one tool; return whether it was one of them."""
        schema = {"type": "object"}
        if message["method"] == "server/discover":
            error = {"code": -32601, "message": "not found"}
            self.reply(404, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        elif message["method"] == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "crooked", "version": "1"}}
            self.listening.sessions += 1
            session = f"session-{self.listening.sessions}"
            self.result(message, {"protocolVersion": "2025-11-25", **about}, mcp_session_id=session)
        elif message["method"] == "tools/list":
            unfit = {"name": "bad", "inputSchema": {"type": "array"}}
            self.result(message, {"tools": [{"name": "get", "inputSchema": schema}, unfit]})
        else:
            return False
        return True

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


class Listening(ThreadingHTTPServer):
    """A server of crooked answers."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Crooked)
        self.answer, self.sessions = answer, 0
        self.seen: list[tuple[str, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"


@contextmanager
def listening(answer: Answer) -> Generator[Listening]:
    """Listen, and answer each request so."""
    with Listening(answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)


def after_greeting(then: Answer) -> Answer:
    """Return an answer that greets as it should, and misbehaves in calls."""
    return lambda handler, message: None if handler.greet(message) else then(handler, message)


def huge(handler: Crooked, message: Any) -> None:
    size = int(message["params"]["arguments"].get("size", 0))
    handler.result(message, {"content": [{"type": "text", "text": "x" * size}]})


def huge_event(handler: Crooked, message: Any) -> None:
    size = int(message["params"]["arguments"].get("size", 0))
    result = {"content": [{"type": "text", "text": "x" * size}]}
    data = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    handler.reply(200, f"event: message\r\ndata: {data}\r\n\r\n".encode(), "text/event-stream")


def squeezed(handler: Crooked, message: Any) -> None:
    body = gzip.compress(
        json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}).encode()
    )
    handler.reply(200, body, content_encoding="gzip")

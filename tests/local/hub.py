"""A model hub on this machine that serves one file, with the moods of a real one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Hub:
    """What it serves, where it hangs up, and what it was asked."""

    content: bytes
    drops: list[int] = field(default_factory=list[int])
    """For each of the next answers, the number of bytes after which the connection breaks."""
    status: int = 200
    ranges: bool = True
    asked: list[str | None] = field(default_factory=list[str | None])
    address: str = ""


@contextmanager
def serving(hub: Hub) -> Generator[Hub]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, hub)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(request: BaseHTTPRequestHandler, hub: Hub) -> None:
    wanted = request.headers["Range"]
    hub.asked.append(wanted)
    start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and hub.ranges else 0
    if hub.status != 200 or start >= len(hub.content):
        request.send_error(hub.status if hub.status != 200 else 416)
        return
    body = hub.content[start:]
    request.send_response(206 if start else 200)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body[: hub.drops.pop(0)] if hub.drops else body)

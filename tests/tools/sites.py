"""A web server on this machine, which counts who connects to it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from typing import Any, TypeAlias

Answer: TypeAlias = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Site:
    """What it answers by path, and what it saw."""

    port: int
    pages: dict[str, Answer] = field(default_factory=dict[str, Answer])
    seen: list[tuple[str, Mapping[str, str]]] = field(default_factory=list[tuple[str, Mapping[str, str]]])
    connections: int = 0

    @property
    def host(self) -> str:
        """What names it."""
        return f"127.0.0.1:{self.port}"

    def at(self, path: str) -> str:
        """Return the address of a path."""
        return f"http://{self.host}{path}"

    def place(self, path: str, body: bytes | str, media_type: str = "text/html", **headers: str) -> str:
        """Answer with this at a path, and return its address."""
        data = body.encode() if isinstance(body, str) else body
        self.pages[path] = lambda handler: respond(handler, 200, data, content_type=media_type, **headers)
        return self.at(path)

    def redirect(self, path: str, to: str, status: int = 302) -> str:
        """Lead from a path elsewhere, and return its address."""
        self.pages[path] = lambda handler: respond(handler, status, b"", location=to)
        return self.at(path)


def respond(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    """Write a whole answer."""
    handler.send_response(status)
    for name, value in {"content_length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    with suppress(ConnectionError):
        handler.wfile.write(body)


@contextmanager
def serving(certificate: Path | None = None) -> Generator[Site]:
    """Serve until the end of the block; with a certificate and its key in a file, by TLS."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.seen.append((self.path, dict(self.headers)))
            site.pages.get(self.path, lambda handler: respond(handler, 404, b"nothing here"))(self)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def get_request(self) -> tuple[socket, Any]:
            accepted = super().get_request()
            site.connections += 1
            return accepted

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing: that a client breaks off is what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    site = Site(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""Let a sandbox reach the named hosts and no others, by a proxy for HTTP and CONNECT.

It takes one request a connection and writes it anew, so that nobody can hide a second request in the first.
"""

from __future__ import annotations

import re
import selectors
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

import h11

from deepagents._values import field, recordclass
from deepagents.network import HostRules, RefusedHostError, split_authority

_MOST_HEAD: Final = 65_536
_BLOCK: Final = 65_536
_MOST_CONNECTIONS: Final = 128
_SECONDS_IDLE: Final = 300.0
_URL: Final = re.compile(r"http://([^/?#\\@]+)([/?]?[^#]*)", re.IGNORECASE)
_MOST_SHOWN: Final = 300
_NOT_FORWARDED: Final = frozenset(
    (
        b"host",
        b"connection",
        b"expect",
        b"keep-alive",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    )
)


class UnreachableError(Exception):
    """A host that is allowed, and does not answer."""


@recordclass
class Proxy:
    """Serves the connections of one command; `on_refusal` gets the sentence of each refusal."""

    rules: HostRules
    on_refusal: Callable[[str], None]
    _open: set[socket.socket] = field(default_factory=set[socket.socket])
    _served: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_closed: bool = False

    def start(self, listener: socket.socket) -> None:
        """Serve what connects to a listening socket, until `close`."""
        if self._hold(listener):
            threading.Thread(target=self._accept, args=(listener,), name="sandbox-proxy", daemon=True).start()

    def close(self) -> None:
        """End all connections.

        The thread that uses a socket closes it: a closed one would fail in the middle of what that thread
        does, and its number could be another file's by then.
        """
        with self._lock:
            self._is_closed = True
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _hold(self, opened: socket.socket) -> bool:
        """Remember a socket for the end, which may have come already."""
        with self._lock:
            if not self._is_closed:
                self._open.add(opened)
                return True
        opened.close()
        return False

    def _release(self, opened: socket.socket) -> None:
        with self._lock:
            self._open.discard(opened)
        opened.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return self._release(listener)
            if self._served >= _MOST_CONNECTIONS:
                client.close()
                continue
            if not self._hold(client):
                return self._release(listener)
            with self._lock:
                self._served += 1
            threading.Thread(target=self._serve, args=(client,), name="sandbox-proxy", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with suppress(OSError):
                client.settimeout(_SECONDS_IDLE)
                self._serve_one(client)
        finally:
            self._release(client)
            with self._lock:
                self._served -= 1

    def _serve_one(self, client: socket.socket) -> None:
        try:
            self._answer(_Reader(client), client)
        except RefusedHostError as error:
            self.on_refusal(str(error))
            _reply(client, "403 Forbidden", f"{error}.")
        except h11.RemoteProtocolError as error:
            _reply(client, "400 Bad Request", f"The request is malformed: {error}.")
        except UnreachableError as error:
            _reply(client, "502 Bad Gateway", f"The host could not be reached: {error}.")

    def _answer(self, reader: _Reader, client: socket.socket) -> None:
        request = reader.read()
        if not isinstance(request, h11.Request) or not request.http_version.startswith(b"1."):
            raise h11.RemoteProtocolError("it is not one of HTTP/1.1")
        target = request.target.decode()
        if request.method == b"CONNECT":
            with self._connect(*split_authority(target, 443)) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                server.sendall(reader.rest())
                _relay(client, server)
            return
        url = _URL.fullmatch(target)
        if url is None:
            raise h11.RemoteProtocolError("only http:// addresses and CONNECT are served")
        event = _address_anew(request, url)
        with self._connect(*split_authority(url[1], 80)) as server:
            _forward(reader, event, server)
            while data := server.recv(_BLOCK):
                client.sendall(data)

    @contextmanager
    def _connect(self, host: str, port: int | None) -> Generator[socket.socket]:
        if port is None:
            raise h11.RemoteProtocolError(f"{host[:_MOST_SHOWN]!r} is not a host and a port")
        try:
            server = self.rules.connect(host, port)
        except OSError as error:
            raise UnreachableError(error.strerror or str(error)) from error
        if not self._hold(server):
            raise ConnectionAbortedError
        try:
            server.settimeout(_SECONDS_IDLE)
            yield server
        finally:
            self._release(server)


class _Reader:
    """Reads one request from a connection."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_MOST_HEAD)

    def read(self) -> Any:
        """Return what comes next: the head of the request, a part of its body, or its end."""
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            self._parser.receive_data(self._client.recv(_BLOCK))
        return event

    def agree_to_body(self) -> None:
        """Tell a client that waits with the body that it may send it."""
        if self._parser.they_are_waiting_for_100_continue:
            self._client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def rest(self) -> bytes:
        """Return what came behind the request."""
        return self._parser.trailing_data[0]


def _address_anew(request: h11.Request, url: re.Match[str]) -> h11.Request:
    """Return the head of a request as the host that it is for is to get it."""
    given = [each for each in request.headers if each[0] not in _NOT_FORWARDED]
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in given}:
        raise h11.RemoteProtocolError("the length of its body is given in more than one way")
    path = url[2] if url[2].startswith("/") else f"/{url[2]}"
    headers: Any = [("host", url[1]), *given, ("connection", "close")]
    return h11.Request(method=request.method, target=path, headers=headers)


def _forward(reader: _Reader, event: Any, server: socket.socket) -> None:
    """Write a request with this head anew for its host."""
    reader.agree_to_body()
    writer: Any = h11.Connection(h11.CLIENT)
    while not isinstance(event, h11.EndOfMessage):
        server.sendall(writer.send(event))
        event = reader.read()
    # Trailers are not forwarded.
    server.sendall(writer.send(h11.EndOfMessage()))


def _reply(client: socket.socket, status: str, text: str) -> None:
    body = f"deepagents sandbox: {text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    with suppress(OSError):
        client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)


def _relay(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes both ways until both sides have ended, or neither says anything for a long time."""
    to = {one: other, other: one}
    with selectors.DefaultSelector() as selector:
        for each in to:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(_SECONDS_IDLE)
            if not ready:
                return
            sockets: list[Any] = [key.fileobj for key, _ in ready]
            for ended in [each for each in sockets if not _pass_on(each, to[each])]:
                selector.unregister(ended)


def _pass_on(source: socket.socket, other: socket.socket) -> bool:
    """Pass on what is there; `False` when that was the end."""
    data = source.recv(_BLOCK)
    if data:
        other.sendall(data)
        return True
    with suppress(OSError):
        other.shutdown(socket.SHUT_WR)
    return False

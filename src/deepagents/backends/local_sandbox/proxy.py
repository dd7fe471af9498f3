"""The only way out of a sandbox with named hosts: a proxy for HTTP and CONNECT, which refuses all others.

It takes one request a connection and is strict about its form (RFC 9112), so that nobody can hide a second
request in the first.
"""

from __future__ import annotations

import re
import selectors
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from deepagents.backends.local_sandbox.network import HostRules, RefusedHostError, split_authority

_MOST_HEAD: Final = 65_536
_BLOCK: Final = 65_536
_MOST_CONNECTIONS: Final = 128
_SECONDS_TO_CONNECT: Final = 20.0
_SECONDS_IDLE: Final = 300.0
_REQUEST: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/1\.[01]")
_URL: Final = re.compile(r"http://([^/?#\\@]+)([/?]?[^#]*)", re.IGNORECASE)
_MOST_SHOWN: Final = 300
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*")
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
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n]*)?")


class BadRequestError(Exception):
    """A request that has no clear meaning."""


class UnreachableError(Exception):
    """A host that is allowed, and does not answer."""


@dataclass(slots=True)
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
        except BadRequestError as error:
            _reply(client, "400 Bad Request", f"{error}.")
        except UnreachableError as error:
            _reply(client, "502 Bad Gateway", f"The host could not be reached: {error}.")

    def _answer(self, reader: _Reader, client: socket.socket) -> None:
        head = reader.head()
        request = _REQUEST.fullmatch(head[0])
        if request is None:
            raise BadRequestError("The request line is malformed")
        method, target = request[1], request[2].decode()
        if method == b"CONNECT":
            host, port = split_authority(target, 443)
            with self._connect(host, port) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                server.sendall(reader.rest())
                _relay(client, server)
            return
        url = _URL.fullmatch(target)
        if url is None:
            raise BadRequestError("Only http:// addresses and CONNECT are served")
        authority, path = url[1], url[2] if url[2].startswith("/") else f"/{url[2]}"
        host, port = split_authority(authority, 80)
        headers = _parse_headers(head[1:])
        body = reader.body(headers)
        with self._connect(host, port) as server:
            if any(name.lower() == b"expect" for name, _ in headers):
                client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            lines = [b"%s %s HTTP/1.1" % (method, path.encode()), b"Host: %s" % authority.encode()]
            lines += [b"%s: %s" % each for each in headers if each[0].lower() not in _NOT_FORWARDED]
            server.sendall(b"\r\n".join([*lines, b"Connection: close", b"", b""]))
            for part in body:
                server.sendall(part)
            while data := server.recv(_BLOCK):
                client.sendall(data)

    @contextmanager
    def _connect(self, host: str, port: int | None) -> Generator[socket.socket]:
        if port is None:
            raise BadRequestError(f"{host[:_MOST_SHOWN]!r} is no host and port")
        try:
            server = _connect_to_any(self.rules.find_addresses(host, port), port)
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
        self._buffer = b""

    def head(self) -> list[bytes]:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _MOST_HEAD:
                raise BadRequestError("The head of the request is too long")
            self._fill()
        head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        lines = head.split(b"\r\n")
        if any(b"\n" in line or b"\r" in line for line in lines):
            raise BadRequestError("A line must end with CRLF")
        return lines

    def rest(self) -> bytes:
        rest, self._buffer = self._buffer, b""
        return rest

    def body(self, headers: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
        """Return the parts of the body as they are to be sent; its length must be given in one way only."""
        lengths = [value for name, value in headers if name.lower() == b"content-length"]
        codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
        if len(lengths) + len(codings) > 1 or any(each != b"chunked" for each in codings):
            raise BadRequestError("The length of the body is given in more than one way")
        if codings:
            return self._chunks()
        if lengths and not re.fullmatch(rb"\d{1,15}", lengths[0]):
            raise BadRequestError("The length of the body is no number")
        return self._exactly(int(lengths[0]) if lengths else 0)

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._buffer:
                self._fill()
            part, self._buffer = self._buffer[:size], self._buffer[size:]
            size -= len(part)
            yield part

    def _chunks(self) -> Iterator[bytes]:
        while True:
            match = _CHUNK.fullmatch(self._line())
            if match is None:
                raise BadRequestError("A chunk of the body is malformed")
            size = int(match[1], 16)
            if not size:
                # Trailers are not forwarded.
                while self._line():
                    pass
                yield b"0\r\n\r\n"
                return
            yield b"%x\r\n" % size
            yield from self._exactly(size)
            if self._line():
                raise BadRequestError("A chunk of the body is longer than it says")
            yield b"\r\n"

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _MOST_HEAD:
                raise BadRequestError("A line of the body is too long")
            self._fill()
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line

    def _fill(self) -> None:
        data = self._client.recv(_BLOCK)
        if not data:
            raise BadRequestError("The request ends early")
        self._buffer += data


def _parse_headers(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    found = [_HEADER.fullmatch(line) for line in lines]
    if not all(found):
        raise BadRequestError("A header is malformed")
    return [(each[1], each[2]) for each in found if each]


def _connect_to_any(addresses: Sequence[str], port: int) -> socket.socket:
    """Connect to the first address that answers: many names have one of IPv6, which few networks have."""
    *others, last = addresses
    for address in others:
        with suppress(OSError):
            return socket.create_connection((address, port), _SECONDS_TO_CONNECT)
    return socket.create_connection((last, port), _SECONDS_TO_CONNECT)


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

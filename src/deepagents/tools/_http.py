"""Fetch what is at an address of the web: from hosts that rules allow, within bounds of time and size."""

from __future__ import annotations

import re
import ssl
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from socket import SHUT_RDWR, socket
from threading import Timer
from time import monotonic
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

from deepagents._async import seconds_left, start_thread
from deepagents._text import escape_controls
from deepagents._values import replace, valueclass
from deepagents._version import __version__
from deepagents.errors import ToolFailure
from deepagents.network import HostRules, RefusedHostError, Resolve, split_authority

_PORTS: Final = {"http": 80, "https": 443}
_LONGEST: Final = 8192
_MOST_SHOWN: Final = 300
_BLOCK: Final = 65_536
_UNCLEAR: Final = re.compile(r"[\x00-\x20\x7f\\]")
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_GZIP: Final = 31
_MEMBER: Final = b"\x1f\x8b"
_SAFE: Final = "/?&=%:;+,@!$'()*~[]"
"""What stands for itself in the part of an address behind the host."""


@valueclass
class Address:
    """An address of the web in one form: what is checked is what is connected to."""

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `https://example.org/page`.

        Raises:
            ToolFailure: `invalid_argument`, for what has no such form, or more than one meaning.
        """
        if len(text) > _LONGEST:
            raise _unfit(text, f"it has more than {_LONGEST:,} characters")
        if _UNCLEAR.search(text):
            raise _unfit(text, "it holds blank space, control characters or a backslash; write them as %20")
        try:
            parts = urlsplit(text)
        except ValueError as error:
            raise _unfit(text, "its host is malformed") from error
        if parts.scheme not in _PORTS:
            raise _unfit(text, "it has to begin with https:// or http://")
        if "@" in parts.netloc:
            raise _unfit(text, "leave the name and the password before the host out")
        host, port = split_authority(_encode_host(text, parts.netloc), _PORTS[parts.scheme])
        if not host or not port:
            raise _unfit(text, "its host or its port is malformed")
        query = f"?{parts.query}" if parts.query else ""
        target = quote(f"{parts.path or '/'}{query}", safe=_SAFE, errors="replace")
        return cls(parts.scheme, host, port, target)

    @property
    def authority(self) -> tuple[str, int]:
        """The host and the port."""
        return self.host, self.port

    def __str__(self) -> str:
        """Write it as people do."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"


def _encode_host(text: str, authority: str) -> str:
    """Return a host and its port in ASCII: digits, dots and letters of other scripts in their plain form."""
    if authority.isascii():
        return authority
    host, colon, port = authority.rpartition(":")
    host = host if colon else port
    try:
        return f"{host.encode('idna').decode()}{colon}{port if colon else ''}"
    except UnicodeError as error:
        raise _unfit(text, "its host is malformed") from error


def _unfit(text: str, why: str) -> ToolFailure:
    return ToolFailure("invalid_argument", f"{show(text)} cannot be fetched: {why}.")


def show(text: str) -> str:
    """Return text of others as it can stand in a sentence."""
    short = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    return escape_controls(short)


@valueclass
class FetchBounds:
    """How many seconds getting something may take, how many bytes are taken, how many redirects followed."""

    seconds: float
    size: int
    redirects: int = 5


@valueclass
class Content:
    """What was at an address, and where it was found at last; `is_cut` when there was more."""

    address: Address
    media_type: str
    charset: str | None
    body: bytes
    is_cut: bool


class Deadline:
    """When a call ends: once it is due, or when it is given up; then its connection is broken off.

    A call that is cancelled goes on in its thread, and would ask and read to its end.
    """

    def __init__(self, seconds: float) -> None:
        left = seconds_left()
        self.seconds = seconds if left is None else min(seconds, round(left, 1))
        self.due = monotonic() + self.seconds
        # The connection forgets its socket once an answer without a length has taken it.
        self.opened: socket | None = None
        self._timer = Timer(self.seconds, self._break_off)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._break_off()

    def _break_off(self) -> None:
        """End what waits for the other side, which may send a byte now and then for ever."""
        # First, for a thread that is about to open a socket: it looks afterwards.
        self.due = min(self.due, monotonic())
        if self.opened:
            with suppress(OSError):
                # Not the method of a TLS socket, which would change it under the thread that reads.
                socket.shutdown(self.opened, SHUT_RDWR)

    @property
    def is_due(self) -> bool:
        """Whether it has ended."""
        return monotonic() >= self.due


def get(address: Address, rules: HostRules, bounds: FetchBounds, deadline: Deadline) -> Content:
    """Get what is at an address.

    Raises:
        ToolFailure: `permission_denied` for a host that may not be reached, also by a redirect; `timeout`;
            `remote_failed` for what the host answered, or that it did not.
    """
    rules = replace(rules, resolve=_in_time(rules.resolve, deadline))
    found = address
    for _ in range(bounds.redirects + 1):
        answer = _exchange(address, found, rules, bounds, deadline)
        if isinstance(answer, Content):
            return answer
        found = _follow(found, answer)
    raise ToolFailure("remote_failed", f"{show(str(address))} redirects more than {bounds.redirects} times.")


def _exchange(
    first: Address, found: Address, rules: HostRules, bounds: FetchBounds, deadline: Deadline
) -> Content | str:
    """Return what is at an address, or where it redirects to; `first` is where the redirects began."""
    with _Exchange(found, rules, deadline) as exchange:
        try:
            answer = exchange.ask()
            return answer if isinstance(answer, str) else exchange.read(answer, bounds.size)
        except RefusedHostError as error:
            raise _refused(first, found, error) from error
        # The parts of a chunked answer may have lengths that are none.
        except (OSError, HTTPException, ValueError, zlib.error) as error:
            raise _failed(found, error, deadline) from error


def _in_time(resolve: Resolve, deadline: Deadline) -> Resolve:
    """Return a resolver that gives up when it is due: those of systems know no limit of a caller."""

    def resolve_in_time(host: str, port: int) -> Sequence[str]:
        return start_thread(lambda: resolve(host, port)).result(max(deadline.due - monotonic(), 0))

    return resolve_in_time


def _follow(address: Address, location: str) -> Address:
    # As servers send it: bytes of UTF-8, which HTTP reads as Latin-1.
    text = location.encode("latin-1", "replace").decode("utf-8", "replace").strip().replace(" ", "%20")
    try:
        return Address.parse(urljoin(str(address), text))
    except ValueError as error:
        raise _unfit(text, "its host is malformed") from error


def _refused(first: Address, found: Address, error: RefusedHostError) -> ToolFailure:
    if found is first:
        return ToolFailure("permission_denied", f"{error}.")
    return ToolFailure(
        "permission_denied",
        f"{show(str(first))} redirects to {show(str(found))}, which was not fetched: {error}. If it is "
        "needed, ask for that address itself.",
    )


def _failed(address: Address, error: Exception, deadline: Deadline) -> ToolFailure:
    if deadline.is_due or isinstance(error, TimeoutError):
        return ToolFailure(
            "timeout", f"{show(str(address))} did not answer within {deadline.seconds:g} seconds."
        )
    reason = getattr(error, "strerror", None) or show(str(error)) or type(error).__name__
    return ToolFailure("remote_failed", f"{show(str(address))} could not be fetched: {reason}.")


@cache
def _trust() -> ssl.SSLContext:
    import certifi

    # What this machine trusts, and what browsers do: a machine may have no list of its own.
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


class _Exchange(HTTPConnection):
    """One request and its answer; whatever the other side does, it ends when it is due."""

    def __init__(self, address: Address, rules: HostRules, deadline: Deadline) -> None:
        super().__init__(address.host, address.port)
        self._address = address
        self._rules = rules
        self._deadline = deadline
        self._answer: HTTPResponse | None = None

    def __enter__(self) -> _Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        if self._answer:
            self._answer.close()
        self.close()

    def connect(self) -> None:
        """Connect to an address of the host that was checked."""
        left = max(self._deadline.due - monotonic(), 0.01)
        self.sock = self._rules.connect(self._address.host, self._address.port, left)
        self.sock.settimeout(left)
        if self._address.scheme == "https":
            self.sock = _trust().wrap_socket(
                self.sock, server_hostname=self._address.host, do_handshake_on_connect=False
            )
        self._deadline.opened = self.sock
        # What ended before this point found nothing to break off.
        if self._deadline.is_due:
            raise TimeoutError
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def ask(self) -> HTTPResponse | str:
        """Send the request; return the answer, or where it redirects to.

        Raises:
            ToolFailure: for an answer that is an error.
        """
        self.putrequest("GET", self._address.target, skip_accept_encoding=True)
        self.putheader("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5")
        self.putheader("Accept-Encoding", "gzip")
        self.putheader("Connection", "close")
        self.putheader("User-Agent", f"deepagents/{__version__}")
        self.endheaders()
        answer = self._answer = self.getresponse()
        location = answer.headers.get("Location")
        if answer.status in _REDIRECTS and location:
            return location
        if answer.status != 200:
            again = answer.headers.get("Retry-After")
            when = f", and asks to wait {show(again)} seconds" if again and again.isdecimal() else ""
            raise ToolFailure(
                "remote_failed",
                f"{show(str(self._address))} answered {answer.status} {show(answer.reason)}{when}.",
            )
        return answer

    def read(self, answer: HTTPResponse, size: int) -> Content:
        """Read so many bytes of the answer.

        Raises:
            ToolFailure: for one in a form that was not asked for.
        """
        coding = (answer.headers.get("Content-Encoding") or "identity").lower()
        if coding not in ("identity", "gzip", "x-gzip"):
            raise ToolFailure(
                "remote_failed", f"{show(str(self._address))} answered in the coding {show(coding)}."
            )
        take = _as_it_is if coding == "identity" else _unzip
        body, is_cut = take(lambda: answer.read(_BLOCK), size)
        # What was broken off ends like what has no length.
        if self._deadline.is_due:
            raise TimeoutError
        if answer.length and not is_cut:
            raise ConnectionError("it broke off")
        headers = answer.headers
        media_type = headers.get_content_type() if headers.get("Content-Type") else ""
        charset = headers.get_content_charset()
        return Content(self._address, media_type, charset, body, is_cut)


def _as_it_is(read: Callable[[], bytes], size: int) -> tuple[bytes, bool]:
    body = bytearray()
    while len(body) <= size and (data := read()):
        body += data
    return bytes(body[:size]), len(body) > size


def _unzip(read: Callable[[], bytes], size: int) -> tuple[bytes, bool]:
    """Return at most so many bytes of what is unpacked: a few bytes can hold gigabytes."""
    body, data, unpack = bytearray(), b"", zlib.decompressobj(_GZIP)
    while len(body) <= size and (data := data or read()):
        body += unpack.decompress(data, size + 1 - len(body))
        data = unpack.unconsumed_tail
        if unpack.eof:
            # Another member may follow, in the next block too; what does not begin like one means nothing.
            data = unpack.unused_data
            while len(data) < len(_MEMBER) and (more := read()):
                data += more
            if not data.startswith(_MEMBER):
                return bytes(body[:size]), len(body) > size
            unpack = zlib.decompressobj(_GZIP)
    if len(body) <= size and body:
        raise zlib.error("it ended before its end")
    return bytes(body[:size]), len(body) > size

"""Who sends too much, too slowly or too often is refused, and others are answered."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.server.serving import serving, serving_apart
from tests.server.test_runs import say

pytestmark = pytest.mark.slow

PATIENCE = 60
"""Seconds in which a server must close, however busy this machine is; mostly it takes less than one."""
HEAD = b"POST /threads HTTP/1.1\r\nhost: localhost\r\n"


@contextmanager
def _connected(url: str, source: str = "127.0.0.1") -> Generator[socket.socket]:
    where = httpx.URL(url)
    assert where.port
    with socket.create_connection((where.host, where.port), PATIENCE, (source, 0)) as opened:
        yield opened


def _read(connection: socket.socket) -> bytes:
    """Read until the server closes."""
    parts: list[bytes] = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server that waits shortly, which is met by slow clients only."""
    with serving(tmp_path_factory.mktemp("hurried"), slots=0, bounds={"patience": 0.2}) as url:
        yield url


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server without keys."""
    with serving(tmp_path_factory.mktemp("keyless"), slots=0) as url:
        yield url


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST", HEAD, HEAD + b"content-length: 9\r\n\r\n{", HEAD + b"transfer-encoding: chunked\r\n\r\n"],
)
def test_what_does_not_arrive_is_not_waited_for(hurried: str, sent: bytes) -> None:
    with _connected(hurried) as slow:
        slow.sendall(sent)

        assert _read(slow).startswith(b"HTTP/1.1 408 ")


def test_a_body_that_nobody_reads_keeps_no_connection_open(hurried: str) -> None:
    with _connected(hurried) as slow:
        slow.sendall(b"POST /nothing HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{")

        assert _read(slow).startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 408 "))


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n", b"\n\n"])
def test_headers_have_an_end(url: str, end: bytes) -> None:
    with _connected(url) as attacker:
        attacker.sendall(HEAD + b"x-long: " + b"x" * 66_000 + end)

        assert _read(attacker).startswith(b"HTTP/1.1 431 ")


def test_connections_have_a_number(tmp_path: Path) -> None:
    with serving(tmp_path, slots=0, bounds={"connections": 4}) as url, ExitStack() as stack:
        assert httpx.get(f"{url}/ok").status_code == 200
        for _ in range(4):
            stack.enter_context(_connected(url))

        refused = httpx.get(f"{url}/ok")
        stack.close()

        assert refused.status_code == 503


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one address of loopback")
def test_an_address_takes_no_connections_of_others(tmp_path: Path) -> None:
    with serving(tmp_path, slots=0, bounds={"connections": 8}) as url, ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(_connected(url, "127.0.0.2"))
        with _connected(url, "127.0.0.2") as refused:
            assert _read(refused).startswith(b"HTTP/1.1 503 ")

        assert httpx.get(f"{url}/ok").status_code == 200


def test_who_does_not_read_slows_no_run_and_finds_all_of_it_later(tmp_path: Path) -> None:
    """More than the sockets between them hold, and than the server keeps in memory."""
    asked = {"assistant_id": "echo", "input": say("progress 300"), "stream_mode": "custom"}
    database = f"sqlite:///{tmp_path / 'server.db'}"
    with serving_apart(tmp_path, database) as url, httpx.Client(base_url=url, timeout=PATIENCE) as other:
        thread = other.post("/threads", json={}).json()["thread_id"]
        with httpx.stream(
            "POST", f"{url}/threads/{thread}/runs/stream", json=asked, timeout=PATIENCE
        ) as slow:
            (run,) = other.get(f"/threads/{thread}/runs").json()
            ended = other.get(f"/threads/{thread}/runs/{run['run_id']}/join").json()

            numbers = [json.loads(line[6:]).get("number") for line in slow.iter_lines() if "number" in line]

    assert ended["steps"] == ["answered"]
    assert numbers == [*range(300)]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:2024",
        "localhost.evil.example",
        "127.0.0.1.evil",
        "a{b}.evil.example",
        "a{b}.evil.example:2024",
        "me@localhost:evil.example",
        "",
    ],
)
def test_a_name_that_was_made_to_lead_here_reads_nothing(url: str, host: str) -> None:
    refused = httpx.get(f"{url}/info", headers={"host": host})

    assert refused.status_code == 403
    assert "--allow-anyone" in refused.json()["detail"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:2024", "127.0.0.1:", "[::1]:2024"])
def test_the_names_of_this_machine_lead_here(url: str, host: str) -> None:
    assert httpx.get(f"{url}/info", headers={"host": host}).status_code == 200

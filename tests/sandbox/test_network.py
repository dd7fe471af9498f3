"""The proxy of a sandbox with named hosts: what it lets through, what it refuses, and what the model reads of it."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deepagents import create_deep_agent
from deepagents.backends import LocalSandbox
from deepagents.errors import ConfigError
from deepagents.events import Event, HostRefused, ToolFinished
from deepagents.network import HostRule, HostRules, RefusedHostError
from deepagents.testing import ScriptedModel, call
from deepagents_sandbox.proxy import Proxy
from tests.conftest import CallMode
from tests.sandbox.users import UNAVAILABLE, USERS, find_python, run_drills

pytestmark = pytest.mark.slow

needs_sandbox = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))
PUBLIC = "93.184.215.14"


@dataclass
class Site:
    """A web server on this machine, which notes what it is asked."""

    port: int
    seen: list[tuple[str, str, str | None, bytes]] = field(default_factory=list)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    built = Site(0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(line := self.rfile.readline() or b"0", 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                if line == b"0":
                    # A request that breaks off is not noted: the test that sent it may be over by now.
                    return
            built.seen.append((self.command, self.path, self.headers.get("Host"), body))
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    built.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield built
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def proxy(
    allowed: Sequence[str], addresses: dict[str, list[str]] | None = None
) -> Generator[tuple[int, list[str]]]:
    refusals: list[str] = []
    rules = HostRules(
        tuple(map(HostRule.parse, allowed)), lambda host, _: (addresses or {}).get(host, [PUBLIC])
    )
    serving = Proxy(rules, refusals.append)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    serving.start(listener)
    try:
        yield port, refusals
    finally:
        serving.close()


def ask(port: int, request: bytes) -> bytes:
    """Send bytes to the proxy, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(request)
        answer = b""
        with suppress(ConnectionResetError):
            while data := client.recv(65_536):
                answer += data
        return answer


def get(host: str, path: str = "/") -> bytes:
    return f"GET http://{host}{path} HTTP/1.1\r\nHost: other.example\r\n\r\n".encode()


def connect(host: str) -> bytes:
    return f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def test_a_named_host_is_reached_by_http_with_the_host_of_the_address(site: Site) -> None:
    host = f"127.0.0.1:{site.port}"
    with proxy([host]) as (port, refusals):
        answer = ask(port, get(host, "/page?a=1"))

    assert answer.endswith(b"hello")
    assert site.seen[-1] == ("GET", "/page?a=1", host, b"")
    assert refusals == []


def test_a_named_host_is_reached_by_connect(site: Site) -> None:
    host = f"127.0.0.1:{site.port}"
    with proxy([host]) as (port, _):
        answer = ask(port, connect(host) + b"GET /inner HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"hello")


def test_bodies_of_a_length_and_in_chunks_arrive_whole(site: Site) -> None:
    host = f"127.0.0.1:{site.port}"
    head = f"POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\n".encode()
    with proxy([host]) as (port, _):
        ask(port, head + b"Content-Length: 4\r\nExpect: 100-continue\r\n\r\nbody")
        ask(port, head + b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n")

    assert [body for *_, body in site.seen[-2:]] == [b"body", b"abcde"]


def test_a_chunk_that_is_longer_than_it_says_ends_the_request(site: Site) -> None:
    host = f"127.0.0.1:{site.port}"
    head = f"POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with proxy([host]) as (port, _):
        answer = ask(port, head + b"3\r\nabcXX0\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_connection_takes_one_request_and_no_second_one_behind_it(site: Site) -> None:
    host = f"127.0.0.1:{site.port}"
    with proxy([host]) as (port, _):
        before = len(site.seen)
        answer = ask(port, get(host, "/first") + get(host, "/second"))

    assert answer.count(b"hello") == 1
    assert [path for _, path, *_ in site.seen[before:]] == ["/first"]


@pytest.mark.parametrize(
    "request_",
    [
        "GET http://{0}/odd HTTP/1.1\nHost: {0}\n\n",
        "GET http://{0}/odd HTTP/1.1\r\nHost: other\r\nX: a\r\n folded\r\n\r\n",
    ],
)
def test_a_request_is_written_anew_however_it_came(site: Site, request_: str) -> None:
    host = f"127.0.0.1:{site.port}"
    with proxy([host]) as (port, _):
        answer = ask(port, request_.format(host).encode())

    assert answer.endswith(b"hello")
    assert site.seen[-1] == ("GET", "/odd", host, b"")


@pytest.mark.parametrize("make", [get, connect])
@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("evil.example", "it is not among the allowed hosts (good.example, *.wild.example)"),
        ("good.example.evil.example", "it is not among the allowed hosts"),
        ("evilgood.example", "it is not among the allowed hosts"),
        ("wild.example", "it is not among the allowed hosts"),
        ("good.example:22", "only the ports 80, 443 of it are allowed"),
        ("good.example:0", "only the ports 80, 443 of it are allowed"),
        ("93.184.215.14", "addresses are allowed only where they are named"),
        ("[2606:2800:21f::1]", "addresses are allowed only where they are named"),
        ("[::ffff:93.184.215.14]", "addresses are allowed only where they are named"),
        ("0x5d.0xb8.0xd7.0xe", "this is not a host name"),
        ("1572395790", "this is not a host name"),
        ("a..wild.example", "this is not a host name"),
        ("*.wild.example", "this is not a host name"),
        ("good.example..", "this is not a host name"),
        ("x%00.wild.example", "this is not a host name"),
        ("user@x.wild.example", ""),
        ("a" * 64 + ".wild.example", "this is not a host name"),
        ("b" * 5000 + ".wild.example", "this is not a host name"),
    ],
)
def test_what_no_rule_allows_is_refused_with_the_rule(make: object, host: str, sentence: str) -> None:
    with proxy(["good.example", "*.wild.example"]) as (port, refusals):
        answer = ask(port, get(host) if make is get else connect(host)).decode()

    # A name and password before the host has no meaning in a request to a proxy.
    refused = "403 Forbidden" if refusals else "400 Bad Request"
    assert answer.startswith(f"HTTP/1.1 {refused}\r\n")
    assert sentence in answer
    assert len(answer) < 1000
    assert [each for each in refusals if sentence not in each] == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0",
        "fd00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::5db8:d70e", "2002:7f00:1::1", "2002:5db8:d70e::1",
        "2001:0:5db8:d70e:0:0:0:1", "::ffff:0:7f00:1", "2001:db8::1", "not an address",
    ],
)  # fmt: skip
def test_a_named_host_is_refused_when_any_of_its_addresses_is_an_inner_one(address: str) -> None:
    with proxy(["good.example"], {"good.example": [PUBLIC, address]}) as (port, refusals):
        answer = ask(port, connect("good.example")).decode()

    assert answer.startswith("HTTP/1.1 403 ")
    assert "its name leads to an address of this machine's own networks" in answer
    assert len(refusals) == 1


def test_a_name_that_leads_to_a_public_address_of_this_machine_is_refused() -> None:
    # In a network of its own, whose only address is one of the whole internet.
    script = """
import fcntl, socket, struct
from deepagents.network import HostRule, HostRules, RefusedHostError
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    for name, request, value in (("lo", 0x8914, b"\\x49\\0"), ("lo:1", 0x8916, b"\\2\\0\\0\\0\\xcb\\0\\x72\\x09")):
        fcntl.ioctl(control, request, struct.pack("16s24s", name.encode(), value))
for address in ("203.0.115.9", "203.0.114.9"):
    try:
        print(HostRules((HostRule.parse("a.example"),), lambda *_: [address]).find_addresses("a.example", 443))
    except RefusedHostError as error:
        print(error)
"""
    made = ("unshare", "--net", "--map-root-user", sys.executable, "-c", script)
    ended = subprocess.run(made, capture_output=True, text=True, check=False)
    if "unshare" in ended.stderr:
        pytest.skip("no network can be made here")

    assert ended.stdout.splitlines() == [
        "['203.0.115.9']",
        "a.example:443 is refused: its name leads to an address of this machine's own networks",
    ], ended.stderr


def test_a_name_is_resolved_once_so_that_a_second_answer_leads_nowhere(site: Site) -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"]])
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    rules = HostRules((HostRule.parse("GOOD.example."),), resolve)

    assert rules.find_addresses("good.example", 80) == [PUBLIC]
    assert asked == ["good.example"]


class Everywhere(HostRules):
    """Rules for a name with addresses on this machine, which no name that is resolved may have."""

    def find_addresses(self, host: str, port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]


def test_a_host_is_reached_at_the_first_of_its_addresses_that_answers(site: Site) -> None:
    serving = Proxy(Everywhere(()), list[str]().append)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    serving.start(listener)
    try:
        answer = ask(port, get(f"two.example:{site.port}"))
    finally:
        serving.close()

    assert answer.endswith(b"hello")


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://[::1/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a:99999/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT a:x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a/ HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET http://a/\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET  http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\n folded: a\r\n\r\n",
        b"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
        b"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na",
        b"\r\n\r\n",
        b"\0\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\nX: " + b"a" * 200_000,
    ],
)
def test_a_request_without_one_clear_meaning_is_a_bad_one(request_: bytes) -> None:
    with proxy(["a"], {"a": ["127.0.0.1"]}) as (port, refusals):
        answer = ask(port, request_)

    assert answer.startswith(b"HTTP/1.1 400 ") or (len(request_) > 100_000 and not answer)
    assert refusals == []


def test_the_end_of_a_command_ends_its_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as far:
        host = f"127.0.0.1:{far.getsockname()[1]}"
        with proxy([host]) as (port, _):
            client = socket.create_connection(("127.0.0.1", port), 60)
            client.sendall(connect(host))
            accepted, _ = far.accept()
            accepted.settimeout(60)
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")

        assert accepted.recv(1) == b"", "the far end is told"
        client.close()
        accepted.close()


def test_the_end_of_a_command_may_come_at_any_moment_of_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as far:
        host = f"127.0.0.1:{far.getsockname()[1]}"
        for _ in range(200):
            with proxy([host]) as (port, _):
                client = socket.create_connection(("127.0.0.1", port), 60)
                client.sendall(connect(host))
                accepted, _ = far.accept()
            accepted.settimeout(60)
            # An error in a thread of the proxy fails the test.
            assert accepted.recv(1) == b""
            client.close()
            accepted.close()


def test_a_far_end_that_breaks_off_adds_nothing_of_the_proxy_to_what_it_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as far:
        host = f"127.0.0.1:{far.getsockname()[1]}"
        with proxy([host]) as (port, _), socket.create_connection(("127.0.0.1", port), 60) as client:
            client.settimeout(60)
            client.sendall(connect(host))
            accepted, _ = far.accept()
            accepted.sendall(b"half of")
            received = b""
            while not received.endswith(b"half of"):
                received += client.recv(100)
            # Without waiting for what is on its way, so that the other side reads an error.
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            accepted.close()

            assert client.recv(100) == b""


@pytest.mark.parametrize("rule", ["*", "", "http://a", "a/b", "a:99999", "*.*.a", "a b", "bücher.example"])
def test_a_rule_that_names_no_host_is_refused_with_its_text(rule: str) -> None:
    with pytest.raises(ConfigError, match="network must hold host names") as raised:
        HostRule.parse(rule)

    assert repr(rule) in str(raised.value)


def test_further_hosts_are_names_at_the_usual_ports_that_lead_outside() -> None:
    where = {"more.example": ["93.184.215.14"], "inner.example": ["10.0.0.1"]}
    rules = HostRules((), lambda host, port: where[host], lambda host: host in where)

    assert rules.find_addresses("more.example", 443) == ["93.184.215.14"]
    for host, port in [
        ("more.example", 22),
        ("93.184.215.14", 443),
        ("inner.example", 443),
        ("other.example", 80),
    ]:
        with pytest.raises(RefusedHostError):
            rules.find_addresses(host, port)


@needs_sandbox
def test_a_command_reaches_a_named_host_and_the_model_reads_what_was_refused(
    tmp_path: Path, site: Site
) -> None:
    host = f"127.0.0.1:{site.port}"
    backend = LocalSandbox(tmp_path, network=[host, "good.example"])

    # What is on this machine is asked directly by default, and directly there is nothing.
    fetched = backend.execute(f"curl -sS --noproxy '' http://{host}/page")
    direct = backend.execute(f"curl -sS http://{host}/page")
    refused = backend.execute("curl -s -o /dev/null -w '%{http_code}' http://evil.example/; exit 0")

    assert fetched.output == "hello"
    assert direct.exit_code
    assert refused.output == (
        "403\n[evil.example:80 is refused: it is not among the allowed hosts (127.0.0.1, good.example)]"
    )


REFUSED = "evil.example:80 is refused: it is not among the allowed hosts (good.example)"
ASKS = "curl -s -o /dev/null http://evil.example/"


def watch(call_mode: CallMode, backend: LocalSandbox, *answers: Any) -> tuple[list[Event], list[str]]:
    """Let an agent work, and return all events and what its tools answered."""
    with backend, ScriptedModel(*answers, "Done.") as model:
        agent = create_deep_agent(model, backend=backend)
        events = list(call_mode.observe(agent, {"messages": "Go"}))
    return events, [each.text for each in events if isinstance(each, ToolFinished)]


@needs_sandbox
@pytest.mark.parametrize("session", [False, True])
def test_each_refusal_is_an_event_and_a_sentence_that_the_model_reads(
    tmp_path: Path, call_mode: CallMode, session: bool
) -> None:
    backend = LocalSandbox(tmp_path, network=["good.example"], session=session)
    events, answers = watch(
        call_mode, backend, call("execute", command="true"), *[call("execute", command=f"{ASKS}; {ASKS}")] * 2
    )

    refusals = [each for each in events if isinstance(each, HostRefused)]
    asked = [each.call_id for each in events if isinstance(each, ToolFinished)]
    assert [(each.text, each.call_id) for each in refusals] == [(REFUSED, asked[1]), (REFUSED, asked[2])]
    assert "refused" not in answers[0]
    assert answers[1].startswith(f"[{REFUSED}]\n")
    assert answers[2].startswith(f"[{REFUSED}]\n")


@needs_sandbox
@pytest.mark.parametrize("session", [False, True])
def test_a_refusal_of_a_command_in_the_background_is_shown_while_it_runs(
    tmp_path: Path, call_mode: CallMode, session: bool
) -> None:
    backend = LocalSandbox(tmp_path, network=["good.example"], session=session)
    events, answers = watch(
        call_mode,
        backend,
        call("execute", command=f"{ASKS}; touch asked; exec sleep 60", background=True),
        call("execute", command="until test -e asked; do sleep 0.01; done"),
        call("read_command", command_id="command-1"),
        call("stop_command", command_id="command-1"),
    )

    (refusal,) = [each for each in events if isinstance(each, HostRefused) and each.command_id]
    assert (refusal.text, refusal.command_id) == (REFUSED, "command-1")
    assert answers[2] == f"(no new output)\n[{REFUSED}]\n[It runs]"
    assert answers[3] == f"(no new output)\n[{REFUSED}]\n[It ended with exit code 143]"


@needs_sandbox
@pytest.mark.parametrize("user", USERS)
def test_a_command_reaches_its_hosts_and_no_others_whoever_runs_it(user: str) -> None:
    python = find_python(user)
    if python is None:
        pytest.skip(f"{sys.base_prefix} is out of reach for {user}, and there is no such Python in /usr/bin")
    ran = run_drills("tests.sandbox.network_drills", user, python)["named_hosts"]

    refusal = "evil.example:80 is refused: it is not among the allowed hosts (127.0.0.1)"
    assert ran["plain"] == f"hello\n1000\n[{refusal}]"
    assert ran["in a session"] == f"hello\n1000\n[{refusal}]"
    assert ran["refused"] == [refusal]


@needs_sandbox
def test_a_command_that_asks_for_a_thousand_hosts_fills_neither_output_nor_memory(tmp_path: Path) -> None:
    code = """
import socket
for each in range(300):
    with socket.create_connection(("127.0.0.1", 3128)) as proxy:
        proxy.sendall(b"CONNECT " + b"a" * 5000 + b"%d:443 HTTP/1.1\\r\\n\\r\\n" % each)
        proxy.recv(10000)
"""
    ran = LocalSandbox(tmp_path, network=["good.example"]).execute(f"python3 -I -c '{code}'")

    assert ran.output.count("is refused") <= 20
    assert len(ran.output) < 20_000


@needs_sandbox
def test_there_is_no_other_way_out_than_the_proxy(tmp_path: Path, site: Site) -> None:
    before = len(site.seen)
    ran = LocalSandbox(tmp_path, network=[f"127.0.0.1:{site.port}"]).execute(
        f"curl -sS --noproxy '*' http://127.0.0.1:{site.port}/; getent hosts example.org; "
        "curl -sS --noproxy '*' -m 3 http://93.184.215.14/; ls /sys/class/net 2>&1; cat /proc/net/route | wc -l"
    )

    assert site.seen[before:] == []
    assert "hello" not in ran.output

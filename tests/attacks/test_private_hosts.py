"""A page, a name or an address that would lead web_fetch into this machine's own networks leads nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel, call
from deepagents.tools import web_fetch
from tests.conftest import CallMode, NetworkRefused
from tests.tools.sites import Site, serving

THREAD: Any = {"configurable": {"thread_id": "1"}}
ROUTABLE = "2d00::1"
"""An address that rules allow; a test that connects to it fails, as with any beyond this machine."""

OWN = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "10.1.2.3", "172.16.0.1", "172.31.255.254", "192.168.1.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "192.88.99.1", "198.18.0.1", "224.0.0.1", "239.255.255.250",
    "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:7f00:0001", "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1",
    "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1", "3fff::1", "100::1", "fe80::1", "fe80::1%lo", "fe80::1%1", "fc00::1", "fd00:ec2::254",
    "fec0::1", "ff02::1", "5f00::1", "2d00::1%lo",
    "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "not an address", "",
]  # fmt: skip
"""What a resolver may answer for a name that is allowed."""

SPELLINGS = [
    "http://127.0.0.1:{0}/", "http://127.1:{0}/", "http://127.0.1:{0}/", "http://2130706433:{0}/",
    "http://0x7f000001:{0}/", "http://0x7f.0.0.1:{0}/", "http://017700000001:{0}/", "http://0177.0.0.1:{0}/",
    "http://127.0.0.01:{0}/", "http://0:{0}/", "http://0.0.0.0:{0}/", "http://127.0.0.1.:{0}/",
    "http://127.0.0.1..:{0}/", "http://localhost:{0}/", "http://LocalHost.:{0}/",
    "http://localhost.localdomain:{0}/",
    "http://[::1]:{0}/", "http://[::]:{0}/", "http://[::ffff:127.0.0.1]:{0}/", "http://[0:0:0:0:0:0:0:1]:{0}/",
    "http://[::ffff:7f00:1]:{0}/", "http://[::127.0.0.1]:{0}/", "http://[64:ff9b::7f00:1]:{0}/",
    "http://[2002:7f00:1::]:{0}/", "http://[::1%25lo]:{0}/", "http://[fe80::1%lo]:{0}/",
    "http://user@127.0.0.1:{0}/", "http://good.test:80@127.0.0.1:{0}/", "http://good.test%00@127.0.0.1:{0}/",
    "http://good.test\\@127.0.0.1:{0}/",
    "http://127.0.0.1:{0}\\@good.test/",
    "http://127.0.0.1%2f@good.test:{0}/", "http://%31%32%37.0.0.1:{0}/", "http://127.0.0.1%00.good.test:{0}/",
    "http://①②⑦.0.0.1:{0}/", "http://127。0。0。1:{0}/",
    "http://１２７.０.０.１:{0}/", "http://ⅼocalhost:{0}/",
    "http://127.0.0.1\t:{0}/", "http://127.0.0.1:{0}\n.good.test/",
    " http://127.0.0.1:{0}/", "//127.0.0.1:{0}/",
    "http:127.0.0.1:{0}/", "http:///127.0.0.1:{0}/", "http:/\\127.0.0.1:{0}/", "HTTP://127.0.0.1:{0}/",
    "gopher://127.0.0.1:{0}/_GET%20/", "ftp://127.0.0.1:{0}/", "file:///etc/passwd", "file://127.0.0.1:{0}/",
    "dict://127.0.0.1:{0}/", "data:text/html,hello", "javascript:alert(1)", "http://127.0.0.1:0{0}/",
    "http://127.0.0.1:-1/", "http://127.0.0.1:99999/", "http://[127.0.0.1]:{0}/", "http://[::1:{0}/",
    "http://{0}/", "http://.:{0}/", "http://:{0}/", "http://*.own.test:{0}/", "http://xn--127-:{0}/",
]  # fmt: skip
"""How an address may be written; the port is that of a server that must not be reached."""


@pytest.fixture(scope="module")
def secret() -> Iterator[Site]:
    """What must not be reached."""
    with serving() as site:
        yield site


@pytest.fixture(scope="module")
def front() -> Iterator[Site]:
    """What may be reached, and leads elsewhere."""
    with serving() as site:
        yield site


def read(call_mode: CallMode, url: str, **options: Any) -> ToolMessage:
    """Let an agent fetch something, and return what its model reads."""
    with ScriptedModel(call("web_fetch", url=url), "Done.") as model:
        tools = [web_fetch(timeout=5, **options)]
        agent = create_deep_agent(model, tools=tools, checkpointer=InMemorySaver())
        messages = call_mode.invoke(agent, {"messages": "Go"}, THREAD)["messages"]
    (answer,) = [each for each in messages if isinstance(each, ToolMessage)]
    return answer


def resolving_to(*answers: Sequence[str]) -> Callable[[str, int], Sequence[str]]:
    """Make a resolver that gives these answers, one after the other, and then the last one."""
    left = [*answers]
    return lambda host, port: left.pop(0) if len(left) > 1 else left[0]


def test_a_server_that_is_named_by_its_address_is_reached(call_mode: CallMode, front: Site) -> None:
    before = front.connections
    url = front.place("/hello", "hello", "text/plain")

    assert "hello" in read(call_mode, url, hosts=[front.host]).text
    assert front.connections == before + 1


@pytest.mark.parametrize("address", OWN)
def test_a_name_that_leads_inside_is_not_reached(call_mode: CallMode, secret: Site, address: str) -> None:
    named = f"x.own.test:{secret.port}"
    answer = read(call_mode, f"http://{named}/", hosts=[named], resolve=resolving_to([address]))

    assert answer.status == "error"
    assert "its name leads to an address of this machine's own networks" in answer.text
    assert secret.connections == 0


@pytest.mark.parametrize("others", [[ROUTABLE], [ROUTABLE] * 3])
@pytest.mark.parametrize("first", [True, False])
def test_one_such_address_among_many_is_enough(
    call_mode: CallMode, secret: Site, others: list[str], first: bool
) -> None:
    named = f"x.own.test:{secret.port}"
    found = ["127.0.0.1", *others] if first else [*others, "127.0.0.1"]
    answer = read(call_mode, f"http://{named}/", hosts=[named], resolve=resolving_to(found))

    assert "own networks" in answer.text
    assert secret.connections == 0


def test_a_name_is_asked_once_and_what_was_checked_is_connected_to(secret: Site) -> None:
    named = f"x.own.test:{secret.port}"
    fetch = web_fetch([named], resolve=resolving_to([ROUTABLE], ["127.0.0.1"]))

    with pytest.raises(NetworkRefused, match=ROUTABLE):
        fetch.invoke({"url": f"http://{named}/"})
    assert secret.connections == 0


@pytest.mark.parametrize("hosts", ["all", ["good.test", "*.own.test"]])
@pytest.mark.parametrize("url", SPELLINGS)
def test_no_spelling_of_an_address_is_one_that_nobody_named(secret: Site, url: str, hosts: Any) -> None:
    fetch = web_fetch(hosts, resolve=resolving_to([ROUTABLE], ["127.0.0.1"]))
    answer = fetch.invoke({"url": url.format(secret.port)})

    assert answer.status == "error"
    assert answer.additional_kwargs["error_code"] in ("permission_denied", "invalid_argument")
    assert secret.connections == 0


@pytest.mark.parametrize("url", SPELLINGS)
def test_no_redirect_leads_where_nobody_named(front: Site, secret: Site, url: str) -> None:
    # A header has no line ends; what is no whole address is one of the same site.
    target = url.format(secret.port).replace("\n", "").encode().decode("latin-1")
    fetch = web_fetch([front.host], resolve=resolving_to(["127.0.0.1"]))
    answer = fetch.invoke({"url": front.redirect("/away", target)})

    assert answer.status == "error"
    assert secret.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_name_that_leads_inside_is_not_followed(
    call_mode: CallMode, front: Site, secret: Site, status: int
) -> None:
    named = f"x.own.test:{secret.port}"
    start = front.redirect("/away", f"http://{named}/", status)
    answer = read(call_mode, start, hosts=[front.host, named], resolve=resolving_to(["127.0.0.1"]))

    assert "own networks" in answer.text
    assert secret.connections == 0


def test_a_person_who_agrees_to_a_name_does_not_agree_to_where_it_leads(call_mode: CallMode) -> None:
    with ScriptedModel(call("web_fetch", url="http://x.own.test/"), "Done.") as model:
        tools = [web_fetch(resolve=resolving_to(["169.254.169.254"]))]
        agent = create_deep_agent(model, tools=tools, checkpointer=InMemorySaver())
        assert call_mode.invoke(agent, {"messages": "Go"}, THREAD)["__interrupt__"]
        result = call_mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)

    (answer,) = [each for each in result["messages"] if isinstance(each, ToolMessage)]
    assert answer.additional_kwargs["error_code"] == "permission_denied"
    assert "own networks" in answer.text

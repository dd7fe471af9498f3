from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.client import SyncLangGraphClient
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from deepagents_cli.__main__ import main
from tests.server.handlers import LOCKED
from tests.server.serving import AGENTS, make_key, serving
from tests.server.test_runs import say

pytestmark = pytest.mark.slow

HANDLERS = Path(__file__).with_name("handlers.py")


def opened(url: str, thread_id: str, **headers: str) -> AbstractContextManager[ClientConnection]:
    where = f"{url.replace('http', 'ws', 1)}/threads/{thread_id}/stream/events"
    return connect(where, additional_headers=headers, close_timeout=1)


def ask(socket: ClientConnection, method: Any, params: Any = None, number: int = 1) -> dict[str, Any]:
    """Send a command and return its answer; events may come before."""
    socket.send(json.dumps({"id": number, "method": method, "params": params}))
    return next(each for each in map(json.loads, socket) if each["type"] != "event")


def refused(url: str, thread_id: str = str(uuid4()), **headers: str) -> int:
    with pytest.raises(InvalidStatus) as failure:
        opened(url, thread_id, **headers).__enter__()
    return failure.value.response.status_code


def test_one_connection_takes_commands_and_tells_events(url: str, sync_client: SyncLangGraphClient) -> None:
    thread = sync_client.threads.create()["thread_id"]
    run = {"assistant_id": "echo", "input": say("ask Why?")}
    with opened(url, thread) as socket:
        subscribed = ask(socket, "subscription.subscribe", {"channels": ["lifecycle", "input"]})
        assert ask(socket, "run.start", run, 2)["result"]["run_id"]
        seen: list[Any] = []
        while not seen or seen[-1]["method"] != "input.requested":
            seen.append(json.loads(socket.recv(60)))
        interrupt = seen[-1]["params"]["data"]["interrupt_id"]
        assert ask(socket, "input.respond", {"interrupt_id": interrupt, "response": "because"}, 3)["id"] == 3
        gone = ask(socket, "subscription.unsubscribe", subscribed["result"], 4)
        again = ask(socket, "subscription.unsubscribe", subscribed["result"], 5)

    assert gone["type"] == "success"
    assert again["error"] == "no_such_subscription"
    assert [each["params"]["data"].get("event") for each in seen if each["method"] == "lifecycle"][
        0
    ] == "running"


def test_a_connection_tells_each_event_once_and_the_end_of_a_run_last(
    url: str, sync_client: SyncLangGraphClient
) -> None:
    """However many of its subscriptions want it: pages take what comes after the end for the next run."""
    thread = sync_client.threads.create()["thread_id"]
    wanted = (["lifecycle"], ["lifecycle", "values"], ["messages"])
    commands: list[Any] = [("subscription.subscribe", {"channels": channels}) for channels in wanted]
    commands.append(("run.start", {"assistant_id": "echo", "input": say("hello")}))
    told: list[Any] = []
    with opened(url, thread) as socket:
        for number, (method, params) in enumerate(commands):
            socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while not told or told[-1].get("params", {}).get("data", {}).get("event") != "completed":
            told.append(json.loads(socket.recv(60)))

    events = [each for each in told if each["type"] == "event"]
    assert {each["method"] for each in events} == {"lifecycle", "values", "messages"}
    assert len(events) == len({each["event_id"] for each in events})
    assert [each["seq"] for each in events] == sorted(each["seq"] for each in events)


def test_a_subscription_made_while_a_client_is_slow_begins_with_the_first_event(
    url: str, sync_client: SyncLangGraphClient
) -> None:
    thread = sync_client.threads.create()["thread_id"]
    told: list[Any] = []
    with opened(url, thread) as socket:
        ask(socket, "run.start", {"assistant_id": "echo", "input": say("progress 200")})
        ask(socket, "subscription.subscribe", {"channels": ["custom"]}, 2)
        # The client reads no more for now, so that what is sent fills what lies between.
        late = {"id": 3, "method": "subscription.subscribe", "params": {"channels": ["lifecycle"]}}
        sync_client.runs.join(thread, sync_client.runs.list(thread)[0]["run_id"])
        socket.send(json.dumps(late))
        while not told or told[-1].get("params", {}).get("data", {}).get("event") != "completed":
            told.append(json.loads(socket.recv(60)))

    events = [each for each in told if each["type"] == "event"]
    assert [each["params"]["data"]["event"] for each in events if each["method"] == "lifecycle"] == [
        "running",
        "completed",
    ]
    assert len(events) == len({each["event_id"] for each in events}) == 202


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"\xff\x00", "not JSON"),
        ("", "integer id"),
        ("[1]", "integer id"),
        ('{"id": 1, "method": "subscription.subscribe"}', "channels"),
        ('{"id": 1, "method": "subscription.subscribe", "params": {"channels": ["moon"]}}', "moon"),
        ('{"id": 1, "method": "subscription.unsubscribe", "params": 5}', "no subscription"),
        (
            '{"id": 1, "method": "run.start", '
            '"params": {"assistant_id": "echo", "metadata": {"a": "nul \\u0000"}}}',
            "NUL",
        ),
        ('{"id": 1, "params": ' + "[" * 300 + "]" * 300 + "}", "200 levels"),
    ],
)
def test_a_strange_message_is_refused_and_the_next_one_is_heard(
    url: str, sync_client: SyncLangGraphClient, sent: str | bytes, error: str
) -> None:
    thread = sync_client.threads.create()["thread_id"]
    with opened(url, thread) as socket:
        socket.send(sent)
        assert error in json.loads(socket.recv(60))["message"]
        assert ask(socket, "subscription.subscribe", {"channels": ["values"]})["type"] == "success"


def test_a_message_without_an_end_is_cut_off(url: str) -> None:
    def send(socket: ClientConnection) -> None:
        # In pieces, so that it is known to be too large before its end.
        socket.send(["x" * 1_000_000] * 40)
        socket.recv(60)

    # On a busy machine the connection is reset before its reason, 1009, is read.
    with opened(url, str(uuid4())) as socket, pytest.raises(ConnectionClosed):
        send(socket)


def subscribe(socket: ClientConnection) -> dict[str, Any]:
    return ask(socket, "subscription.subscribe", {"channels": ["values"]})


def test_subscriptions_have_a_number_and_those_that_have_ended_do_not_count(
    url: str, sync_client: SyncLangGraphClient
) -> None:
    thread = sync_client.threads.create()["thread_id"]
    with opened(url, thread) as socket:
        answers = [subscribe(socket) for _ in range(101)]
        sync_client.threads.delete(thread)
        while "at most 100" in (refused := subscribe(socket))["message"]:
            pass

    assert [each["type"] for each in answers] == ["success"] * 100 + ["error"]
    assert "There is no thread" in refused["message"]


def test_a_command_that_fails_ends_no_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        serving(tmp_path, slots=0, graphs={"broken": f"{AGENTS}:make_broken"}) as url,
        opened(url, str(uuid4())) as socket,
    ):
        assert ask(socket, "run.start", {"assistant_id": "broken"})["type"] == "success"
        failed = ask(socket, "agent.getTree")
        assert subscribe(socket)["type"] == "success"

    assert failed["error"] == "unknown_error"
    assert "secret" not in failed["message"]
    assert "secret of the factory" in caplog.text


def test_a_page_from_elsewhere_opens_nothing(url: str) -> None:
    assert refused(url, origin="https://evil.example") == 403
    assert refused(url, "no-uuid") == 422


WEB_APP = """
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute


async def greet(socket):
    await socket.accept()
    await socket.send_text("Hello")
    await socket.close()


app = Starlette(routes=[WebSocketRoute("/greet", greet)])
"""


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server that asks for keys, also before the user's own routes; and a key."""
    place = tmp_path_factory.mktemp("keyed")
    (place / "webapp.py").write_text(WEB_APP)
    key = make_key(place, "alice")
    database = f"sqlite:///{place / '.deepagents' / 'server.db'}"
    http = {"app": "./webapp.py:app", "enable_custom_route_auth": True, "mount_prefix": "/agents"}
    with serving(place, database, slots=0, http=http, bounds={"connections": 3}) as url:
        yield f"{url}/agents", key


def test_a_key_opens_a_connection_and_a_page_from_elsewhere_none(
    keyed: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    url, key = keyed
    known = {"x-api-key": key}

    assert refused(url) == 401
    assert refused(url, origin="https://evil.example", **known) == 403
    assert refused(url.removesuffix("/agents"), **known) == 404
    with opened(url, str(uuid4()), **known) as socket:
        assert "There is no thread" in ask(socket, "agent.getTree")["message"]
    assert "ERROR" not in caplog.text


def test_a_page_sends_its_key_as_a_subprotocol(keyed: tuple[str, str]) -> None:
    url, key = keyed
    where = f"{url.replace('http', 'ws', 1)}/threads/{uuid4()}/stream/events"

    with (
        pytest.raises(InvalidStatus, match="401"),
        connect(where, subprotocols=cast(Any, ["bearer", "no-key"])),
    ):
        pass
    with connect(
        where, subprotocols=cast(Any, ["bearer", key]), origin=cast(Any, "http://localhost:3000")
    ) as socket:
        assert socket.subprotocol == "bearer"
        assert ask(socket, "agent.getTree")["error"] == "invalid_argument"


def test_a_key_that_is_revoked_commands_nothing_more(tmp_path: Path) -> None:
    key = make_key(tmp_path, "bob")
    database = str(tmp_path / ".deepagents" / "server.db")
    with (
        serving(tmp_path, f"sqlite:///{database}", slots=0) as url,
        opened(url, str(uuid4()), **{"x-api-key": key}) as socket,
    ):
        started = ask(socket, "run.start", {"assistant_id": "echo", "input": say("hello")})
        assert main(["keys", "revoke", key.split("-")[1], "--database", database]) == 0
        while (answer := subscribe(socket))["type"] == "success":
            ask(socket, "subscription.unsubscribe", answer["result"])

    assert started["type"] == "success"
    assert answer["error"] == "permission_denied"


def test_the_users_own_connections_ask_who_calls_if_they_are_to(keyed: tuple[str, str]) -> None:
    where = f"{keyed[0].replace('http', 'ws', 1)}/greet"

    with pytest.raises(InvalidStatus, match="401"), connect(where):
        pass
    with connect(where, additional_headers={"x-api-key": keyed[1]}) as socket:
        assert socket.recv(60) == "Hello"


def test_connections_have_a_number(keyed: tuple[str, str]) -> None:
    url, key = keyed
    known = {"x-api-key": key}
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(opened(url, str(uuid4()), **known))

        assert refused(url, **known) == 503


def test_a_handler_is_asked_about_each_command(tmp_path: Path) -> None:
    with serving(tmp_path, slots=0, auth={"path": f"{HANDLERS}:auth"}) as url:
        assert refused(url, authorization="Bearer stranger") == 401
        assert refused(url, authorization="Bearer fails") == 500
        sent = {"authorization": "Bearer ann"}
        with httpx.Client(base_url=url, headers=sent) as ann:
            ann.post("/threads", json={"thread_id": LOCKED})
        with opened(url, LOCKED, **sent) as socket:
            started = ask(socket, "run.start", {"assistant_id": "echo", "input": say("hello")})
            seen = ask(socket, "subscription.subscribe", {"channels": ["values"]}, 2)
        with opened(url, LOCKED, authorization="Bearer cid") as socket:
            hidden = ask(socket, "subscription.subscribe", {"channels": ["values"]})

    assert started["error"] == "permission_denied"
    assert seen["type"] == "success"
    assert "There is no thread" in hidden["message"]

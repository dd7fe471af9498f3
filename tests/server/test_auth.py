from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deepagents_server.api.app import PARTS
from deepagents_server.api.endpoint import Endpoint
from deepagents_server.auth import Handlers
from deepagents_server.config import ServerConfig
from deepagents_server.errors import ServeError
from tests.server.handlers import LOCKED
from tests.server.serving import Process, serving
from tests.server.test_runs import last, say

ENDPOINTS = [(each, *each.asks) for found in PARTS.values() for each in found if isinstance(each.asks, tuple)]
HANDLERS = Path(__file__).with_name("handlers.py")
REFUSING = """
from langgraph_sdk import Auth

auth = Auth()


@auth.on
async def refuse(ctx, value):
    raise Auth.exceptions.HTTPException(403, f"{ctx.resource}.{ctx.action}")
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    process = Process(tmp_path_factory.mktemp("auth"), config={"auth": {"path": f"{HANDLERS}:auth"}})
    yield process.start()
    process.close()


@pytest.fixture
def callers(url: str) -> Iterator[list[httpx.Client]]:
    """Ann and Ben of the red, and Cid of the blue."""
    clients = [
        httpx.Client(base_url=url, headers={"authorization": f"Bearer {name}"}, timeout=60)
        for name in ("ann", "ben", "cid")
    ]
    yield clients
    for client in clients:
        client.close()


def test_a_handler_says_who_calls_and_a_run_knows_it(callers: list[httpx.Client]) -> None:
    ann = callers[0]
    forged = {"configurable": {"langgraph_auth_user": {"identity": "cid"}, "langgraph_auth_user_id": "cid"}}
    asked = {"assistant_id": "echo", "input": say("who"), "config": forged}

    thread = ann.post("/threads", json={}).json()["thread_id"]
    answered = ann.post(f"/threads/{thread}/runs/wait", json=asked).json()
    shown = ann.get(f"/threads/{thread}/runs").text

    assert last(answered) == "ann of red"
    assert "token" not in shown


@pytest.mark.slow
def test_a_handler_is_asked_for_each_tool_that_is_called(callers: list[httpx.Client]) -> None:
    ann, ben, cid = callers
    asked = {"name": "echo", "arguments": say("who")}

    told = ann.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked})

    assert "ann of red" in told.text
    # The handler of threads has marked this one as her organisation's.
    found = {"values": {"messages": [{"content": "ann of red"}]}, "select": ["thread_id"]}
    assert ben.post("/threads/search", json=found).json()
    assert not cid.post("/threads/search", json=found).json()


def test_a_filter_shows_rows_of_others_and_hides_the_rest(callers: list[httpx.Client]) -> None:
    ann, ben, cid = callers
    made = ann.post("/threads", json={"metadata": {"title": "ours"}}).json()
    path = f"/threads/{made['thread_id']}"
    ran = ben.post(f"{path}/runs/wait", json={"assistant_id": "echo", "input": say("hello")})

    assert made["metadata"] == {"title": "ours", "org": "red"}
    assert last(ran.json()) == "Echo: hello"
    assert ann.get(f"{path}/runs").json()[0]["status"] == "success"
    ann.post(f"{path}/state", json={"values": {"steps": ["by hand"]}})
    states = ann.post(f"{path}/history", json={}).json()
    assert states[0]["values"]["steps"] == ["answered", "by hand"], "a filter is for rows, not for states"
    assert path[9:] in [each["thread_id"] for each in ben.post("/threads/search", json={}).json()]
    assert path[9:] not in [each["thread_id"] for each in cid.post("/threads/search", json={}).json()]
    for refused in (cid.get(path), cid.get(f"{path}/runs"), cid.post(f"{path}/history", json={})):
        assert refused.status_code == 404


def test_a_run_without_a_thread_makes_one_that_its_caller_sees(callers: list[httpx.Client]) -> None:
    ann, _, cid = callers
    asked = {"assistant_id": "echo", "input": say("hello"), "on_completion": "keep"}

    ran = ann.post("/runs/wait", json=asked)
    path = ran.headers["content-location"]

    assert last(ran.json()) == "Echo: hello"
    assert ann.get(path).status_code == 200
    assert cid.get(path).status_code == 404


SAID = {"model": "echo", "messages": [{"role": "user", "content": "hello"}]}


def tool(name: str, **more: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": say("hello"), **more}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        (f"/threads/{LOCKED}/runs", {"assistant_id": "echo"}, {}, 403),
        (f"/threads/{LOCKED}/commands", {"id": 1, "method": "run.start", "params": {}}, {}, 403),
        ("/runs/batch", [{"assistant_id": "echo"}, {"assistant_id": "echo", "thread_id": LOCKED}], {}, 403),
        ("/runs/batch", [{"assistant_id": "echo", "thread_id": {"a": LOCKED}}], {}, 422),
        ("/v1/chat/completions", SAID, {"x-thread-id": LOCKED}, 403),
        ("/v1/chat/completions", {**SAID, "model": "gate"}, {}, 403),
        ("/v1/chat/completions", SAID, {}, 200),
        ("/mcp", tool("echo", requestState=LOCKED), {}, 200),
        ("/mcp", tool("gate"), {}, 200),
        # The run gets a thread of its own: a body cannot pass it off as another.
        ("/runs/wait", {"assistant_id": "echo", "input": say("hello"), "thread_id": LOCKED}, {}, 200),
    ],
)
def test_a_handler_sees_what_runs_and_on_which_thread(
    callers: list[httpx.Client], path: str, body: Any, headers: dict[str, str], status: int
) -> None:
    answered = callers[0].post(path, json=body, headers=headers)

    assert answered.status_code == status
    if path == "/mcp":
        assert "Forbidden" in answered.text
    if path == "/runs/batch":
        found = callers[0].post("/threads/search", json={"ids": [LOCKED]}).json()
        assert found == []


def test_what_no_handler_filters_belongs_to_who_made_it(callers: list[httpx.Client]) -> None:
    ann, ben, _ = callers
    made = ann.post("/assistants", json={"graph_id": "echo"}).json()["assistant_id"]

    assert ann.get(f"/assistants/{made}").status_code == 200
    assert ben.get(f"/assistants/{made}").status_code == 404
    assert "echo" in [each["name"] for each in ben.post("/assistants/search", json={"limit": 100}).json()]


def test_a_handler_refuses(callers: list[httpx.Client]) -> None:
    ann, ben, _ = callers
    path = f"/threads/{ann.post('/threads', json={}).json()['thread_id']}"
    schedule = {"assistant_id": "echo", "schedule": "0 0 1 1 *"}

    assert ben.delete(path).json() == {"detail": "Forbidden"}
    assert ben.post("/runs/crons", json=schedule).status_code == 403
    assert ann.post("/runs/crons", json=schedule).status_code == 200
    assert ann.delete(path).status_code == 204


def test_a_handler_refuses_to_remove_threads_with_an_assistant_too(callers: list[httpx.Client]) -> None:
    ben = callers[1]
    assistant = ben.post("/assistants", json={"graph_id": "echo"}).json()["assistant_id"]
    thread = ben.post("/threads", json={}).json()["thread_id"]
    ben.post(f"/threads/{thread}/runs/wait", json={"assistant_id": assistant, "input": say("hello")})

    refused = ben.delete(f"/assistants/{assistant}", params={"delete_threads": "true"})

    assert refused.status_code == 403
    assert ben.get(f"/threads/{thread}").status_code == 200
    assert ben.get(f"/assistants/{assistant}").status_code == 200


def test_a_handler_moves_what_is_stored_and_each_caller_has_a_store(callers: list[httpx.Client]) -> None:
    ann, ben, _ = callers
    ann.put("/store/items", json={"namespace": ["notes"], "key": "tide", "value": {"height": 13}})

    where = {"namespace": "notes", "key": "tide"}
    kept: Any = ann.get("/store/items", params=where).json()
    found: Any = ann.post("/store/items/search", json={"namespace_prefix": ["notes"]}).json()

    assert kept["namespace"] == ["sorted", "notes"]
    assert ann.request("GET", "/store/items", params=where, content=b"[]").json() == kept
    assert [each["key"] for each in found["items"]] == ["tide"]
    assert ann.post("/store/namespaces", json={}).json() == {"namespaces": [["sorted", "notes"]]}
    assert ben.get("/store/items", params=where).json() is None
    assert ben.post("/store/namespaces", json={}).json() == {"namespaces": []}


@pytest.mark.parametrize(
    ("name", "status", "detail"),
    [
        ("nobody", 401, "Who are you?"),
        ("asserts", 401, "Unauthorized"),
        ("fails", 500, "The server failed; its log says why."),
        ("nameless", 500, "The server failed; its log says why."),
        ("everybody", 500, "The server failed; its log says why."),
        ("splits", 402, "Pay first"),
    ],
)
def test_a_handler_that_fails_lets_nobody_in_and_says_nothing(
    url: str, name: str, status: int, detail: str
) -> None:
    # The way past custom authentication that LangGraph's own studio has elsewhere does not exist here.
    sent = {"authorization": f"Bearer {name}", "x-auth-scheme": "langsmith", "x-api-key": "da-1-2"}
    refused = httpx.post(f"{url}/threads/search", json={}, headers=sent)

    assert refused.status_code == status
    assert refused.json() == {"detail": detail}
    assert "x-more" not in refused.headers


def test_a_handler_says_on_the_first_page_why_it_is_closed(url: str) -> None:
    refused = httpx.get(f"{url}/", headers={"authorization": "Bearer nobody"})

    assert refused.status_code == 401
    assert "<p>Who are you?</p>" in refused.text
    assert "echo" not in refused.text
    assert httpx.get(f"{url}/docs").status_code == 200
    assert "<code>echo</code>" in httpx.get(f"{url}/", headers={"authorization": "Bearer ann"}).text


def test_a_handler_that_fails_on_the_way_says_nothing(callers: list[httpx.Client]) -> None:
    failed = callers[0].get("/store/items", params={"namespace": "notes", "key": "fails"})

    assert (failed.status_code, failed.json()) == (500, {"detail": "The server failed; its log says why."})


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose handlers refuse all that they are asked, and say what that was."""
    place = tmp_path_factory.mktemp("closed")
    (place / "refusing.py").write_text(REFUSING)
    with serving(place, slots=0, auth={"path": "./refusing.py:auth"}) as url:
        yield url


@pytest.mark.parametrize(("endpoint", "resource", "action"), ENDPOINTS)
@pytest.mark.parametrize("body", [b"", b"{}", b"[]"])
def test_no_body_keeps_handlers_from_being_asked(
    closed: str, endpoint: Endpoint, resource: str, action: str, body: bytes
) -> None:
    refused = httpx.request(endpoint.method, closed + endpoint.path, content=body)

    if endpoint.several and body == b"[]":
        assert refused.json() == [], "nothing is asked for"
    else:
        assert refused.status_code == 403
        assert f'"{resource}.{action}"' in refused.text


def test_a_look_at_the_head_is_asked_about_as_the_whole(closed: str) -> None:
    read = closed + "/threads/10c4ed00-0000-4000-8000-000000000000"

    assert httpx.head(read).headers["content-length"] == httpx.get(read).headers["content-length"]


def test_who_reads_and_who_removes_is_asked_for_that() -> None:
    for endpoint, _, action in ENDPOINTS:
        if endpoint.method in ("GET", "DELETE"):
            assert action in (("read", "get") if endpoint.method == "GET" else ("delete",)), endpoint.name


def test_a_body_does_not_pass_one_thread_off_as_another(callers: list[httpx.Client]) -> None:
    ben = callers[1]
    path = f"/threads/{ben.post('/threads', json={}).json()['thread_id']}"

    for body in ([], [{}], [{"thread_id": LOCKED}], {"thread_id": LOCKED}):
        assert ben.request("DELETE", path, json=body).status_code == 403
    assert ben.get(path).status_code == 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("auth = 1", "not a langgraph_sdk.Auth"),
        ("from langgraph_sdk import Auth\nauth = Auth()\n@auth.authenticate\ndef who(moon): ...", "moon"),
    ],
)
def test_wrong_handlers_are_named_at_the_start(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "wrong.py").write_text(text)
    config = ServerConfig(tmp_path, {}, auth={"path": "./wrong.py:auth"})

    with pytest.raises(ServeError, match=message):
        Handlers.of(config)

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import openai
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import NotFoundError

from deepagents_cli.__main__ import main
from tests.server.serving import GRAPHS, Process, make_key
from tests.server.test_runs import say

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def url(place: Path) -> Iterator[str]:
    make_key(place, "first")
    process = Process(place, "--operator", "olga")
    yield process.start()
    process.close()


def _keys(place: Path, *arguments: str) -> int:
    return main(["keys", *arguments, "--database", str(place / ".deepagents" / "server.db")])


def test_a_request_without_a_key_is_told_how_to_send_one(url: str) -> None:
    refused = httpx.post(f"{url}/threads", json={})

    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "x-api-key" in refused.json()["detail"]
    assert httpx.get(f"{url}/ok").json() == {"ok": True}


def test_a_browser_sends_no_key_and_is_shown_how_to_ask_but_not_what_is_served(url: str) -> None:
    refused, docs = httpx.get(f"{url}/"), httpx.get(f"{url}/docs")

    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert refused.headers["content-type"].startswith("text/html")
    assert "x-api-key" in refused.text
    assert 'href="/docs"' in refused.text
    assert "<b>POST</b>/runs/wait" in docs.text
    described = httpx.get(f"{url}/openapi.json")
    assert described.json()["paths"]
    assert not {name for name in GRAPHS for each in (refused, docs, described) if f">{name}<" in each.text}
    assert httpx.get(f"{url}/docs/").status_code == 401


def test_a_client_of_openai_is_told_too(url: str) -> None:
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0) as models,
        pytest.raises(openai.AuthenticationError, match="does not work here") as refused,
    ):
        models.models.list()

    assert refused.value.type == "authentication_error"


def test_a_page_from_elsewhere_uses_no_tools_though_it_has_a_key(url: str, place: Path) -> None:
    sent = {"x-api-key": make_key(place, "alice"), "origin": "https://evil.example"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    assert httpx.post(f"{url}/mcp", json=message, headers=sent).status_code == 403


@pytest.mark.parametrize("header", ["x-api-key", "authorization"])
def test_a_key_goes_into_either_header(url: str, place: Path, header: str) -> None:
    key = make_key(place, "alice")
    sent = {header: key if header == "x-api-key" else f"Bearer {key}"}

    assert httpx.post(f"{url}/threads", json={}, headers=sent).status_code == 200


def test_each_owner_has_threads_runs_and_a_store_of_their_own(url: str, place: Path) -> None:
    keys = [make_key(place, name) for name in ("alice", "bob")]
    with get_sync_client(url=url, api_key=keys[0]) as alice, get_sync_client(url=url, api_key=keys[1]) as bob:
        thread = alice.threads.create()["thread_id"]
        alice.runs.wait(thread, "echo", input=say("hello"))
        alice.store.put_item(["notes"], "tide", {"height": 13})
        kept: Any = alice.store.get_item(["notes"], "tide")

        assert kept["namespace"] == ["notes"]
        assert thread not in [each["thread_id"] for each in bob.threads.search()]
        assert bob.store.get_item(["notes"], "tide") is None
        with pytest.raises(NotFoundError):
            bob.threads.get(thread)


def test_a_key_is_listed_without_its_secret_and_kept_nowhere(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = make_key(place, "carol")

    _keys(place, "list")
    listed = next(line for line in capsys.readouterr().out.splitlines() if "carol" in line)

    assert key.split("-")[1] in listed
    assert key not in listed
    with sqlite3.connect(place / ".deepagents" / "server.db") as database:
        assert key not in "".join(database.iterdump())
    database.close()


def test_a_key_that_was_made_elsewhere_is_taken(
    url: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def take(owner: str, text: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        code = _keys(place, "import", owner)
        written = capsys.readouterr()
        return code, written.out + written.err

    key = uuid4().hex + uuid4().hex
    first, second = take("erik", f"{key}\n"), take("erik", key)
    with get_sync_client(url=url, api_key=key) as erik:
        assert erik.threads.create()["thread_id"]

    assert first == second
    assert first[0] == 0
    assert "of another owner" in take("mallory", key)[1]
    assert "`openssl rand -hex 32` makes one" in take("erik", "hunter2")[1]
    assert _keys(place, "revoke", first[1].strip()) == 0
    assert "revoked" in take("erik", key)[1]


def test_a_revoked_key_works_no_more(url: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = make_key(place, "dora")
    assert _keys(place, "revoke", key.split("-")[1]) == 0

    assert httpx.get(f"{url}/info", headers={"x-api-key": key}).status_code == 401
    assert _keys(place, "revoke", key.split("-")[1]) == 2
    assert "keys list" in capsys.readouterr().err


@pytest.mark.parametrize("owner", ["", "*", "a\nb"])
def test_not_everything_is_a_name_of_an_owner(
    place: Path, owner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _keys(place, "create", owner) == 2
    assert "name of an owner" in capsys.readouterr().err


def test_what_a_run_asks_its_own_server_is_asked_for_its_owner(url: str, place: Path) -> None:
    keys = [make_key(place, name) for name in ("alice", "bob")]
    with get_sync_client(url=url, api_key=keys[0]) as alice, get_sync_client(url=url, api_key=keys[1]) as bob:
        thread = alice.threads.create()["thread_id"]
        seen, hidden = (
            _answer(each.runs.wait(None, "echo", input=say(f"look {thread}"))) for each in (alice, bob)
        )
        made = hidden.removeprefix("There is none; mine is ").removesuffix(".")

        assert seen == "It is idle."
        assert bob.threads.get(made)["thread_id"] == made
        with pytest.raises(NotFoundError):
            alice.threads.get(made)


def _answer(values: Any) -> str:
    return values["messages"][-1]["content"]


def test_one_owner_counts_what_belongs_to_all(url: str, place: Path) -> None:
    alice, other, olga = ({"x-api-key": make_key(place, name)} for name in ("anna", "otto", "olga"))
    httpx.post(f"{url}/threads", json={}, headers=alice)

    counted = {
        name: httpx.get(f"{url}/metrics", headers=key).text
        for name, key in (("alice", alice), ("other", other), ("olga", olga))
    }

    assert 'deepagents_threads{status="idle"} 1' in counted["alice"]
    assert "deepagents_threads{" not in counted["other"]
    assert "deepagents_threads{" in counted["olga"]
    assert [name for name, text in counted.items() if "deepagents_requests_total" in text] == ["olga"]
    assert httpx.get(f"{url}/metrics").status_code == 401
    assert httpx.post(f"{url}/threads/search", json={}, headers=olga).json() == []

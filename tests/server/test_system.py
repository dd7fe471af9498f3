from __future__ import annotations

import re

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Router

from deepagents_server.api.app import PARTS, parts_of
from deepagents_server.api.custom import make_cors
from deepagents_server.api.endpoint import Endpoint, routes_of
from deepagents_server.errors import ServeError
from deepagents_server.serve import check_host


def test_the_server_says_that_it_works_and_what_it_is(url: str) -> None:
    assert httpx.get(f"{url}/ok").json() == {"ok": True}
    assert httpx.get(f"{url}/info").json()["flags"]["assistants"] is True


PATHS = {
    "meta": "/info",
    "assistants": "/assistants/search",
    "crons": "/runs/crons/search",
    "threads": "/threads/search",
    "runs": "/runs/batch",
    "store": "/store/items/search",
    "openai": "/v1/models",
    "mcp": "/mcp",
}


def test_a_configuration_leaves_endpoints_out() -> None:
    for part in PATHS:
        left = {each.path for found in parts_of({f"disable_{part}": True}).values() for each in found}
        assert [name for name, path in PATHS.items() if path not in left] == [part]


def test_web_pages_of_others_may_ask_and_see_where_a_run_is(url: str) -> None:
    origin = {"origin": "http://localhost:3000"}
    asked = {**origin, "access-control-request-method": "POST", "access-control-request-headers": "x-api-key"}

    allowed = httpx.options(f"{url}/threads", headers=asked)
    made = httpx.post(f"{url}/threads", headers=origin, json={})

    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-headers"] == "x-api-key"
    assert "content-location" in made.headers["access-control-expose-headers"].lower()


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost.evil.example", "null"])
def test_a_page_from_elsewhere_runs_no_agents_where_no_key_is_asked_for(url: str, origin: str) -> None:
    # Such a request needs no leave of the browser: it is sent before anybody asks who may.
    sent = {"origin": origin, "content-type": "text/plain"}

    assert httpx.post(f"{url}/runs", content=b"{}", headers=sent).status_code == 403
    assert "access-control-allow-origin" not in httpx.get(f"{url}/ok", headers=sent).headers


def test_a_configuration_names_pages() -> None:
    cors = make_cors({"cors": {"allow_origins": ["https://chat.example"], "max_age": 5}})(Router())

    assert cors.is_allowed_origin("https://chat.example")
    assert not cors.is_allowed_origin("http://localhost:3000")


@pytest.mark.parametrize("name", ["disable_stores", "mount"])
def test_what_a_configuration_says_and_nobody_does_is_refused(name: str) -> None:
    with pytest.raises(ServeError, match=f"http.{name} .* disable_store,"):
        parts_of({name: True})
    assert parts_of({"disable_store": True, "disable_ui": True, "cors": {}})


@pytest.mark.parametrize("name", ["disable_store", "enable_custom_route_auth"])
def test_a_switch_is_true_or_false(name: str) -> None:
    with pytest.raises(ServeError, match=f"http.{name} must be true or false, not 'true'"):
        parts_of({name: "true"})


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "example.org"])
def test_another_address_needs_a_word(host: str) -> None:
    with pytest.raises(ServeError, match="--allow-anyone"):
        check_host(host, trusted=False)
    check_host(host, trusted=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_does_not(host: str) -> None:
    check_host(host, trusted=False)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 422, "not JSON"),
        (b"[]", 422, "the body"),
        (b'{"thread_id": "x"}', 422, "thread_id"),
        (b'{"metadata": ' + b'{"a":' * 300 + b"1" + b"}" * 301, 422, "200 levels"),
        (b'{"metadata": {"a": "\\u0000"}}', 422, "NUL"),
        (b'{"metadata": {"a": [' + b"1," * 500_000 + b"1]}}", 422, "500,000 values"),
        (b'{"metadata": {"a": [' + b'"\\\\",' * 2_000_000 + b"1]}}", 422, "500,000 values"),
    ],
)
def test_a_wrong_body_is_explained(url: str, body: bytes, status: int, said: str) -> None:
    refused = httpx.post(f"{url}/threads", content=body)

    assert refused.status_code == status
    assert said in refused.json()["detail"]


def test_a_text_may_have_as_many_commas_as_it_likes(url: str) -> None:
    text = 'a, [{"b", ' * 300_000

    assert httpx.post(f"{url}/threads", json={"metadata": {"text": text}}).status_code == 200


def test_what_has_no_form_in_a_path_is_refused(url: str) -> None:
    assert httpx.get(f"{url}/threads/no-uuid").status_code == 422
    assert httpx.get(f"{url}/nothing").json() == {"detail": "Not Found"}
    assert httpx.put(f"{url}/threads").status_code == 405


def test_work_is_counted(url: str) -> None:
    httpx.post(f"{url}/threads", json={})
    counted = httpx.get(f"{url}/metrics").text

    assert 'deepagents_threads{status="idle"}' in counted


def test_every_endpoint_is_described_with_what_it_takes(url: str) -> None:
    described = httpx.get(f"{url}/openapi.json").json()
    paths = described["paths"]

    assert {f"{method.upper()} {path}" for path, each in paths.items() for method in each} == {
        each.name for found in PARTS.values() for each in found if each.method != "WEBSOCKET"
    }
    for path, each in paths.items():
        for operation in each.values():
            assert operation["summary"]
            assert operation["responses"]
            named = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"]
            assert named == re.findall(r"{(\w+)}", path)
    start = paths["/threads/{thread_id}/runs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert start == {"$ref": "#/components/schemas/RunBody"}
    known = described["components"]["schemas"]
    assert {*re.findall(r"#/components/schemas/(\w+)", httpx.get(f"{url}/openapi.json").text)} <= known.keys()


async def show(_: Request, *, phase: str = "any") -> Response:
    """Show the moon."""
    return PlainTextResponse(phase)


async def list_phases(_: Request) -> Response:
    """List the phases of the moon."""
    return PlainTextResponse("new, full")


def test_an_endpoint_that_does_not_say_who_may_use_it_is_refused() -> None:
    with pytest.raises(ServeError, match=r"GET /moon does not say what handlers of auth are asked"):
        Endpoint("/moon", "GET", show)


async def test_a_word_is_found_before_a_name_in_whatever_order_they_stand() -> None:
    named = Endpoint("/moon/{phase}", "GET", show, "nothing")
    word = Endpoint("/moon/phases", "GET", list_phases, "nothing")
    for order in ([named, word], [word, named]):
        asks = httpx.ASGITransport(Starlette(routes=routes_of(order)))
        async with httpx.AsyncClient(transport=asks, base_url="http://moon") as client:
            assert (await client.get("/moon/phases")).text == "new, full"
            assert (await client.get("/moon/full")).text == "full"

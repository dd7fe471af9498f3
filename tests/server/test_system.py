from __future__ import annotations

import httpx
import pytest

from deepagents_server.api.app import routes_of
from deepagents_server.api.origins import Origins
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
        left = {route.path for route in routes_of({f"disable_{part}": True})}
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
    origins = Origins.of({"cors": {"allow_origins": ["https://chat.example"], "max_age": 5}})

    assert origins.allow("https://chat.example")
    assert not origins.allow("http://localhost:3000")
    with pytest.raises(ServeError, match="allow_orgins"):
        Origins.of({"cors": {"allow_orgins": ["*"]}})


@pytest.mark.parametrize("name", ["disable_stores", "mount"])
def test_what_a_configuration_says_and_nobody_does_is_refused(name: str) -> None:
    with pytest.raises(ServeError, match=f"http.{name} .* disable_store,"):
        routes_of({name: True})
    assert routes_of({"disable_store": True, "disable_ui": True, "cors": {}})


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
    ],
)
def test_a_wrong_body_is_explained(url: str, body: bytes, status: int, said: str) -> None:
    refused = httpx.post(f"{url}/threads", content=body)

    assert refused.status_code == status
    assert said in refused.json()["detail"]


def test_what_has_no_form_in_a_path_is_refused(url: str) -> None:
    assert httpx.get(f"{url}/threads/no-uuid").status_code == 422
    assert httpx.get(f"{url}/nothing").json() == {"detail": "Not Found"}
    assert httpx.put(f"{url}/threads").status_code == 405


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_asks_nobody_else_for_anything(url: str, path: str) -> None:
    shown = httpx.get(f"{url}{path}")

    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert "http://" not in shown.text
    assert "https://" not in shown.text
    assert "<script" not in shown.text


def test_endpoints_are_described_and_work_is_counted(url: str) -> None:
    described = httpx.get(f"{url}/openapi.json").json()
    httpx.post(f"{url}/threads", json={})
    counted = httpx.get(f"{url}/metrics").text

    assert described["paths"]["/threads/{thread_id}"]["get"]["summary"] == "Show a thread."
    assert 'deepagents_threads{status="idle"}' in counted

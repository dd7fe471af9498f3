"""An application of the user's own before the server, a prefix, and headers for runs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from starlette.applications import Starlette

from deepagents_server.api.custom import headers_for_runs, surround
from deepagents_server.config import ServerConfig
from deepagents_server.errors import ServeError
from tests.server.serving import GRAPHS, make_key, serving

WEB_APP = """
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

STARTED = []


@asynccontextmanager
async def lifespan(app):
    STARTED.append("yes")
    yield


async def hello(request):
    return PlainTextResponse(f"Hello, started: {STARTED}")


async def sign(request, call_next):
    answer = await call_next(request)
    answer.headers["x-signed"] = "by the user"
    return answer


app = Starlette(
    routes=[Route("/hello", hello), Route("/info", hello), Route("/docs", hello)],
    middleware=[Middleware(BaseHTTPMiddleware, dispatch=sign)],
    lifespan=lifespan,
)
"""


WEBHOOK = "https://hooks.example/done"


@contextmanager
def customized(directory: Path, **http: Any) -> Generator[str]:
    (directory / "webapp.py").write_text(WEB_APP)
    database = f"sqlite:///{directory / '.deepagents' / 'server.db'}"
    with serving(directory, database, slots=0, http={"app": "./webapp.py:app", **http}) as url:
        yield url


@pytest.mark.slow
def test_the_users_routes_come_first_and_their_middleware_sees_all(tmp_path: Path) -> None:
    key = make_key(tmp_path, "alice")
    with customized(tmp_path, mount_prefix="/agents") as url:
        below = f"{url}/agents"

        assert httpx.get(f"{below}/hello").text == "Hello, started: ['yes']"
        assert httpx.get(f"{below}/info").text.startswith("Hello")
        asked = httpx.post(f"{below}/threads/search", json={})
        assert (asked.status_code, asked.headers["x-signed"]) == (401, "by the user")
        assert httpx.get(f"{url}/hello").status_code == 404
        moved = httpx.get(f"{below}/info/", headers={"x-api-key": key})
        assert moved.headers["location"] == f"{below}/info"
        assert 'href="/agents/docs"' in httpx.get(f"{below}/", headers={"x-api-key": key}).text
        described = httpx.get(f"{below}/openapi.json", headers={"x-api-key": key}).json()
        assert described["servers"] == [{"url": "/agents"}]
        with get_sync_client(url=below, api_key=key) as client:
            assert client.threads.create()["status"] == "idle"


def test_the_users_routes_ask_who_calls_if_they_are_to(tmp_path: Path) -> None:
    key = make_key(tmp_path, "alice")
    with customized(tmp_path, enable_custom_route_auth=True, middleware_order="auth_first") as url:
        for path in ("/hello", "/docs"):
            assert httpx.get(f"{url}{path}").status_code == 401
        assert httpx.get(f"{url}/hello", headers={"x-api-key": key}).status_code == 200
        assert httpx.post(f"{url}/threads/search", json={}, headers={"x-api-key": key}).json() == []


def configured(client: SyncLangGraphClient) -> dict[str, Any]:
    given: Any = {"configurable": {"x-org": "forged", "tone": "calm"}}
    run: Any = client.runs.create(None, "echo", input={"messages": []}, config=given, webhook=WEBHOOK)
    assert "webhook" not in run["kwargs"]
    return run["kwargs"]["config"]["configurable"]


def test_a_run_finds_the_headers_that_the_file_names_and_calls_nobody_if_it_says_so(tmp_path: Path) -> None:
    chosen = {"include": ["x-*", "Accept-Language"], "exclude": ["x-internal-*"]}
    sent = {"x-org": "red", "x-internal-id": "7", "accept-language": "de"}
    with (
        customized(tmp_path, configurable_headers=chosen, disable_webhooks=True) as url,
        get_sync_client(url=url, headers=sent, api_key="secret") as client,
    ):
        found = configured(client)

    assert found == {"x-org": "red", "accept-language": "de", "tone": "calm"}


@pytest.mark.parametrize(
    ("http", "message"),
    [
        ({"app": "./webapp.py:STARTED"}, "not an application of Starlette"),
        ({"app": "./gone.py:app"}, "there is no file gone.py"),
        ({"mount_prefix": "agents/"}, "not a path such as"),
        ({"middleware_order": "auth_first"}, 'needs "enable_custom_route_auth": true'),
    ],
)
def test_what_says_nothing_is_refused(tmp_path: Path, http: dict[str, Any], message: str) -> None:
    (tmp_path / "webapp.py").write_text(WEB_APP)

    with pytest.raises(ServeError, match=message):
        surround(Starlette(), ServerConfig(tmp_path, GRAPHS, http=http), lambda app: app)


def test_headers_are_named_in_a_list() -> None:
    with pytest.raises(ServeError, match="must be a list of names, not 'x-org'"):
        headers_for_runs({"configurable_headers": {"includes": "x-org"}})

"""Servers over HTTP: both transports and eras, refusals with their number, bounds, and secrets that stay."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import httpx2
import pytest
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from deepagents.errors import ToolFailure
from deepagents.mcp import MCPServers
from tests.mcp.listening import after_greeting, huge, huge_event, listening, served, squeezed
from tests.mcp.servers import agent_that_calls, results
from tests.mcp.test_questions import THREAD, answer, asking_agent, question

MB = 2**20


class Sure(BaseModel):
    sure: bool


def make_server() -> MCPServer:
    server = MCPServer("clock")

    @server.tool()
    def time_in(city: str) -> str:
        """Say what time it is."""
        return f"Noon in {city}."

    @server.tool()
    async def ask(ctx: Context) -> str:
        """Ask."""
        found = await ctx.elicit("Sure?", Sure)
        return json.dumps({"action": found.action})

    _ = time_in, ask
    return server


@pytest.fixture(params=["http", "sse"])
def entry(request: pytest.FixtureRequest) -> Generator[dict[str, Any]]:
    """Serve the SDK's own server over one of the transports."""
    server = make_server()
    is_http = request.param == "http"
    with served(server.streamable_http_app() if is_http else server.sse_app()) as address:
        yield {"type": request.param, "url": f"{address}/{'mcp' if is_http else 'sse'}"}


def test_a_server_over_http_serves(call_mode: Any, entry: dict[str, Any]) -> None:
    with MCPServers({"clock": entry}) as servers:
        agent = agent_that_calls("mcp__clock__time_in", servers, city="Rome")
        [result] = results(call_mode.invoke(agent, {"messages": "Go."}))
        shown = servers.status()["clock"]

    assert result.content == "Noon in Rome."
    assert (shown.transport, shown.status) == (entry["type"], "ready")
    assert shown.protocol == ("2026-07-28" if entry["type"] == "http" else "2025-11-25")


def test_questions_come_over_sse_as_well(call_mode: Any) -> None:
    with (
        served(make_server().sse_app()) as address,
        MCPServers({"one": {"type": "sse", "url": f"{address}/sse"}}) as it,
    ):
        agent = asking_agent(it)
        asked = question(call_mode.invoke(agent, {"messages": "Go."}, THREAD))
        key = asked["requests"][0]["key"]

        state = answer(call_mode, agent, **{key: {"action": "accept", "content": {"sure": True}}})

    assert results(state)[0].content == '{"action": "accept"}'


@pytest.mark.parametrize("status", [401, 403, 429, 503])
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_refusal_has_its_number(status: int, transport: str) -> None:
    with listening(lambda handler, _: handler.reply(status, b"go away", "text/html")) as server:
        servers = MCPServers({"one": {"type": transport, "url": server.url}})
        servers.start()
        shown = servers.status()["one"]
        servers.close()

    assert shown.status == "failed"
    # The stand-in takes no GET, with which SSE begins.
    assert f"HTTP {405 if transport == 'sse' else status}" in (shown.error or "")


def test_an_address_where_nothing_listens_is_a_failure() -> None:
    with MCPServers({"one": {"url": "http://127.0.0.1:9/mcp"}}) as servers:
        assert servers.status()["one"].status == "failed"


def test_secrets_go_to_their_server_and_into_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cret-value")

    def refuse(handler: Any, message: Any) -> None:
        token = handler.headers["authorization"]
        error = {"code": -32000, "message": f"{token} may not call {message['method']}"}
        handler.reply(400, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())

    with listening(after_greeting(refuse)) as server:
        entry = {"url": server.url, "headers": {"Authorization": "Bearer ${TOKEN}"}}
        with MCPServers({"one": entry}) as servers, pytest.raises(ToolFailure) as raised:
            servers.tools()[0].invoke({})

    assert {headers["authorization"] for _, headers in server.seen} == {"Bearer s3cret-value"}
    assert "*** may not call tools/call" in raised.value.text


def test_no_redirect_leads_elsewhere() -> None:
    with listening(lambda handler, message: handler.greet(message)) as other:
        url = other.url

        def lead(handler: Any, _: Any) -> None:
            handler.reply(307, b"", location=url)

        with listening(lead) as server:
            entry = {"url": server.url, "headers": {"Authorization": "Bearer s3cret-value"}}
            servers = MCPServers({"one": entry})
            servers.start()
            assert "not followed" in (servers.status()["one"].error or "")
            servers.close()
        assert other.seen == []


@pytest.mark.parametrize("how", [huge, huge_event])
def test_a_message_that_is_too_large_is_an_error_and_the_server_goes_on(call_mode: Any, how: Any) -> None:
    with listening(after_greeting(how)) as server, MCPServers({"one": {"url": server.url}}) as servers:
        [get] = call_mode.call(servers, "tools")
        assert servers.status()["one"].skipped == ("bad",)
        with pytest.raises(ToolFailure) as raised:
            call_mode.invoke(get, {"size": 17 * MB})

        assert raised.value.code == "too_large"
        assert call_mode.invoke(get, {"size": 10}) == "x" * 10


def test_a_kind_that_only_begins_like_json_is_bounded_too(call_mode: Any) -> None:
    def odd(handler: Any, message: Any) -> None:
        size = int(message["params"]["arguments"]["size"])
        result = {"content": [{"type": "text", "text": "x" * size}]}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        handler.reply(200, body, "application/jsonish")

    with listening(after_greeting(odd)) as server, MCPServers({"one": {"url": server.url}}) as servers:
        [get] = call_mode.call(servers, "tools")
        with pytest.raises(ToolFailure) as raised:
            call_mode.invoke(get, {"size": 17 * MB})

    assert raised.value.code == "too_large"


def test_what_is_read_to_sign_in_and_redirects_are_bounded(call_mode: Any) -> None:
    def lead(handler: Any, message: Any) -> None:
        handler.reply(307, b"x" * 3 * MB, "text/plain", location="/mcp")

    with listening(lead) as server:
        servers = MCPServers({"one": {"url": server.url}})
        call_mode.call(servers, "start")
        assert "more than 1048576 bytes" in (servers.status()["one"].error or "")
        call_mode.call(servers, "close")


def test_a_compressed_answer_is_not_opened() -> None:
    with listening(after_greeting(squeezed)) as server:
        [get] = MCPServers({"one": {"url": server.url}}).tools()
        with pytest.raises(ToolFailure) as raised:
            get.invoke({})

    assert raised.value.code == "remote_failed"


def test_a_session_that_the_server_forgot_is_opened_anew(call_mode: Any) -> None:
    def forget(handler: Any, message: Any) -> None:
        if handler.headers["mcp-session-id"] == "session-1":
            handler.reply(404, b"")
        else:
            huge(handler, message)

    with listening(after_greeting(forget)) as server, MCPServers({"one": {"url": server.url}}) as servers:
        [get] = call_mode.call(servers, "tools")
        with pytest.raises(ToolFailure, match="HTTP 404"):
            call_mode.invoke(get, {})

        assert call_mode.invoke(get, {"size": 3}) == "xxx"


class Badge(httpx2.Auth):
    """Signs in by a second request."""

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        response = yield request
        if response.status_code == 401:
            request.headers["authorization"] = "badge"
            yield request


def test_a_program_may_sign_in_by_its_own_means() -> None:
    def guard(handler: Any, message: Any) -> None:
        if handler.headers["authorization"] != "badge":
            handler.reply(401, b"")
        elif not handler.greet(message):
            huge(handler, message)

    with listening(guard) as server:
        [get] = MCPServers({"one": {"url": server.url}}, auth={"one": Badge()}).tools()
        assert get.invoke({"size": 2}) == "xx"

"""Show pages to a person with a browser: what is served, and how to ask. They load nothing."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.metadata import version
from itertools import groupby
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from deepagents_server.api.common import ASKING, serving
from deepagents_server.api.endpoint import PAGE, Endpoint
from deepagents_server.api.openapi import describe_once
from deepagents_server.errors import ApiError
from deepagents_server.server import Server

_ALONE: Final = {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
}
_STYLE: Final = """
:root { color-scheme: light dark; --soft: #8884; --mark: #0a7d5a }
@media (prefers-color-scheme: dark) { :root { --mark: #4cc79b } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 0 auto; padding: 2rem 1.25rem }
h1 { font-size: 1.6rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
a { color: inherit; text-decoration-color: var(--mark) } p { margin: .25rem 0 }
code, pre, .name { font: .9rem/1.5 ui-monospace, monospace }
pre { background: var(--soft); padding: .75rem 1rem; border-radius: .5rem; overflow-x: auto }
table { border-collapse: collapse; width: 100% }
td, summary { padding: .35rem 1rem .35rem 0; vertical-align: top; border-top: 1px solid var(--soft) }
td:first-child { width: 17rem } td { overflow-wrap: anywhere }
summary { cursor: pointer }
details table { margin: 0 0 1rem 1.5rem; width: auto; font-size: .9rem }
.name b { display: inline-block; min-width: 4rem; color: var(--mark) } .works { color: var(--mark) }
"""
_CLIENTS: Final = {
    "/threads": ("", "LangGraph's clients and pages: <code>langgraph_sdk</code>, <code>useStream</code>"),
    "/v1/chat/completions": ("/v1", "clients of OpenAI: each agent is a model"),
    "/mcp": ("/mcp", "clients of the Model Context Protocol: each agent is a tool"),
}
"""Who takes which address; they are shown if the server has the endpoint."""
_LINKS: Final = {
    "/docs": "the endpoints, and what each takes",
    "/openapi.json": "the same for programs",
    "/metrics": "runs and threads, for Prometheus",
    "/info": "what clients ask first",
}
_TITLES: Final = {"meta": "Server", "crons": "Schedules", "openai": "OpenAI", "mcp": "MCP"}
_TRY: Final = """curl -s {address}/runs/wait -H 'content-type: application/json' \\
  -d '{{"assistant_id": "{agent}", "input": {{"messages": [{{"role": "user", "content": "Hello"}}]}}}}'"""


async def page(request: Request) -> Response:
    """Show what is served, to a person with a browser."""
    server = serving(request)
    ready = await server.readiness.ask()
    state = '<span class="works">works</span>' if ready else "<b>does not reach its database</b>"
    base = escape(_base(server))
    described = server.config.descriptions
    agents = {f"<code>{escape(name)}</code>": escape(described.get(name, "")) for name in server.graphs}
    links = {f'<a href="{base}{path}"><code>{path}</code></a>': why for path, why in _LINKS.items()}
    address = f"{request.url.scheme}://{request.url.netloc}{_base(server)}"
    asked = _TRY.format(address=address, agent=next(iter(server.graphs), "NAME"))
    served = {route.path for route in request.app.routes}
    clients = {
        f"<code>{escape(address + path)}</code>": who
        for endpoint, (path, who) in _CLIENTS.items()
        if endpoint in served
    }
    body = (
        f"<p>Version {escape(version('deepagents'))}. The server {state}.</p>"
        f"<h2>Agents</h2>{_table(agents)}<h2>Ask one</h2><pre>{escape(asked)}</pre>"
        f"<h2>Clients</h2>{_table(clients)}<h2>More</h2>{_table(links)}"
    )
    return _show("deepagents", body)


def show_refusal(server: Server, error: ApiError) -> Response:
    """Refuse a person with a browser, and show nothing of what is served."""
    docs = f'<a href="{escape(_base(server))}/docs">The endpoints</a>'
    body = f"<p>{escape(error.detail)}</p><p>This page is for whom the server knows. {docs} are for all.</p>"
    return _show("deepagents", body, error.status, {**ASKING, **error.headers})


async def docs(request: Request) -> Response:
    """List the endpoints, to a person with a browser."""
    described = describe_once(request.app)
    schemas = described["components"]["schemas"]
    operations = [
        (operation["tags"][0], _endpoint(f"<b>{method.upper()}</b>{escape(path)}", operation, schemas))
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    parts = (
        f"<h2>{_TITLES.get(part, part.capitalize())}</h2>{''.join(shown for _, shown in found)}"
        for part, found in groupby(operations, lambda each: each[0])
    )
    base = escape(_base(serving(request)))
    also = f'<p><a href="{base}/openapi.json">openapi.json</a> has the same for programs.</p>'
    return _show("Endpoints", also + "".join(parts))


def _base(server: Server) -> str:
    return server.config.http.get("mount_prefix") or ""


def _endpoint(name: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Show an endpoint; what it takes is seen when it is opened."""
    taken = {
        f"<code>{escape(each['name'])}</code>": f"{_kind(each['schema'])}, {each['in']}"
        for each in operation.get("parameters", ())
    }
    content = operation.get("requestBody", {}).get("content", {})
    for body in (each["schema"] for each in content.values()):
        schema = schemas[body["$ref"].rsplit("/", 1)[-1]] if "$ref" in body else body
        required = schema.get("required", ())
        for field, kind in schema.get("properties", {"": schema}).items():
            must = ", required" if field in required else ""
            taken[f"<code>{escape(field) or 'body'}</code>"] = f"{_kind(kind)}{must}"
    line = f'<span class="name">{name}</span><br>{escape(operation["summary"])}'
    if not taken:
        return f"<details><summary>{line}</summary><p>It takes nothing.</p></details>"
    return f"<details><summary>{line}</summary>{_table(taken)}</details>"


def _kind(schema: Mapping[str, Any]) -> str:
    """Say in words what a value is."""
    match schema:
        case {"enum": [*values]}:
            return ", ".join(f"<code>{escape(str(value))}</code>" for value in values)
        case {"const": value}:
            return f"<code>{escape(str(value))}</code>"
        case {"anyOf": [*kinds]}:
            return " or ".join(_kind(each) for each in kinds if each != {"type": "null"})
        case {"items": items}:
            return f"list of {_kind(items)}"
        case {"type": [*types]}:
            return " or ".join(types)
        case _:
            return schema.get("type", "object" if "$ref" in schema else "any value")


def _table(rows: Mapping[str, str]) -> str:
    cells = "".join(f"<tr><td>{first}<td>{second}" for first, second in rows.items())
    return f"<table>{cells}</table>"


def _show(title: str, body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    head = (
        f'<meta charset=utf-8><meta name=viewport content="width=device-width">'
        f'<title>{title}</title><link rel=icon href="data:,"><style>{_STYLE}</style>'
    )
    return HTMLResponse(
        f"<!doctype html><html lang=en>{head}<h1>{title}</h1>{body}", status, {**(headers or {}), **_ALONE}
    )


ENDPOINTS: Final = [
    Endpoint("/", "GET", page, "nothing", answer=PAGE),
    Endpoint("/docs", "GET", docs, "nothing", answer=PAGE),
]

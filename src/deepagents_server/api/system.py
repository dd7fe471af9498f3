"""The server itself: is it there, what is it, how busy is it, and what it can be asked."""

from __future__ import annotations

from html import escape
from importlib.metadata import version
from typing import Any, Final

import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from deepagents_server.api.common import answer, serving
from deepagents_server.api.openapi import describe, operations, summary
from deepagents_server.database.tables import runs, threads
from deepagents_server.server import is_ready

_ALONE: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; color: #222 }
code, td:first-child { font-family: ui-monospace, monospace } table { border-collapse: collapse }
td { padding: .2rem 1rem .2rem 0; vertical-align: top } h1 { font-size: 1.4rem }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd } a { color: #8bf } }
"""


async def ok(request: Request) -> Response:
    """Tell whether the server and its database work."""
    ready = await is_ready(serving(request))
    return answer({"ok": ready}, 200 if ready else 503)


async def info(request: Request) -> Response:
    """Describe the server to clients."""
    return answer(
        {
            "version": version("deepagents"),
            "langgraph_py_version": version("langgraph"),
            "flags": {
                "assistants": True,
                "crons": True,
                "langsmith": False,
                "langsmith_tracing_replicas": False,
            },
            "host": {"kind": "self-hosted", "project_id": None, "revision_id": None, "tenant_id": None},
        }
    )


async def page(request: Request) -> Response:
    """Show what is served, to a person with a browser."""
    server = serving(request)
    described = server.config.descriptions
    rows = ((name, escape(described.get(name, ""))) for name in server.graphs)
    state = "works" if await is_ready(server) else "does not reach its database"
    base = escape(server.config.http.get("mount_prefix") or "")
    paths = ("/docs", "/openapi.json", "/metrics", "/info")
    links = ((f'<a href="{base}{path}">{path}</a>', "") for path in paths)
    body = (
        f"<p>Version {escape(version('deepagents'))}; the server {state}.</p>"
        f"<h2>Agents</h2>{_table(rows)}<h2>More</h2>{_table(links)}"
    )
    return _show("deepagents", body)


async def docs(request: Request) -> Response:
    """List the endpoints, to a person with a browser."""
    found = [
        (f"{method} {escape(route.path)}", escape(summary(route)))
        for method, route in operations(request.app.routes)
    ]
    return _show("Endpoints", _table(found))


async def openapi(request: Request) -> Response:
    """Describe the endpoints to programs."""
    base = serving(request).config.http.get("mount_prefix") or "/"
    return answer({**describe(request.app.routes), "servers": [{"url": base}]})


async def metrics(request: Request) -> Response:
    """Count runs and threads, for Prometheus."""
    server = serving(request)
    # What is no caller's own is seen by the operator alone.
    sees_all = server.operator is not None and server.scope.owner == server.operator
    database = server.engine.database if sees_all else server.database
    by_status = [
        ("deepagents_runs", "Runs by status.", runs.c.status),
        ("deepagents_threads", "Threads by status.", threads.c.status),
    ]
    lines: list[str] = []
    for name, purpose, column in by_status:
        counted: Any = sa.select(column.label("status"), sa.func.count().label("n")).group_by(column)
        rows = await database.rows(counted)
        lines += [f"# HELP {name} {purpose}", f"# TYPE {name} gauge"]
        lines += [f'{name}{{status="{row["status"]}"}} {row["n"]}' for row in rows]
    lines += ["# HELP deepagents_room Runs that could begin here now.", "# TYPE deepagents_room gauge"]
    lines.append(f"deepagents_room {server.engine.room}")
    return PlainTextResponse("\n".join([*lines, ""]), media_type="text/plain; version=0.0.4")


def _table(rows: Any) -> str:
    cells = "".join(f"<tr><td>{first}</td><td>{second}</td></tr>" for first, second in rows)
    return f"<table>{cells}</table>"


def _show(title: str, body: str) -> Response:
    head = f"<meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
    return HTMLResponse(f"<!doctype html>{head}<h1>{title}</h1>{body}", headers=_ALONE)


ROUTES: Final = [
    Route("/", page),
    Route("/ok", ok),
    Route("/info", info),
    Route("/docs", docs),
    Route("/openapi.json", openapi),
    Route("/metrics", metrics),
]

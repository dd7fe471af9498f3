"""Tell about the server itself: is it there, what is it, how busy is it, and what it can be asked."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from deepagents_server.api.common import SECURE, answer, serving
from deepagents_server.api.endpoint import Answer, Endpoint
from deepagents_server.api.openapi import describe_once
from deepagents_server.api.parameters import FLAG
from deepagents_server.database.run_control import queue_age
from deepagents_server.database.tables import runs, threads


async def ok(request: Request, *, check_db: bool = False) -> Response:
    """Tell that the server is there; with `check_db`, whether it is ready too."""
    return await ready(request) if check_db else answer({"ok": True})


async def ready(request: Request) -> Response:
    """Tell whether the server can work: its database can be read and written."""
    is_ready = await serving(request).readiness.ask()
    return answer({"ok": is_ready}, 200 if is_ready else 503)


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


async def openapi(request: Request) -> Response:
    """Describe the endpoints to programs."""
    base = serving(request).config.http.get("mount_prefix") or "/"
    return answer({**describe_once(request.app), "servers": [{"url": base}]})


async def metrics(request: Request) -> Response:
    """Count runs, threads and what this process does, for Prometheus."""
    server = serving(request)
    # What is not a caller's own is seen by the operator alone.
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
    # Without keys, nobody is somebody else.
    if sees_all or not server.scope.owner:
        server.metrics.queue_age.set(await queue_age(server.engine.database))
        lines.append(server.metrics.show())
    return PlainTextResponse("\n".join([*lines, ""]), 200, SECURE, "text/plain; version=0.0.4")


ENDPOINTS: Final = [
    Endpoint("/ok", "GET", ok, "nothing", query={"check_db": FLAG}),
    Endpoint("/ready", "GET", ready, "nothing"),
    Endpoint("/info", "GET", info, "nothing"),
    Endpoint("/openapi.json", "GET", openapi, "nothing"),
    Endpoint("/metrics", "GET", metrics, "nothing", answer=Answer(("text/plain",))),
]

"""The server itself: is it there, what is it, how busy is it."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deepagents_server.api.common import answer, serving
from deepagents_server.server import is_ready


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


ROUTES: Final = [Route("/ok", ok), Route("/info", info)]

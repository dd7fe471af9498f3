"""Describe the endpoints to programs, as OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from deepagents_server.api import bodies, crons, openai, runs, store, thread_streams
from deepagents_server.api.access import MCP

BODIES: Final[Mapping[str, type[BaseModel]]] = MappingProxyType(
    {
        "POST /assistants": bodies.AssistantBody,
        "POST /assistants/search": bodies.AssistantSearchBody,
        "POST /assistants/count": bodies.AssistantSearchBody,
        "PATCH /assistants/{assistant_id}": bodies.AssistantChangeBody,
        "POST /assistants/{assistant_id}/versions": bodies.SearchBody,
        "POST /assistants/{assistant_id}/latest": bodies.VersionBody,
        "POST /runs/crons": crons.CronBody,
        "POST /threads/{thread_id}/runs/crons": crons.CronBody,
        "POST /runs/crons/search": crons.CronSearchBody,
        "POST /runs/crons/count": crons.CronSearchBody,
        "PATCH /runs/crons/{cron_id}": crons.CronChangeBody,
        "POST /threads": bodies.ThreadBody,
        "POST /threads/search": bodies.ThreadSearchBody,
        "POST /threads/count": bodies.ThreadSearchBody,
        "POST /threads/prune": bodies.PruneBody,
        "PATCH /threads/{thread_id}": bodies.MetadataBody,
        "POST /threads/{thread_id}/state": bodies.StateBody,
        "POST /threads/{thread_id}/state/checkpoint": bodies.CheckpointBody,
        "POST /threads/{thread_id}/history": bodies.HistoryBody,
        "POST /threads/{thread_id}/stream/events": thread_streams.EventsBody,
        "POST /threads/{thread_id}/runs": bodies.RunBody,
        "POST /threads/{thread_id}/runs/stream": bodies.RunBody,
        "POST /threads/{thread_id}/runs/wait": bodies.RunBody,
        "POST /runs": bodies.RunBody,
        "POST /runs/stream": bodies.RunBody,
        "POST /runs/wait": bodies.RunBody,
        "POST /runs/batch": runs.BatchBody,
        "POST /runs/cancel": bodies.CancelManyBody,
        "PUT /store/items": store.PutBody,
        "DELETE /store/items": store.KeyBody,
        "POST /store/items/search": store.ItemSearchBody,
        "POST /store/namespaces": store.NamespaceBody,
        "POST /v1/chat/completions": openai.CompletionBody,
    }
)
"""What each endpoint reads as its body."""
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer", "minimum": 0}
_YES: Final = {"type": "boolean"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
QUERIES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "GET /ok": {"check_db": _YES},
        "GET /threads/{thread_id}": {"include": {"enum": ["ttl"]}},
        "GET /threads/{thread_id}/state": {"subgraphs": _YES, "select": _TEXTS},
        "GET /threads/{thread_id}/state/{checkpoint_id}": {"subgraphs": _YES, "select": _TEXTS},
        "GET /threads/{thread_id}/history": {"limit": _NUMBER, "before": _TEXT},
        "GET /threads/{thread_id}/stream": {"stream_mode": _TEXTS},
        "GET /threads/{thread_id}/runs": {
            "limit": _NUMBER,
            "offset": _NUMBER,
            "status": _TEXT,
            "select": _TEXTS,
        },
        "DELETE /assistants/{assistant_id}": {"delete_threads": _YES},
        "GET /threads/{thread_id}/runs/{run_id}/join": {"cancel_on_disconnect": _YES},
        "GET /threads/{thread_id}/runs/{run_id}/stream": {
            "stream_mode": _TEXTS,
            "cancel_on_disconnect": _YES,
        },
        "POST /threads/{thread_id}/runs/{run_id}/cancel": {
            "wait": _YES,
            "action": {"enum": ["interrupt", "rollback"]},
        },
        "POST /runs/cancel": {"action": {"enum": ["interrupt", "rollback"]}},
        "GET /assistants/{assistant_id}/graph": {"xray": {"type": ["boolean", "integer"]}},
        "GET /assistants/{assistant_id}/subgraphs": {"recurse": _YES},
        "GET /assistants/{assistant_id}/subgraphs/{namespace}": {"recurse": _YES},
        "GET /store/items": {"namespace": _TEXT, "key": _TEXT, "refresh_ttl": _YES},
    }
)
"""What each endpoint reads from its query."""
_HEADERS: Final = {
    "PATCH /threads/{thread_id}": "prefer",
    "GET /threads/{thread_id}/stream": "last-event-id",
    "GET /threads/{thread_id}/runs/{run_id}/stream": "last-event-id",
    f"POST {openai.COMPLETIONS}": openai.THREAD_HEADER,
}
_COMMAND: Final = {
    "type": "object",
    "properties": {
        "id": _NUMBER,
        "method": {"enum": [*thread_streams.METHODS]},
        "params": {"type": "object"},
    },
    "required": ["id", "method"],
}
_MESSAGE: Final = {"type": "object", "description": "A message of JSON-RPC, as the protocol has it."}
_OTHER_BODIES: Final = {f"POST {thread_streams.COMMANDS}": _COMMAND, f"POST {MCP}": _MESSAGE}
_STREAM: Final = "text/event-stream"
_OTHER_TYPES: Final = {
    "/": ("text/html",),
    "/docs": ("text/html",),
    "/metrics": ("text/plain",),
    MCP: ("application/json", _STREAM),
    openai.COMPLETIONS: ("application/json", _STREAM),
    thread_streams.EVENTS: (_STREAM,),
}
_PARTS: Final = ("assistants", "threads", "store", "mcp")
"""Parts whose paths begin with their name."""
_WITHOUT_BODY: Final = ("DELETE", "PUT")
_REFUSED: Final = {
    "description": "Refused; `detail` says why.",
    "content": {"application/json": {"schema": {"type": "object", "properties": {"detail": _TEXT}}}},
}


def describe_once(app: Starlette) -> dict[str, Any]:
    """Describe the endpoints of an application; it takes a while, and everybody may ask."""
    if not hasattr(app.state, "described"):
        app.state.described = describe(app.routes)
    return app.state.described


def describe(routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """Describe endpoints: what they take and answer."""
    _, defined = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(BODIES.values())],
        ref_template="#/components/schemas/{model}",
    )
    paths: dict[str, dict[str, Any]] = {}
    for method, route in _operations(routes):
        paths.setdefault(route.path, {})[method.lower()] = _operation(method, route)
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "x-api-key"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "deepagents", "version": version("deepagents")},
        "paths": paths,
        "components": {"schemas": defined["$defs"], "securitySchemes": schemes},
        # A key is asked for where there are any.
        "security": [{}, {"key": []}],
    }


def _operations(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, Route]]:
    for route in routes:
        if isinstance(route, Route):
            yield from ((method, route) for method in sorted((route.methods or set()) - {"HEAD"}))


def part_of(path: str) -> str:
    """Return the part of the server that an endpoint belongs to, as `http` of langgraph.json names it."""
    words = path.split("/")[1:]
    if inner := {"crons", "runs"}.intersection(words):
        return min(inner)
    return {"v1": "openai"}.get(words[0], words[0] if words[0] in _PARTS else "meta")


def _operation(method: str, route: Route) -> dict[str, Any]:
    name = f"{method} {route.path}"
    places = {
        "path": dict.fromkeys(route.param_convertors, _TEXT),
        "query": QUERIES.get(name, {}),
        "header": {_HEADERS[name]: _TEXT} if name in _HEADERS else {},
    }
    parameters = [
        {"name": each, "in": place, "required": place == "path", "schema": schema}
        for place, given in places.items()
        for each, schema in given.items()
    ]
    summary = (route.endpoint.__doc__ or "").strip().split("\n")[0]
    described: dict[str, Any] = {
        "summary": summary,
        "tags": [part_of(route.path)],
        "responses": _responses(method, route.path),
    }
    if parameters:
        described["parameters"] = parameters
    body = BODIES.get(name)
    schema = {"$ref": f"#/components/schemas/{body.__name__}"} if body else _OTHER_BODIES.get(name)
    if schema:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _responses(method: str, path: str) -> dict[str, Any]:
    if method in _WITHOUT_BODY:
        return {"204": {"description": "Done."}, "4XX": _REFUSED}
    types = _OTHER_TYPES.get(path, (_STREAM if path.endswith("/stream") else "application/json",))
    anything: dict[str, Any] = {}
    done = {"description": "Done.", "content": dict.fromkeys(types, anything)}
    status = "2XX" if path.endswith("/cancel") else "200"
    return {status: done, "4XX": _REFUSED}

"""Describe the endpoints to programs, as OpenAPI."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from pydantic.json_schema import models_json_schema
from starlette.applications import Starlette

from deepagents_server.api.endpoint import Answer, Endpoint

_TEXT: Final = {"type": "string"}
_REFUSED: Final = {
    "description": "Refused; `detail` says why.",
    "content": {"application/json": {"schema": {"type": "object", "properties": {"detail": _TEXT}}}},
}


Parts = Mapping[str, Sequence[Endpoint]]
"""Endpoints by the part of the server that they belong to, as `http` of langgraph.json names it."""


def describe_once(app: Starlette) -> dict[str, Any]:
    """Describe the endpoints of an application; it takes a while, and everybody may ask."""
    if not hasattr(app.state, "described"):
        app.state.described = describe(app.state.parts)
    return app.state.described


def describe(parts: Parts) -> dict[str, Any]:
    """Describe endpoints: what they take and answer."""
    operations = [
        (part, each) for part, found in parts.items() for each in found if each.method != "WEBSOCKET"
    ]
    models = [each.body for _, each in operations if isinstance(each.body, type)]
    _, defined = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)],
        ref_template="#/components/schemas/{model}",
    )
    paths: dict[str, dict[str, Any]] = {}
    for part, endpoint in operations:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _describe(part, endpoint)
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "x-api-key"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "deepagents", "version": version("deepagents")},
        "paths": paths,
        "components": {"schemas": defined["$defs"], "securitySchemes": schemes},
        # A key is asked for where there are any.
        "security": [{}, {"key": []}],
    }


def _describe(part: str, endpoint: Endpoint) -> dict[str, Any]:
    places = {
        "path": dict.fromkeys(re.findall(r"{(\w+)}", endpoint.path), _TEXT),
        "query": {name: each.schema for name, each in endpoint.query.items()},
        "header": {endpoint.header: _TEXT} if endpoint.header else {},
    }
    parameters = [
        {"name": each, "in": place, "required": place == "path", "schema": schema}
        for place, given in places.items()
        for each, schema in given.items()
    ]
    described: dict[str, Any] = {
        "summary": (endpoint.handler.__doc__ or "").strip().split("\n")[0],
        "tags": [part],
        "responses": {endpoint.answer.status: _show(endpoint.answer), "4XX": _REFUSED},
    }
    if parameters:
        described["parameters"] = parameters
    if body := endpoint.body:
        schema = {"$ref": f"#/components/schemas/{body.__name__}"} if isinstance(body, type) else body
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _show(answer: Answer) -> dict[str, Any]:
    anything: dict[str, Any] = {}
    content = {"content": dict.fromkeys(answer.types, anything)} if answer.types else {}
    return {"description": "Done.", **content}

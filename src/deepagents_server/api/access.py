"""Ask the handlers of `auth` what a caller may do, before each endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast
from urllib.parse import urlencode
from uuid import UUID

from starlette.requests import Request

from deepagents_server.api.common import SERVER, serving
from deepagents_server.auth import Handlers, User
from deepagents_server.errors import ApiError
from deepagents_server.serialize import dump, load
from deepagents_server.server import Server

Asks = tuple[
    Literal["assistants", "crons", "store", "threads"],
    Literal["create", "create_run", "delete", "get", "list_namespaces", "put", "read", "search", "update"],
]
"""A resource and an action, as handlers know them."""
_OF_RUN: Final = ("assistant_id", "metadata", "multitask_strategy", "if_not_exists", "after_seconds")
_NAMESPACE: Final = {"search": "namespace_prefix", "list_namespaces": "prefix"}


async def permit(
    request: Request, body: Any, asks: Asks, also_asks: Asks | None, *, several: bool
) -> tuple[Request, Any]:
    """Ask the handlers; return request and body as they leave them, with the rows that they leave.

    With `several`, the body is a list, and they are asked about each part of it.

    Raises:
        ApiError: if they refuse it.
    """
    server, (resource, action) = serving(request), asks
    # Elsewhere a list means nothing: an empty one must not leave handlers unasked.
    is_list = several and isinstance(body, list)
    changed: list[Any] = []
    wanted: dict[str, Any] | None = None
    query: bytes = request.scope["query_string"]
    parts: list[Any] = cast(list[Any], body) if is_list else [body]
    for each in parts:
        given = cast(dict[str, Any], each) if isinstance(each, dict) else {}
        # A body names threads in a batch only; elsewhere, a handler would believe what is never read.
        thread_id = given.get("thread_id") if is_list else None
        value = _value(request.path_params, request.query_params, resource, action, given, thread_id)
        granted = await _allow(server, resource, action, value)
        if also_asks:
            await _allow(server, *also_asks, {"metadata": {}})
        wanted = wanted if granted is None else {**(wanted or {}), **granted}
        kept = _body(given, value, resource, action)
        changed.append(kept if each is None or isinstance(each, dict) else each)
        if action == "get":
            query = _query(request, kept)
    narrowed = server.of(server.scope.narrow(resource, wanted))
    scope: dict[str, Any] = {**request.scope, SERVER: narrowed, "query_string": query}
    sent = changed if is_list else changed[0]
    # What handlers put in is to be JSON too.
    return Request(scope), None if body is None and not sent else load(dump(sent))


async def ask_handlers(
    server: Server, resource: str, action: str, given: Mapping[str, Any], **path: str
) -> tuple[Server, dict[str, Any]]:
    """Ask the handlers for what a request does that its path does not say.

    Returns the server as far as they let it be seen, and what is given as they leave it.

    Raises:
        ApiError: if they refuse it.
    """
    if not decides(server):
        return server, dict(given)
    value = _value(path, {}, resource, action, given, given.get("thread_id"))
    wanted = await _allow(server, resource, action, value)
    return server.of(server.scope.narrow(resource, wanted)), _body(given, value, resource, action)


def decides(server: Server) -> bool:
    """Tell whether handlers say what callers may do."""
    return server.handlers is not None and server.handlers.decides


async def _allow(
    server: Server, resource: str, action: str, value: dict[str, Any]
) -> Mapping[str, Any] | None:
    user = cast(User | None, server.scope.user) or User({"identity": ""})
    return await cast(Handlers, server.handlers).allow(user, resource, action, value)


def _value(
    path: Mapping[str, str],
    query: Mapping[str, str],
    resource: str,
    action: str,
    given: Mapping[str, Any],
    thread_id: Any,
) -> dict[str, Any]:
    """Show a request as handlers know it; the path names the thread, if `thread_id` does not."""
    named = {} if thread_id is None else {"thread_id": str(thread_id)}
    ids = {name: _id(text) for name, text in {**path, **named}.items()}
    if resource == "store":
        return _store_value(query, action, given)
    if action == "create_run":
        rest = {name: each for name, each in given.items() if name not in (*_OF_RUN, "thread_id")}
        plain = {"thread_id": None, "run_id": None, "status": "pending", **dict.fromkeys(_OF_RUN)}
        known = {name: given[name] for name in _OF_RUN if name in given}
        return {**plain, "metadata": {}, **known, **ids, "kwargs": rest}
    metadata: dict[str, Any] = {"metadata": {}} if action in ("create", "search") else {}
    payload = {"payload": dict(given)} if resource == "crons" and action == "create" else {}
    return {**metadata, **{name: each for name, each in given.items() if each is not None}, **ids, **payload}


def _id(text: str) -> Any:
    try:
        return UUID(text)
    except ValueError:
        return text


def _store_value(query: Mapping[str, str], action: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if action == "get":
        return {"namespace": tuple(query.get("namespace", "").split(".")), "key": query.get("key")}
    name = _NAMESPACE.get(action, "namespace")
    labels = given.get(name)
    rest = {each: value for each, value in given.items() if each != name}
    return {**rest, "namespace": tuple(cast(list[str], labels)) if isinstance(labels, list) else None}


def _body(given: Mapping[str, Any], value: Mapping[str, Any], resource: str, action: str) -> dict[str, Any]:
    """Return the body with what a handler has changed in it."""
    if resource == "store":
        return _store_body(value, action)
    # What a handler marks goes to what is made, changed or looked for; to read, it would narrow the history.
    marks = {"metadata"} if action != "read" else set[str]()
    kept = {name: each for name, each in value.items() if name in given or name in marks}
    if action == "create_run":
        kept |= cast(dict[str, Any], value.get("kwargs") or {})
    if kept.get("metadata") == {} and "metadata" not in given:
        del kept["metadata"]
    return kept


def _store_body(value: Mapping[str, Any], action: str) -> dict[str, Any]:
    rest = {name: each for name, each in value.items() if name != "namespace"}
    labels = value.get("namespace")
    if labels is None:
        return rest
    if not all(isinstance(label, str) for label in labels):
        raise ApiError(422, "namespace: give labels.")
    return {**rest, _NAMESPACE.get(action, "namespace"): list(labels)}


def _query(request: Request, value: Mapping[str, Any]) -> bytes:
    labels: Any = value.get("namespace") or []
    if any("." in label for label in labels):
        raise ApiError(422, "namespace: a label cannot have a '.' in it.")
    return urlencode({**request.query_params, "namespace": ".".join(labels)}).encode()

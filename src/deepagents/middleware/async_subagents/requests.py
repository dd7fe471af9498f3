"""What a request to a server carries beside the task: who its parent is, context, and headers of a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from langsmith.run_helpers import get_current_run_tree
from pydantic import BaseModel

from deepagents.middleware.async_subagents.spec import RemoteAgent
from deepagents.middleware.async_subagents.state import PARENT
from deepagents.tools._tool import Runtime

_METADATA: Final = "langsmith-metadata="
_NESTED: Final = "ls_nest_under_parent"


def thread_metadata(agent: RemoteAgent, runtime: Runtime) -> dict[str, str]:
    """Say on the new thread whose it is; only what runs on our own server may answer us there."""
    parent = _parent(runtime)
    metadata = {"subagent_name": agent.name}
    if thread_id := parent.get("thread_id"):
        metadata["parent_thread_id"] = thread_id
    if agent.url is None and agent.notify_parent and "assistant_id" in parent:
        metadata["parent_assistant_id"] = parent["assistant_id"]
    return metadata


def run_options(agent: RemoteAgent, runtime: Runtime) -> dict[str, Any]:
    """Return the options of a run that are not empty.

    A server takes a context or a configuration, never both; a context goes to our own server alone.
    """
    options: dict[str, Any] = {"headers": _trace_headers(agent), "webhook": agent.webhook}
    context = plain_context(runtime.context) if agent.url is None else None
    if context:
        options["context"] = context
    elif parent := _reference(agent, runtime):
        options["config"] = {"configurable": {PARENT: parent}}
    return {key: value for key, value in options.items() if value}


def _reference(agent: RemoteAgent, runtime: Runtime) -> dict[str, str]:
    parent = _parent(runtime)
    if not agent.notify_parent or "thread_id" not in parent:
        return {}
    return parent if agent.url is None else {"thread_id": parent["thread_id"]}


def _parent(runtime: Runtime) -> dict[str, str]:
    configurable: Mapping[str, Any] = runtime.config.get("configurable") or {}
    ours = {key: configurable.get(key) for key in ("thread_id", "assistant_id")}
    return {key: str(value) for key, value in ours.items() if value}


def plain_context(given: Any) -> dict[str, Any] | None:
    """Return the run's context as JSON can hold it, `None` where it cannot."""
    if isinstance(given, BaseModel):
        plain: Any = given.model_dump(mode="json")
    elif is_dataclass(given) and not isinstance(given, type):
        plain = asdict(given)
    else:
        plain = dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else {}
    plain = {key: value for key, value in plain.items() if key != PARENT}
    try:
        return json.loads(json.dumps(plain)) or None
    except (TypeError, ValueError):
        return None


def _trace_headers(agent: RemoteAgent) -> dict[str, str]:
    """Let what runs on our own server appear under our run in a trace, where there is one."""
    tree = get_current_run_tree() if agent.url is None else None
    if tree is None:
        return {}
    traced = tree.to_headers()
    own = [value for key, value in agent.headers.items() if key.lower() == "baggage"]
    return {
        "langsmith-trace": traced.get("langsmith-trace", ""),
        "baggage": ",".join([*own, *_nested(traced.get("baggage", ""))]),
    }


def _nested(baggage: str) -> list[str]:
    """Say in a trace's baggage that what comes belongs under the run that sends it."""
    items = [item for item in baggage.split(",") if item]
    metadata: dict[str, Any] = {}
    for item in items:
        if item.startswith(_METADATA):
            metadata |= json.loads(unquote(item.removeprefix(_METADATA)))
    metadata[_NESTED] = True
    others = [item for item in items if not item.startswith(_METADATA)]
    return [*others, _METADATA + quote(json.dumps(metadata))]

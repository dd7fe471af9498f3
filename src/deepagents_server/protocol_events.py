"""Tell the events of runs as the thread-centric protocol does: messages in blocks, tools, graphs that begin
and end.

The stored events are those that clients of single runs read. Everything here follows from them alone, so that
whoever reads a run again sees the same events under the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from deepagents._values import field, recordclass
from deepagents_server.events import PER_ATTEMPT, Event
from deepagents_server.message_blocks import Messages
from deepagents_server.serialize import load

CHANNELS: Final = (
    "values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"
)  # fmt: skip
MODES: Final = ("values", "updates", "messages-tuple", "tools", "checkpoints", "tasks", "custom")
"""What a run has to stream, so that there is something on every channel."""
_ENDS: Final = {"success": "completed", "error": "failed", "timeout": "failed", "interrupted": "interrupted"}

Namespace = tuple[str, ...]
Shown = tuple[str, Namespace, Any]
"""A method, the namespace of the graph, and the data."""


@recordclass
class RunTeller:
    """Tells the events of one run."""

    run_id: str
    graph_id: str
    _seq: int = 0
    _asked: dict[str, Shown] = field(default_factory=dict[str, Shown])
    """Questions, which are shown when the run has ended: only then can they be answered."""
    _messages: dict[Namespace, Messages] = field(default_factory=dict[Namespace, Messages])
    _graphs: dict[Namespace, str] = field(default_factory=dict[Namespace, str])
    """The graphs inside that have begun and not ended, with their names."""
    _calls: dict[str, str] = field(default_factory=dict[str, str])
    """The tool call that a task is there for, by the id of the task."""

    def tell(self, event: Event) -> Iterator[dict[str, Any]]:
        """Tell an event of the run."""
        self._seq = max(self._seq, event.seq // PER_ATTEMPT * PER_ATTEMPT)
        name, *namespace = event.name.split("|")
        yield from map(self._number, self._tell(name, tuple(namespace), load(event.data)))

    def tell_end(self, status: str | None, error: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Tell how the run has ended."""
        yield from map(self._number, self._end(status or "interrupted", error))

    def _number(self, shown: Shown) -> dict[str, Any]:
        self._seq += 1
        method, namespace, data = shown
        params = {"namespace": list(namespace), "timestamp": int(time.time() * 1000), "data": data}
        return {
            "type": "event",
            "event_id": f"{self.run_id}:{self._seq}",
            "seq": self._seq,
            "method": method,
            "params": params,
        }

    def _tell(self, name: str, namespace: Namespace, data: Any) -> Iterator[Shown]:
        match name:
            case "metadata" if data.get("attempt", 1) == 1:
                yield "lifecycle", (), {"event": "running", "graph_name": self.graph_id}
            case "values" | "updates":
                self._ask(namespace, data)
                yield from _state_of(name, namespace, _without_questions(data))
            case "messages":
                messages = self._messages.setdefault(namespace, Messages())
                yield from (("messages", namespace, each) for each in messages.take(*data))
            case "tasks":
                yield from self._task(namespace, data)
                yield "tasks", namespace, data
            case "custom":
                yield name, namespace, _show_custom(data)
            case "checkpoints":
                yield name, namespace, _show_checkpoint(data)
            case "tools":
                yield name, namespace, data
            case _:
                pass

    def _ask(self, namespace: Namespace, data: Any) -> None:
        for question in _questions(data):
            # The Python client reads `value`, and the JavaScript one `payload`.
            asked = {"interrupt_id": question["id"], "payload": question["value"], "value": question["value"]}
            self._asked.setdefault(question["id"], ("input.requested", namespace, asked))

    def _task(self, namespace: Namespace, task: Mapping[str, Any]) -> Iterator[Shown]:
        if "triggers" in task:
            yield from self._begin_graph(namespace, task)
            given = task.get("input")
            call: Any = cast(dict[str, Any], given).get("tool_call") if isinstance(given, dict) else None
            if isinstance(call, dict):
                self._calls[task["id"]] = str(cast(dict[str, Any], call).get("id"))
            return
        for inner in [each for each in self._graphs if each[:-1] == namespace]:
            if inner[-1].partition(":")[2] == task["id"]:
                yield from self._end_graph(inner, task)

    def _begin_graph(self, namespace: Namespace, task: Mapping[str, Any]) -> Iterator[Shown]:
        if not namespace or namespace in self._graphs:
            return
        node, _, task_id = namespace[-1].partition(":")
        about: dict[str, Any] = task.get("metadata") or {}
        name: str = about.get("lc_agent_name") or node
        self._graphs[namespace] = name
        shown: dict[str, Any] = {"event": "started", "namespace": list(namespace)}
        shown |= {"graph_name": name, "trigger_call_id": task_id}
        if call := self._calls.get(task_id):
            shown["cause"] = {"type": "toolCall", "tool_call_id": call}
        yield "lifecycle", namespace, shown

    def _end_graph(self, namespace: Namespace, task: Mapping[str, Any]) -> Iterator[Shown]:
        yield from self._finish_messages(namespace)
        shown: dict[str, Any] = {"event": "completed", "graph_name": self._graphs.pop(namespace)}
        if task.get("interrupts"):
            shown["event"] = "interrupted"
        elif task.get("error"):
            shown |= {"event": "failed", "error": str(task["error"])}
        yield "lifecycle", namespace, shown

    def _finish_messages(self, namespace: Namespace) -> Iterator[Shown]:
        if messages := self._messages.pop(namespace, None):
            yield from (("messages", namespace, each) for each in messages.finish_all())

    def _end(self, status: str, error: Mapping[str, Any]) -> Iterator[Shown]:
        for namespace in [*self._messages]:
            yield from self._finish_messages(namespace)
        yield from self._asked.values()
        end = "interrupted" if self._asked and status == "success" else _ENDS.get(status, "completed")
        for namespace, name in reversed(self._graphs.items()):
            yield "lifecycle", namespace, {"event": end, "graph_name": name}
        shown: dict[str, Any] = {"event": end, "graph_name": self.graph_id}
        if end == "failed":
            shown["error"] = str(error.get("message") or "The run ran out of time.")
        yield "lifecycle", (), shown


def _questions(data: Any) -> Sequence[dict[str, Any]]:
    return cast(dict[str, Any], data).get("__interrupt__") or () if isinstance(data, dict) else ()


def _without_questions(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    return {key: value for key, value in cast(dict[str, Any], data).items() if key != "__interrupt__"}


def _state_of(name: str, namespace: Namespace, data: Any) -> Iterator[Shown]:
    if name == "values":
        yield "values", namespace, data
        return
    for node, values in data.items():
        yield "updates", namespace, {"node": node, "values": values}


def _show_custom(data: Any) -> dict[str, Any]:
    held = cast(dict[str, Any], data) if isinstance(data, dict) else {}
    return {**({"name": held["name"]} if "name" in held else {}), "payload": data}


def _show_checkpoint(data: Mapping[str, Any]) -> dict[str, Any]:
    metadata: Mapping[str, Any] = data.get("metadata") or {}
    before: dict[str, Any] = data.get("parent_config") or {}
    parent: dict[str, Any] = before.get("configurable") or {}
    shown = {"id": data["config"]["configurable"].get("checkpoint_id")}
    if parent.get("checkpoint_id"):
        shown["parent_id"] = parent["checkpoint_id"]
    return {**shown, "step": metadata.get("step", -1), "source": metadata.get("source", "loop")}


@recordclass
class Subscription:
    """What a client wants to hear of a thread, and after which event."""

    channels: Sequence[str]
    namespaces: Sequence[Sequence[str]] | None
    depth: int | None
    since: int

    def takes(self, shown: Mapping[str, Any]) -> bool:
        """Tell whether an event is still to be sent."""
        if shown["seq"] <= self.since:
            return False
        namespace: list[str] = shown["params"]["namespace"]
        prefixes: Sequence[Sequence[str]] = [()] if self.namespaces is None else self.namespaces
        return self._has_channel(shown) and any(self._is_below(prefix, namespace) for prefix in prefixes)

    def _is_below(self, prefix: Sequence[str], namespace: Sequence[str]) -> bool:
        deep = len(namespace) - len(prefix)
        return _begins_with(namespace, prefix) and (self.depth is None or deep <= self.depth)

    def _has_channel(self, shown: Mapping[str, Any]) -> bool:
        method: str = shown["method"]
        if method == "custom" and "custom" not in self.channels:
            return f"custom:{shown['params']['data'].get('name')}" in self.channels
        return ("input" if method == "input.requested" else method) in self.channels


def _begins_with(namespace: Sequence[str], prefix: Sequence[str]) -> bool:
    """Compare with the beginning of a namespace; a part without an id stands for each of that name."""
    return len(prefix) <= len(namespace) and all(
        wanted in (part, part.partition(":")[0]) for wanted, part in zip(prefix, namespace, strict=False)
    )

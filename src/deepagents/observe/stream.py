"""A LangGraph stream becomes events: a pure mapping, and two drivers over it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Interrupt

from deepagents.events import (
    ApprovalNeeded,
    ApprovalRequest,
    Event,
    FinalAnswer,
    PlanChanged,
    SubagentFinished,
    SubagentStarted,
    Todo,
    Token,
    ToolCalled,
    ToolFinished,
    Usage,
)

Namespace: TypeAlias = tuple[str, ...]
Chunk: TypeAlias = tuple[Namespace, str, Any]

_STREAM: Final[Mapping[str, Any]] = {"stream_mode": ["messages", "updates"], "subgraphs": True}
_MODEL_NODE = "model"
_TOOL_NODE = "tools"
_INTERRUPT = "__interrupt__"


def observe(
    agent: Any, given: Any, config: Any = None, *, observer: Observer | None = None, **options: Any
) -> Iterator[Event]:
    """Stream a run as events; `given` is an input, a `Command`, or `None` to take up pending steps."""
    see = (observer or Observer()).see
    chunks: Iterator[Chunk] = agent.stream(given, config, **_STREAM, **options)
    return (event for chunk in chunks for event in see(chunk))


def aobserve(
    agent: Any, given: Any, config: Any = None, *, observer: Observer | None = None, **options: Any
) -> AsyncIterator[Event]:
    """Stream an agent's run as events, awaiting."""
    see = (observer or Observer()).see
    chunks: AsyncIterator[Chunk] = agent.astream(given, config, **_STREAM, **options)
    return (event async for chunk in chunks for event in see(chunk))


class Observer:
    """Maps the chunks of one thread to events, and remembers what is needed to tell agents and calls apart.

    Keep one observer for all runs of a thread, so that a resumed run goes on under the same labels.
    """

    def __init__(self) -> None:
        self._labels: dict[Namespace, str] = {}
        self._calls: dict[str, ToolCalled | SubagentStarted] = {}
        self._asked: set[str] = set()

    def see(self, chunk: Chunk) -> Iterator[Event]:
        """Return the events of one chunk of a stream of modes `messages` and `updates` with subgraphs."""
        namespace, mode, data = chunk
        if mode == "messages":
            yield from self._spoken(namespace, *data)
            return
        for node, update in cast("Mapping[str, Any]", data).items():
            if node == _INTERRUPT:
                yield from self._asked_for(namespace, update)
            else:
                yield from self._updated(namespace, node, update)

    def _spoken(
        self, namespace: Namespace, message: BaseMessage, metadata: Mapping[str, Any]
    ) -> Iterator[Event]:
        agent = self._label(namespace, metadata.get("lc_agent_name"))
        if isinstance(message, AIMessage) and metadata.get("langgraph_node") == _MODEL_NODE and message.text:
            yield Token(message.text, agent)

    def _updated(self, namespace: Namespace, node: str, update: Any) -> Iterator[Event]:
        agent = self._label(namespace)
        for part in _parts(update):
            messages = _messages(part)
            if node == _MODEL_NODE:
                for message in messages:
                    yield from self._answered(message, agent)
            yield from self._finished(node, messages, agent)
            if part.get("todos") is not None:
                yield PlanChanged(
                    tuple(Todo(todo["content"], todo["status"]) for todo in part["todos"]), agent
                )

    def _answered(self, message: BaseMessage, agent: str | None) -> Iterator[Event]:
        if not isinstance(message, AIMessage):
            return
        if usage := message.usage_metadata:
            yield Usage(usage["input_tokens"], usage["output_tokens"], agent)
        for call in message.tool_calls:
            event = _called(call["name"], call["args"], call["id"] or "", agent)
            self._calls[event.call_id] = event
            yield event
        if not message.tool_calls and agent is None:
            yield FinalAnswer(message.text)

    def _finished(self, node: str, messages: Iterable[BaseMessage], agent: str | None) -> Iterator[Event]:
        for message in messages:
            if not isinstance(message, ToolMessage):
                continue
            known = self._calls.pop(message.tool_call_id, None)
            if known is not None or node == _TOOL_NODE:
                yield _result(message, known, agent)

    def _asked_for(self, namespace: Namespace, interrupts: Sequence[Interrupt]) -> Iterator[Event]:
        new = [each for each in interrupts if each.id not in self._asked]
        self._asked.update(each.id for each in new)
        event = interrupts_to_event(new, self._label(namespace))
        if event is not None:
            yield event

    def _label(self, namespace: Namespace, name: str | None = None) -> str | None:
        if not namespace:
            return None
        known = self._labels.get(namespace)
        if known is None:
            taken = set(self._labels.values())
            known = _first_free(name or namespace[-1].partition(":")[0], taken)
            if name is not None:
                self._labels[namespace] = known
        return known


def interrupts_to_event(interrupts: Iterable[Interrupt], agent: str | None = None) -> ApprovalNeeded | None:
    """Gather the tool calls that interrupts ask about; `None` when they ask about none."""
    requests = tuple(request for each in interrupts for request in _requests(each))
    return ApprovalNeeded(requests, agent) if requests else None


def _requests(interrupt: Interrupt) -> Iterator[ApprovalRequest]:
    value: Any = interrupt.value
    if not isinstance(value, Mapping) or "action_requests" not in value:
        return
    asked = cast("Mapping[str, Sequence[Mapping[str, Any]]]", value)
    for action, review in zip(asked["action_requests"], asked["review_configs"], strict=True):
        yield ApprovalRequest(
            interrupt_id=interrupt.id,
            name=action["name"],
            args=action["args"],
            description=action.get("description", ""),
            allowed=tuple(review["allowed_decisions"]),
        )


def _called(
    name: str, args: Mapping[str, Any], call_id: str, agent: str | None
) -> ToolCalled | SubagentStarted:
    match name, args:
        case "task", {"subagent_type": str(subagent), "description": str(task)}:
            return SubagentStarted(subagent, task, call_id, agent)
        case _:
            return ToolCalled(name, args, call_id, agent)


def _result(
    message: ToolMessage, known: ToolCalled | SubagentStarted | None, agent: str | None
) -> ToolFinished | SubagentFinished:
    if isinstance(known, SubagentStarted):
        return SubagentFinished(known.name, known.call_id, message.status, message.text, known.agent)
    name = known.name if known else message.name or "unknown"
    return ToolFinished(message.tool_call_id, name, message.status, message.text, agent)


def _parts(update: Any) -> Iterator[Mapping[str, Any]]:
    for part in cast("list[Any]", update) if isinstance(update, list) else [update]:
        if isinstance(part, Mapping):
            yield cast("Mapping[str, Any]", part)


def _messages(part: Mapping[str, Any]) -> list[BaseMessage]:
    found: Any = part.get("messages")
    many = cast("list[Any]", found) if isinstance(found, list) else [found]
    return [each for each in many if isinstance(each, BaseMessage)]


def _first_free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name} {number}" in taken:
        number += 1
    return f"{name} {number}"

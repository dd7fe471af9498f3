"""A request for approval: which calls it asks about, and what was wrong with the last answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, Final, cast

from langchain.agents.middleware import InterruptOnConfig
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Interrupt

EDITED: Final = "hitl_edited_tool_calls"
"""State key of LangChain's approval: what a person put in the place of a call, by the call's id."""

NOBODY_CAN_ANSWER: Final = (
    "No answer to this can reach the agent, because no checkpointer keeps the thread; give one to "
    "create_deep_agent, such as checkpointer=InMemorySaver()."
)
_FORM: Final = (
    'the answer has to be {"decisions": [...]}, with one decision for each request, in order: '
    '{"type": "approve"}, {"type": "edit", "edited_action": {"name": ..., "args": {...}}}, '
    '{"type": "reject", "message": ...} or {"type": "respond", "message": ...}'
)


class CallersError(Exception):
    """What a caller's own function raised while a request was made."""


def asks_safely(config: InterruptOnConfig) -> InterruptOnConfig:
    """Return the entry with its functions marked, so that their errors are not taken for a wrong answer."""
    own = {key: _marked(each) for key, each in config.items() if callable(each)}
    return cast("InterruptOnConfig", {**config, **own})


def _marked(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except GraphBubbleUp:
            raise
        except Exception as error:
            raise CallersError from error

    return call


def asking(raised: GraphInterrupt, calls: Sequence[Mapping[str, Any]], *said: str | None) -> GraphInterrupt:
    """Return the request with the id of each call in it, and what else there is to say about it."""
    remarks = " ".join(filter(None, said))
    return GraphInterrupt(
        [Interrupt(value=_told(each.value, calls, remarks), id=each.id) for each in raised.args[0]]
    )


def _told(value: Mapping[str, Any], calls: Sequence[Mapping[str, Any]], remarks: str) -> dict[str, Any]:
    requests = [_named(request, calls, remarks) for request in value["action_requests"]]
    return {**value, "action_requests": requests, **({"error": remarks} if remarks else {})}


def _named(request: Mapping[str, Any], calls: Sequence[Mapping[str, Any]], remarks: str) -> dict[str, Any]:
    description = f"{remarks}\n\n{request['description']}" if remarks else request["description"]
    asked = next((call["id"] for call in calls if call["args"] is request["args"]), None)
    return {**request, "description": description, "tool_call_id": asked}


def what_was_wrong(error: Exception) -> str:
    """Say why an answer could not be used, in LangChain's words where it has some."""
    return _put(str(error) if type(error) is ValueError else _FORM)


def wrong_edit(edits: Mapping[str, Any], tools: Collection[str] | None) -> str | None:
    """Say what keeps a person's replacement of a call from running, if anything does."""
    for edit in edits.values():
        match edit:
            case {"name": str(name), "args": dict()}:
                if tools is not None and name not in tools:
                    return _put(f"there is no tool {name!r}; choose one of {', '.join(sorted(tools))}")
            case _:
                return _put(_FORM)
    return None


def _put(problem: str) -> str:
    return f"The last answer could not be used: {problem.rstrip('.')}."

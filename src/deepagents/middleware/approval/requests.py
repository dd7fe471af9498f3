"""A request for approval: which calls it asks about, and what was wrong with the last answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

from langchain.agents.middleware.types import ToolCallRequest
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from deepagents._deprecation import warn_caller
from deepagents._state.runtime import in_graph, is_saved
from deepagents.middleware.approval.state import EDITED
from deepagents.tools._tool import failure_message

_NOBODY_CAN_ANSWER: Final = (
    "No answer to this can reach the agent, because no checkpointer keeps the thread; give one to "
    "create_deep_agent, such as checkpointer=InMemorySaver()."
)
_FORM: Final = (
    'the answer has to be {"decisions": [...]}, with one decision for each request, in order: '
    '{"type": "approve"}, {"type": "edit", "edited_action": {"name": ..., "args": {...}}}, '
    '{"type": "reject", "message": ...} or {"type": "respond", "message": ...}'
)
MOST_ANSWERS: Final = 20
_GIVEN_UP: Final = (
    f"{MOST_ANSWERS} answers came to the question whether this call may run, and none could be used, so it "
    "was not run. Make it again only if the user asks for it."
)
_RUNNING: Final = (
    "langchain.",
    "langchain_core.",
    "langgraph.",
    "langsmith.",
    "concurrent.",
    "threading.",
    "asyncio.",
    "contextvars.",
)


def nobody_can_answer() -> str | None:
    """Say that no answer can come, where no thread is kept."""
    return None if not in_graph() or is_saved() else _NOBODY_CAN_ANSWER


def warn_at_the_start(messages: Sequence[Any]) -> None:
    """Warn before the first call of the model, rather than at the first question, that no thread is kept."""
    begins = not messages or messages[-1].type == "human"
    if begins and nobody_can_answer():
        warn_caller(f"Calls of this agent may wait for a person. {_NOBODY_CAN_ANSWER}", beyond=_RUNNING)


def given_up(asked: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Answer the calls that were asked about as not run."""
    answers = [failure_message(call["name"], call["id"], "not_run", _GIVEN_UP) for call in asked]
    return {"messages": answers, EDITED: {}}


def call_that_ran(request: ToolCallRequest) -> Mapping[str, Any]:
    """Return the call of a request, or what a person put in its place."""
    call = cast("Mapping[str, Any]", request.tool_call)
    edits: Mapping[str, Any] = cast("Mapping[str, Any]", request.state).get(EDITED) or {}
    edit = edits.get(call["id"])
    return call if edit is None else {**call, **edit}


def asking(
    raised: GraphInterrupt,
    calls: Sequence[Mapping[str, Any]],
    offers: Mapping[str, bool],
    *said: str | None,
) -> GraphInterrupt:
    """Return the request with the id of each call in it, and what else there is to say about it.

    `offers` are the tools about which a decision may be remembered.
    """
    remarks = " ".join(filter(None, said))
    return GraphInterrupt(
        [Interrupt(value=_told(each.value, calls, offers, remarks), id=each.id) for each in raised.args[0]]
    )


def _told(
    value: Mapping[str, Any], calls: Sequence[Mapping[str, Any]], offers: Mapping[str, bool], remarks: str
) -> dict[str, Any]:
    requests = [_named(request, calls, remarks) for request in value["action_requests"]]
    requests = [{**each, "remember": each["args"]} if offers.get(each["name"]) else each for each in requests]
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


def wrong_words(answer: object) -> str | None:
    """Say what is wrong with the words that a person gave in a tool's place, if anything is."""
    given: object = cast("Mapping[str, Any]", answer).get("decisions") if isinstance(answer, Mapping) else ()
    for decision in cast("Sequence[Any]", given) if isinstance(given, Sequence) else ():
        match decision:
            case {"type": "respond", "message": message} if not _is_content(message):
                return _put(f"'message' of a respond decision must be text, got {message!r}")
            case _:
                continue
    return None


def _is_content(message: object) -> bool:
    if isinstance(message, list):
        return all(isinstance(each, str | dict) for each in cast("list[Any]", message))
    return isinstance(message, str)


def _put(problem: str) -> str:
    return f"The last answer could not be used: {problem.rstrip('.')}."

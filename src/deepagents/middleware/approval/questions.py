"""Make the question that a person reads, and describe what was wrong with an answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, cast

from langchain.agents.middleware.types import ToolCallRequest
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from deepagents._deprecation import warn_caller
from deepagents._state.runtime import in_graph, is_saved
from deepagents.middleware.approval.path_rules import Call
from deepagents.middleware.approval.state import EDITED
from deepagents.tools._tool import failure_message

_NO_CHECKPOINTER: Final = (
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
_RUNNERS: Final = (
    "langchain.",
    "langchain_core.",
    "langgraph.",
    "langsmith.",
    "concurrent.",
    "threading.",
    "asyncio.",
    "contextvars.",
)
"""Packages between the line that runs an agent and its middleware: a warning names that line."""


def explain_no_checkpointer() -> str | None:
    """Explain that no answer can come, where no thread is kept."""
    return None if not in_graph() or is_saved() else _NO_CHECKPOINTER


def warn_without_checkpointer(messages: Sequence[Any]) -> None:
    """Warn before the first call of the model, rather than at the first question, that no thread is kept."""
    # Once for each message of a person, not at every step of the work.
    begins = not messages or messages[-1].type == "human"
    if begins and explain_no_checkpointer():
        warn_caller(f"Calls of this agent may wait for a person. {_NO_CHECKPOINTER}", beyond=_RUNNERS)


def give_up(asked: Sequence[Call]) -> dict[str, Any]:
    """Answer the calls that were asked about as not run."""
    answers = [failure_message(call["name"], call["id"] or "", "not_run", _GIVEN_UP) for call in asked]
    return {"messages": answers, EDITED: {}}


def find_executed_call(request: ToolCallRequest) -> Call:
    """Return the call of a request, or a person's replacement of it."""
    call = cast("Call", request.tool_call)
    edits: Mapping[str, Any] = cast("Mapping[str, Any]", request.state).get(EDITED) or {}
    edit = edits.get(call["id"])
    return call if edit is None else {**call, **edit}


def rewrite_question(
    raised: GraphInterrupt,
    calls: Sequence[Call],
    can_remember: Callable[[str], bool],
    *remarks: str | None,
) -> GraphInterrupt:
    """Return LangChain's question with the id of each call, what could be remembered, and these remarks."""
    remark = " ".join(filter(None, remarks))

    def rewrite(request: Mapping[str, Any]) -> dict[str, Any]:
        # By identity: a request has no id, and two calls may have equal arguments.
        asked = next((call["id"] for call in calls if call["args"] is request["args"]), None)
        description = f"{remark}\n\n{request['description']}" if remark else request["description"]
        offer = {"remember": request["args"]} if can_remember(request["name"]) else {}
        return {**request, "description": description, "tool_call_id": asked, **offer}

    def rewrite_all(value: Mapping[str, Any]) -> dict[str, Any]:
        requests = [rewrite(request) for request in value["action_requests"]]
        return {**value, "action_requests": requests, **({"error": remark} if remark else {})}

    return GraphInterrupt([Interrupt(value=rewrite_all(each.value), id=each.id) for each in raised.args[0]])


def describe_error(error: Exception) -> str:
    """Describe why LangChain could not use an answer, in its words where it has some."""
    return _unusable(str(error) if type(error) is ValueError else _FORM)


def find_bad_edit(edits: Mapping[str, Any], tools: Collection[str] | None) -> str | None:
    """Describe what keeps a person's replacement of a call from running, if anything does."""
    for edit in edits.values():
        match edit:
            case {"name": str(name), "args": dict()}:
                if tools is not None and name not in tools:
                    return _unusable(f"there is no tool {name!r}; choose one of {', '.join(sorted(tools))}")
            case _:
                return _unusable(_FORM)
    return None


def find_bad_reply(answer: object) -> str | None:
    """Describe what is wrong with the words of a respond decision, if anything is."""
    given: object = cast("Mapping[str, Any]", answer).get("decisions") if isinstance(answer, Mapping) else ()
    for decision in cast("Sequence[Any]", given) if isinstance(given, Sequence) else ():
        match decision:
            case {"type": "respond", "message": message} if not _is_content(message):
                return _unusable(f"'message' of a respond decision must be text, got {message!r}")
            case _:
                continue
    return None


def _is_content(message: object) -> bool:
    if isinstance(message, list):
        return all(isinstance(each, str | dict) for each in cast("list[Any]", message))
    return isinstance(message, str)


def _unusable(problem: str) -> str:
    return f"The last answer could not be used: {problem.rstrip('.')}."

"""Prepare a fork: the conversation and private state of the agent that called it, and a task of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, cast

from langchain.agents import AgentState
from langchain.agents.middleware.types import OmitFromSchema
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deepagents._state.schema import NOT_SHARED
from deepagents.middleware._base import BaseMiddleware

FORKED: Final = "_deepagents_forked_context"
"""The state key that marks a fork; at first it holds the private state to continue with."""

_PREAMBLE: Final = (
    "You are now a fork of the agent above, already at work on one of its calls of task. Use all that the "
    "conversation says and shows. What it says about delegating is done: do not {again}. Do the task below "
    "and nothing else. Only your last message is returned, so put the whole answer in it."
)
PREAMBLE: Final = _PREAMBLE.format(again="delegate, task would refuse you")
PREAMBLE_OF_COMPILED: Final = _PREAMBLE.format(again="start that again")
UNANSWERED: Final = "Started. The result goes to the agent that made the call, not to its forks."
REFUSAL: Final = "a fork cannot delegate: do the work yourself with the other tools, and return the answer"


class ForkedState(AgentState[Any]):
    """State of a fork."""

    _deepagents_forked_context: NotRequired[
        Annotated[Any, OmitFromSchema(input=False, output=True), NOT_SHARED]
    ]


class ForkedContextMiddleware(BaseMiddleware):
    """Give a fork the private state of its caller; it runs before all middleware that reads that state."""

    state_schema = ForkedState

    async def _before_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        inherited = state.get(FORKED)
        # It is `True` once taken over, so that a resumed fork keeps what it wrote since.
        if not isinstance(inherited, Mapping):
            return None
        return {**cast("Mapping[str, Any]", inherited), FORKED: True}


def make_forked_history(
    history: Sequence[AnyMessage],
    call_id: str,
    task: str,
    addendum: str | None = None,
    *,
    compiled: bool = False,
) -> list[AnyMessage]:
    """Return the conversation as a fork continues it: the turn that called it stays, each call answered.

    Forks of one turn share all but the last message, so that a provider's cache serves them all.
    """
    at = _last_turn(history)
    answers = _missing_answers(history[at:], call_id)
    behind = max((i for i in range(at, len(history)) if isinstance(history[i], ToolMessage)), default=at) + 1
    preamble = PREAMBLE_OF_COMPILED if compiled else PREAMBLE
    begun = "\n\n".join([preamble, *([addendum] if addendum else []), f"Task:\n{task}"])
    own = HumanMessage(begun, id=f"fork-{call_id}")
    return [*history[:behind], *answers, *history[behind:], own]


def _last_turn(history: Sequence[AnyMessage]) -> int:
    """Return the index of the model's last message, the end where there is none."""
    found = (at for at in range(len(history) - 1, -1, -1) if isinstance(history[at], AIMessage))
    return next(found, len(history))


def _missing_answers(turn: Sequence[AnyMessage], call_id: str) -> list[ToolMessage]:
    asked = turn[0] if turn else None
    if not isinstance(asked, AIMessage):
        return []
    answered = {each.tool_call_id for each in turn if isinstance(each, ToolMessage)}
    return [
        ToolMessage(UNANSWERED, tool_call_id=each["id"], name=each["name"], id=f"fork-{call_id}-{each['id']}")
        for each in asked.tool_calls
        if each["id"] and each["id"] not in answered
    ]

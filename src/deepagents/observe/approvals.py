"""Interrupts become requests for a person's decision, or questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from langgraph.types import Interrupt

from deepagents.events import ApprovalNeeded, ApprovalRequest, QuestionAsked
from deepagents.observe.roster import MAIN, Author


def interrupts_to_event(interrupts: Iterable[Interrupt], author: Author = MAIN) -> ApprovalNeeded | None:
    """Gather the tool calls that interrupts ask about; `None` when they ask about none."""
    requests = tuple(request for each in interrupts for request in _requests(each))
    return ApprovalNeeded(requests, **author) if requests else None


def questions(interrupts: Iterable[Interrupt], author: Author = MAIN) -> Iterator[QuestionAsked]:
    """Return the interrupts that ask for something else than approval."""
    for each in interrupts:
        if not any(_requests(each)):
            yield QuestionAsked(each.id, each.value, **author)


def _requests(interrupt: Interrupt) -> Iterator[ApprovalRequest]:
    value: Any = interrupt.value
    if not isinstance(value, Mapping):
        return
    asked = cast("Mapping[str, Any]", value)
    if asked.get("type") == "tool_approval":
        yield _request(interrupt.id, asked, {})
    if "action_requests" not in asked:
        return
    actions = cast("Sequence[Mapping[str, Any]]", asked["action_requests"])
    reviews = cast("Sequence[Mapping[str, Any]]", asked["review_configs"])
    for action, review in zip(actions, reviews, strict=True):
        yield _request(interrupt.id, action, review)


def _request(interrupt_id: str, action: Mapping[str, Any], review: Mapping[str, Any]) -> ApprovalRequest:
    allowed = review.get("allowed_decisions")
    return ApprovalRequest(
        interrupt_id,
        action["name"],
        action["args"],
        action.get("description") or "",
        **({} if allowed is None else {"allowed": tuple(allowed)}),
        tool_call_id=action.get("tool_call_id") or review.get("tool_call_id"),
    )

"""The messages a request shows: a summary in place of those it stands for, and all others."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deepagents.middleware._incremental import Beginnings
from deepagents.middleware.summarization.caches import IdentityCache
from deepagents.middleware.summarization.estimates import block_type

_LOGGER: Final = logging.getLogger(__name__)
_BOUND: Final = frozenset({"thinking", "redacted_thinking", "reasoning_content"})
_BEDROCK: Final = frozenset({"bedrock", "bedrock_converse", "amazon_bedrock"})
_CLAUDE: Final = ("claude", "anthropic")

Copies: TypeAlias = IdentityCache[AnyMessage]


def visible(
    messages: list[AnyMessage],
    event: Any,
    summarized_ids: Collection[str] = (),
    copies: Copies | None = None,
    known: Beginnings[Live] | None = None,
    state: Sequence[AnyMessage] | None = None,
) -> list[AnyMessage]:
    """Return the summary of the last compaction, and every message that no summary stands for, in order.

    What is hidden is decided by id, so that messages deleted, added or changed meanwhile hide no other.
    Compactions that recorded no ids go by `cutoff_index`; a result of a call that is hidden is hidden with
    it. An event that cannot be understood hides nothing, and there is no summary of what the state has
    nothing left of. `copies` remembers messages that are shown without their reasoning, and `known` what was
    shown of their beginning; `state` are the state's own messages, where these are others.
    """
    if event is None:
        return messages
    summary, cutoff = _parts(event)
    if summary is None or cutoff is None:
        _LOGGER.warning("Showing the whole conversation: its compaction is malformed (%r)", event)
        return messages
    if _has_lapsed(messages if state is None else state, event, summarized_ids):
        return messages
    kept = _live(messages, event, cutoff, summarized_ids, Beginnings() if known is None else known)
    return [
        summary,
        *_unbound(kept, len(messages) - len(kept), event, Copies() if copies is None else copies),
    ]


@dataclass(frozen=True, slots=True)
class Live:
    """The messages that are shown, and whether the last calls among these are."""

    messages: list[AnyMessage] = field(default_factory=list[AnyMessage])
    calls_are_live: bool = True

    def going_on(self, new: Sequence[AnyMessage], hidden: Collection[str], summary: str | None) -> Live:
        """Return what is shown of these messages as well; the summary has its place already."""
        live, calls_are_live = list(self.messages), self.calls_are_live
        for message in new:
            is_live = message.id is None or (message.id not in hidden and message.id != summary)
            if isinstance(message, ToolMessage):
                is_live = is_live and calls_are_live
            elif isinstance(message, AIMessage):
                calls_are_live = is_live
            if is_live:
                live.append(message)
        return Live(live, calls_are_live)


def _live(
    messages: list[AnyMessage], event: Any, cutoff: int, hidden: Collection[str], known: Beginnings[Live]
) -> list[AnyMessage]:
    summary = event["summary_message"].id
    if not hidden:
        if summary and any(each.id == summary for each in messages):
            return [each for each in messages if each.id != summary]
        if cutoff > len(messages):
            _LOGGER.warning("A summary stands for %d messages, but there are only %d", cutoff, len(messages))
        return messages[cutoff:]
    about = (event, hidden)
    return known.of(messages, Live, lambda live, new: live.going_on(new, hidden, summary), about).messages


def _has_lapsed(state: Sequence[AnyMessage], event: Mapping[str, Any], hidden: Collection[str]) -> bool:
    """Tell whether everything is gone that there was when the context was compacted."""
    if not hidden:
        return False
    there = {event.get("after_id"), *(event.get("answers_before") or ())}
    return not any(each.id in hidden or each.id in there for each in state if each.id)


def _parts(event: Any) -> tuple[HumanMessage | None, int | None]:
    if not isinstance(event, Mapping):
        return None, None
    given = cast("Mapping[str, Any]", event)
    summary, cutoff = given.get("summary_message"), given.get("cutoff_index")
    return (
        summary if isinstance(summary, HumanMessage) else None,
        cutoff if isinstance(cutoff, int) and cutoff >= 0 else None,
    )


def _unbound(
    kept: list[AnyMessage], hidden: int, event: Mapping[str, Any], copies: Copies
) -> list[AnyMessage]:
    """Return the messages, those from before the compaction without reasoning bound to its context."""
    before = _from_before(kept, hidden, event)
    return [*(copies.of(each, without_bound_reasoning) for each in kept[:before]), *kept[before:]]


def _from_before(kept: Sequence[AnyMessage], hidden: int, event: Mapping[str, Any]) -> int:
    """Count the messages at the front that were there when the context was compacted."""
    answers = frozenset(event.get("answers_before") or ())
    if answers:
        return _upto_last(kept, answers)
    after_id = event.get("after_id")
    if after_id is not None:
        for at, message in enumerate(kept, 1):
            if message.id == after_id:
                return at
    created = event.get("created_at_index", event["cutoff_index"])
    return max(created - hidden, 0) if isinstance(created, int) else 0


def _upto_last(kept: Sequence[AnyMessage], answers: Collection[str]) -> int:
    """Count the messages up to the last of these answers, as far as they are there."""
    found, count = 0, 0
    for at, message in enumerate(kept, 1):
        if found == len(answers):
            break
        if message.id in answers:
            found, count = found + 1, at
    return count


def without_bound_reasoning(message: AnyMessage) -> AnyMessage:
    """Return a message without reasoning that only its provider can check, and only in its place."""
    if not isinstance(message, AIMessage) or isinstance(message.content, str):
        return message
    kinds = _bound_kinds(message.response_metadata)
    blocks: list[Any] = message.content
    content = [block for block in blocks if block_type(block) not in kinds]
    return message if len(content) == len(blocks) else message.model_copy(update={"content": content})


def _bound_kinds(metadata: Mapping[str, Any]) -> frozenset[str]:
    provider = metadata.get("model_provider")
    if provider is None:
        return _BOUND
    named = f"{metadata.get('model_name') or metadata.get('model_id') or ''}".lower()
    is_claude = provider == "anthropic" or (provider in _BEDROCK and any(mark in named for mark in _CLAUDE))
    return _BOUND | {"reasoning"} if is_claude else frozenset()

"""How many tokens a context has: what the provider reported of it, and estimates of what is new since."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from deepagents.middleware.summarization.caches import BoundedCache, IdentityCache
from deepagents.middleware.summarization.estimates import (
    largest_medium,
    tokens_of,
    tool_tokens,
    unsent_reasoning,
)

TokenCounter = Callable[..., int]
logger = logging.getLogger(__name__)

_ALIASES: Final = MappingProxyType(
    {
        "amazon_bedrock": "bedrock",
        "bedrock_converse": "bedrock",
        "openai-mantle": "openai",
        "anthropic-mantle": "anthropic",
        "azure": "openai",
        "openai-codex": "openai",
        "mistral": "mistralai",
    }
)
_MOST_OVERHEADS: Final = 4096
_MOST_SCALED: Final = 8.0
_FAR_BELOW: Final = 1 / 3
_BELOW: Final = 0.8
"""The shares of an estimate from which on a report is credible: always, and after a larger report."""


@dataclass(frozen=True, slots=True)
class Past:
    """What a context was before it last changed: its newest message then, and the answers it had."""

    newest: str | None = None
    answers: Container[str | None] = ()


@dataclass(frozen=True, slots=True)
class _Sum:
    """What the messages up to one are estimated to have, and the largest report of them with its estimate.

    `is_doubted` where a report fell far behind one before it: the context was another one at that time.
    """

    newest: str | None
    tokens: int = 0
    most: int = 0
    tokens_at_most: int = 0
    is_doubted: bool = False


class Meter:
    """Counts the tokens of contexts.

    Without a counter of the caller's own, a count starts from the provider's last report of the same
    context, and estimates only the messages after it, each once for as long as it lives.
    """

    def __init__(self, counter: TokenCounter = count_tokens_approximately) -> None:
        self._counter = counter
        self._is_own = _unwrapped(counter) is not count_tokens_approximately
        self._takes_tools = _takes_tools(counter)
        self._takes_parts = True
        self._tokens: IdentityCache[int] = IdentityCache()
        self._tool_tokens: IdentityCache[int] = IdentityCache()
        self._sums: IdentityCache[_Sum] = IdentityCache()
        self._overheads: BoundedCache[int] = BoundedCache(_MOST_OVERHEADS)

    def of(
        self,
        messages: Sequence[AnyMessage],
        system: SystemMessage | None,
        tools: Sequence[Any],
        *,
        provider: str | None = None,
        past: Past = Past(),
        scale: float = 1.0,
    ) -> int:
        """Count a request as it is to be sent; `scale` says by how much estimates are known to fall short.

        Only reports by models of the same provider count, and only those of the context as it is now, not of
        its past. One far below the estimate of the same messages speaks of another context, too.
        """
        anchor = self._anchor(messages, provider, past)
        if self._is_own:
            reported = 0 if anchor is None else self._reported(messages[anchor])
            return max(int(scale * self._counted(messages, system, tools)), reported)
        overhead = self.fixed(system, tools)
        tokens = None
        if anchor is not None:
            tokens, least = self._by_report(messages, anchor, overhead, past, scale)
            scale = max(scale, least)
        if tokens is None:
            tokens = int(scale * (overhead + sum(map(self._estimate, messages))))
        self._note(messages, overhead)
        return tokens

    def first_report(self, messages: Sequence[AnyMessage], provider: str | None, past: Past) -> int | None:
        """Return the place of the first answer that reports of the context as it is now."""
        for at, message in enumerate(messages):
            if _is_report(message, provider) and message.id not in past.answers:
                return at
        return None

    def unmeasured_medium(self, messages: Sequence[AnyMessage], provider: str | None, past: Past) -> int:
        """Return the estimate of the largest medium that no report has spoken of yet."""
        if self._is_own:
            return 0
        anchor = self._anchor(messages, provider, past)
        new = messages if anchor is None else messages[anchor + 1 :]
        return max(map(largest_medium, new), default=0)

    def each(self, messages: Sequence[AnyMessage], measured: int | None = None) -> list[int]:
        """Count each message alone; estimates grow where all are known to have more tokens, `measured`."""
        counts = [self._estimate(message) for message in messages]
        total = sum(counts)
        if measured is None or not total or (self._is_own and self._takes_parts):
            return counts
        factor = min(measured / total, _MOST_SCALED)
        if not self._is_own:
            factor = max(factor, 1.0)
        return [int(count * max(factor, 0)) for count in counts]

    def added(self, messages: Sequence[AnyMessage]) -> int:
        """Estimate messages together."""
        return sum(map(self._estimate, messages))

    def fixed(self, system: SystemMessage | None, tools: Sequence[Any]) -> int:
        """Count the system prompt and the tools."""
        if system is None and not tools:
            return 0
        if self._is_own and self._takes_parts:
            counted = self._part(lambda: self._counted((), system, tools))
            if counted is not None:
                return counted
        prompt = 0 if system is None else self._estimate(system)
        return prompt + sum(self._tool_tokens.of(tool, tool_tokens) for tool in tools)

    def _estimate(self, message: BaseMessage) -> int:
        return self._tokens.of(message, self._alone)

    def _alone(self, message: BaseMessage) -> int:
        if not self._is_own:
            return tokens_of(message, self._counter)
        counted = self._part(lambda: self._counter([message])) if self._takes_parts else None
        return tokens_of(message) if counted is None else counted

    def _part(self, count: Callable[[], int]) -> int | None:
        """Count a part of a request; from the first refusal on, parts are estimated."""
        try:
            return count()
        except Exception:
            self._takes_parts = False
            logger.info("Estimating parts of requests: the token counter takes none", exc_info=True)
        return None

    def _counted(
        self, messages: Sequence[AnyMessage], system: SystemMessage | None, tools: Sequence[Any]
    ) -> int:
        everything = list(messages) if system is None else [system, *messages]
        if self._takes_tools is False:
            return self._counter(everything)
        try:
            return self._counter(everything, tools=list(tools))
        except TypeError:
            if self._takes_tools:
                raise
        return self._counter(everything)

    def _anchor(self, messages: Sequence[AnyMessage], provider: str | None, past: Past) -> int | None:
        """Find the last report that speaks of this context."""
        for at in range(len(messages) - 1, -1, -1):
            if _is_report(messages[at], provider):
                return None if messages[at].id in past.answers else at
        return None

    def _by_report(
        self, messages: Sequence[AnyMessage], anchor: int, overhead: int, past: Past, scale: float
    ) -> tuple[int | None, float]:
        """Count by a report, or say why not: by how much estimates are too low where it is not credible."""
        reported = self._reported(messages[anchor])
        known = self._sum(messages, anchor, past)
        if not _is_credible(reported, known, overhead):
            known = self._sum(messages, anchor, past, anew=True)
        if _is_credible(reported, known, overhead):
            new = int(scale * self.added(messages[anchor + 1 :]))
            return max(reported + self._growth(messages, anchor, overhead), 0) + new, 1.0
        estimate = overhead + known.tokens_at_most
        return None, min(max(known.most / estimate, 1.0), _MOST_SCALED) if estimate else 1.0

    def _sum(self, messages: Sequence[AnyMessage], anchor: int, past: Past, *, anew: bool = False) -> _Sum:
        """Add up to a report; where that was done before for an earlier one, only from there on."""
        at, found = anchor, None
        while at >= 0 and found is None:
            found = None if anew else self._sums.get(messages[at])
            found = found if found is not None and found.newest == past.newest else None
            at -= 1
        start = at + 1 if found is None else at + 2
        found = found or _Sum(past.newest)
        for message in messages[start : anchor + 1]:
            found = self._with(found, message, past)
        return self._sums.put(messages[anchor], found)

    def _with(self, known: _Sum, message: AnyMessage, past: Past) -> _Sum:
        tokens = known.tokens + self._estimate(message)
        counts = _is_report(message, None) and message.id not in past.answers
        reported = self._reported(message) if counts else 0
        if reported > known.most:
            return replace(known, tokens=tokens, most=reported, tokens_at_most=tokens)
        is_doubted = known.is_doubted or (counts and reported < _BELOW * min(tokens, known.most))
        return replace(known, tokens=tokens, is_doubted=is_doubted)

    def _reported(self, message: AnyMessage) -> int:
        """Return what a report says, without the reasoning that is not sent again."""
        usage = message.usage_metadata if isinstance(message, AIMessage) else None
        if usage is None:
            return 0
        unsent = unsent_reasoning(message)
        least = usage["input_tokens"] + self._estimate(message) if unsent else 0
        return min(max(usage["total_tokens"] - unsent, least), usage["total_tokens"])

    def _growth(self, messages: Sequence[AnyMessage], anchor: int, overhead: int) -> int:
        """Say by how much system prompt and tools have grown since a report, if that is known."""
        known = self._overheads.get(messages[anchor - 1].id) if anchor else None
        return 0 if known is None else overhead - known

    def _note(self, messages: Sequence[AnyMessage], overhead: int) -> None:
        last = messages[-1].id if messages else None
        if last is not None:
            self._overheads.put(last, overhead)


def _is_credible(reported: int, known: _Sum, overhead: int) -> bool:
    """Tell whether a report can be of all these messages."""
    share = _BELOW if known.is_doubted or reported < known.most else _FAR_BELOW
    return reported >= share * (overhead + known.tokens)


def _is_report(message: AnyMessage, provider: str | None) -> bool:
    if not isinstance(message, AIMessage) or message.usage_metadata is None:
        return False
    by: Any = message.response_metadata.get("model_provider")
    same = by is None or provider is None or _ALIASES.get(by, by) == _ALIASES.get(provider, provider)
    return same and message.usage_metadata["input_tokens"] > 0


def _unwrapped(counter: TokenCounter) -> object:
    return counter.func if isinstance(counter, partial) else counter


def _takes_tools(counter: TokenCounter) -> bool | None:
    """Tell by its signature whether a counter takes tools; `None` where it shows none."""
    try:
        parameters = inspect.signature(counter).parameters
    except (TypeError, ValueError):
        return None
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return True
    named = parameters.get("tools")
    return named is not None and named.kind not in (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.POSITIONAL_ONLY,
    )

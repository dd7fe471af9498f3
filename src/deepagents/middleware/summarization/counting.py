"""How many tokens a context has: what the provider reported of it, and estimates of what is new since."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from deepagents.middleware.summarization.estimates import tokens_of, tool_tokens
from deepagents.middleware.summarization.remembered import Remembered

TokenCounter = Callable[..., int]

_ALIASES: Final = MappingProxyType(
    {
        "amazon_bedrock": "bedrock",
        "bedrock_converse": "bedrock",
        "openai-mantle": "openai",
        "anthropic-mantle": "anthropic",
    }
)
_MOST_OVERHEADS: Final = 4096
_MOST_SCALED: Final = 8.0


class Meter:
    """Counts the tokens of contexts.

    Without a counter of the caller's own, a count starts from the provider's last report of the same
    context, and estimates only the messages after it, each once for as long as it lives.
    """

    def __init__(self, counter: TokenCounter = count_tokens_approximately) -> None:
        self._counter = counter
        self._is_own = _unwrapped(counter) is not count_tokens_approximately
        self._takes_tools = _takes_tools(counter)
        self._tokens: Remembered[int] = Remembered()
        self._tool_tokens: Remembered[int] = Remembered()
        self._after: Remembered[str] = Remembered()
        self._overheads: OrderedDict[str, int] = OrderedDict()

    def of(
        self,
        messages: Sequence[AnyMessage],
        system: SystemMessage | None,
        tools: Sequence[Any],
        *,
        provider: str | None = None,
        after_id: str | None = None,
    ) -> int:
        """Count a request as it is to be sent.

        Only reports by models of the same provider count, and only after the message `after_id`, the newest
        one when the context was last compacted or clipped: earlier ones speak of another context.
        """
        anchor = self._anchor(messages, provider, after_id)
        reported = 0 if anchor is None else _reported(messages[anchor])
        if self._is_own:
            return max(self._counted(messages, system, tools), reported)
        overhead = self.fixed(system, tools)
        if anchor is None:
            tokens = overhead + sum(map(self._estimate, messages))
        else:
            new = sum(map(self._estimate, messages[anchor + 1 :]))
            tokens = max(reported + self._growth(messages, anchor, overhead), 0) + new
        self._note(messages, overhead)
        return tokens

    def each(self, messages: Sequence[AnyMessage], measured: int | None = None) -> list[int]:
        """Count each message alone; estimates grow where all are known to have more tokens, `measured`."""
        counts = [self._estimate(message) for message in messages]
        total = sum(counts)
        if measured is None or self._is_own or not 0 < total < measured:
            return counts
        factor = min(measured / total, _MOST_SCALED)
        return [int(count * factor) for count in counts]

    def fixed(self, system: SystemMessage | None, tools: Sequence[Any]) -> int:
        """Count the system prompt and the tools."""
        if self._is_own:
            return self._counted((), system, tools) if system is not None or tools else 0
        prompt = 0 if system is None else self._estimate(system)
        return prompt + sum(self._tool_tokens.of(tool, tool_tokens) for tool in tools)

    def _estimate(self, message: BaseMessage) -> int:
        return self._tokens.of(message, self._alone)

    def _alone(self, message: BaseMessage) -> int:
        return self._counter([message]) if self._is_own else tokens_of(message, self._counter)

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

    def _anchor(
        self, messages: Sequence[AnyMessage], provider: str | None, after_id: str | None
    ) -> int | None:
        """Find the last report that speaks of this context."""
        for at in range(len(messages) - 1, -1, -1):
            if after_id is not None and messages[at].id == after_id:
                return None
            if _is_report(messages[at], provider):
                return at if after_id is None or self._stands_after(messages, at, after_id) else None
        return None

    def _stands_after(self, messages: Sequence[AnyMessage], anchor: int, after_id: str) -> bool:
        """Tell whether a message stands after another; those that do are remembered, so the way is short."""
        for at in range(anchor, -1, -1):
            if messages[at].id == after_id or self._after.get(messages[at]) == after_id:
                self._after.put(messages[anchor], after_id)
                return True
        return False

    def _growth(self, messages: Sequence[AnyMessage], anchor: int, overhead: int) -> int:
        """Say by how much system prompt and tools have grown since a report, if that is known."""
        asked = messages[anchor - 1].id if anchor else None
        return overhead - self._overheads.get(asked or "", overhead)

    def _note(self, messages: Sequence[AnyMessage], overhead: int) -> None:
        last = messages[-1].id if messages else None
        if last is None:
            return
        self._overheads[last] = overhead
        if len(self._overheads) > _MOST_OVERHEADS:
            self._overheads.popitem(last=False)


def _reported(message: AnyMessage) -> int:
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return 0 if usage is None else usage["total_tokens"]


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

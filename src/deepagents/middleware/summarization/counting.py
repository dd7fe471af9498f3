"""Count the tokens of a request: an estimate of all, or the provider's last report plus what came since.

The larger of the two counts. A report can be too low (of another context, or a false one), an estimate can be
too low (a dense language); to compact somewhat early costs little, a refused request costs a whole one.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from deepagents._values import replace, valueclass
from deepagents.middleware._requests import is_deferred
from deepagents.models.traits import is_answer_of

TokenCounter = Callable[..., int]
logger = logging.getLogger(__name__)

_IMAGES: Final = frozenset({"image", "image_url", "input_image"})
_MEDIA: Final = frozenset({"file", "audio", "video", "document", "input_audio", "input_file", "media"})
_CALLS: Final = frozenset({"tool_use", "tool_call", "function_call"})
_IMAGE_TOKENS: Final = 85
_MEDIUM_TOKENS: Final = 2_000
"""About one page of a document; only the provider knows better, and says so in its report."""


@valueclass
class TokenTotal:
    """The messages of a context, counted from its start.

    `new` are the tokens of what came since the last compaction. `extra` is how much more the last request had
    than its messages as they are counted here, as its provider reported it. Of the answer an estimate counts,
    not the reported output: reasoning is in that, and is not sent again.
    """

    counted: int = 0
    new: int = 0
    extra: int = 0


class ContextCounter:
    """Counts with LangChain's counter or a caller's own, each message once."""

    def __init__(self, counter: TokenCounter = count_tokens_approximately) -> None:
        self._counter = counter
        usual: object = getattr(counter, "func", counter)
        self._is_usual = usual is count_tokens_approximately
        self._approximate: TokenCounter = counter if self._is_usual else count_tokens_approximately
        self._takes_tools = self._is_usual or _takes_tools(counter)
        self._takes_parts = True
        self._known_fixed: tuple[SystemMessage | None, Sequence[Any], int] = (None, (), 0)

    def add_old(self, total: TokenTotal, messages: Sequence[AnyMessage]) -> TokenTotal:
        """Return the total with messages that a compaction kept: reports in them are of another context."""
        return replace(total, counted=total.counted + self._count(messages))

    def add(self, total: TokenTotal, messages: Sequence[AnyMessage], provider: str | None) -> TokenTotal:
        """Return the total with further messages, and with the last report of the provider in them."""
        reports = ((at, _find_reported(each, provider)) for at, each in enumerate(messages))
        at, reported = max((each for each in reports if each[1]), default=(len(messages), 0))
        before, since = self._count(messages[:at]), self._count(messages[at:])
        extra = max(reported - total.counted - before, 0) if reported else total.extra
        return TokenTotal(total.counted + before + since, total.new + before + since, extra)

    def size(
        self,
        total: TokenTotal,
        messages: Sequence[AnyMessage],
        system: SystemMessage | None,
        tools: Sequence[Any],
    ) -> tuple[int, int]:
        """Return how large a request is, and how much of that are system prompt and tools."""
        fixed = self.count_fixed(system, tools)
        counted = total.counted + fixed
        if not self._takes_parts:
            whole = self._count_whole(messages, system, _without_deferred(tools))
            counted, fixed = whole, whole * fixed // max(counted, 1)
        return max(counted, total.counted + total.extra), fixed

    def count_fixed(self, system: SystemMessage | None, tools: Sequence[Any]) -> int:
        """Count the system prompt and the tools, but for those that a provider is to load later."""
        # Schemas are rendered for counting, 0.1 ms a tool; they are mostly those of the call before.
        known = self._known_fixed
        if known[0] != system or len(known[1]) != len(tools) or not all(map(is_, known[1], tools)):
            prompt, loaded = [] if system is None else [system], _without_deferred(tools)
            counted = self._try(lambda: self._count_whole((), system, loaded)) if prompt or loaded else 0
            if counted is None:
                counted = self.estimate(prompt) + self._approximate([], tools=loaded)
            known = self._known_fixed = system, list(tools), counted
        return known[2]

    def estimate(self, messages: Sequence[BaseMessage]) -> int:
        """Estimate messages by their length, media by a number each."""
        plain = [_without_media(each) for each in messages]
        return self._approximate([each for each, _ in plain]) + sum(media for _, media in plain)

    def _count(self, messages: Sequence[AnyMessage]) -> int:
        counted = self._try(lambda: self._counter(list(messages))) if messages else 0
        return self.estimate(messages) if counted is None else counted

    def _try(self, count: Callable[[], int]) -> int | None:
        """Count a part of a request; after the first refusal whole requests are counted."""
        if self._is_usual or not self._takes_parts:
            return None
        try:
            return count()
        except Exception:
            # A counter of the caller may raise anything about a list that is not a whole request.
            self._takes_parts = False
            logger.info("Counting whole requests: the token counter takes no parts of them", exc_info=True)
        return None

    def _count_whole(
        self, messages: Sequence[AnyMessage], system: SystemMessage | None, tools: Sequence[Any]
    ) -> int:
        everything = list(messages) if system is None else [system, *messages]
        if self._takes_tools:
            return self._counter(everything, tools=list(tools))
        return self._counter(everything)


def _find_reported(message: AnyMessage, provider: str | None) -> int:
    """Return how many tokens the request had that this message answered, as its provider reported; else 0."""
    if not isinstance(message, AIMessage) or message.usage_metadata is None:
        return 0
    is_theirs = is_answer_of(message.response_metadata, provider)
    return max(message.usage_metadata["input_tokens"], 0) if is_theirs else 0


def _without_deferred(tools: Sequence[Any]) -> list[Any]:
    return [each for each in tools if not is_deferred(each)]


def _without_media(message: BaseMessage) -> tuple[BaseMessage, int]:
    """Return a message as LangChain's counter can take it, and the tokens of its media.

    The counter would count the bytes of a document as text, and passes over calls next to a list of content.
    """
    invalid: list[Any] = message.invalid_tool_calls if isinstance(message, AIMessage) else []
    if isinstance(message.content, str) and not invalid:
        return message, 0
    texts = [repr(invalid)] if invalid else list[str]()
    media = 0
    has_calls = isinstance(message, AIMessage) and bool(message.tool_calls)
    for block in (
        [message.content] if isinstance(message.content, str) else cast("list[Any]", message.content)
    ):
        kind = block_type(block)
        if isinstance(block, str):
            texts.append(block)
        elif kind in _IMAGES or kind in _MEDIA:
            media += _IMAGE_TOKENS if kind in _IMAGES else _MEDIUM_TOKENS
        elif kind == "text":
            texts.append(str(block.get("text") or ""))
        elif not (has_calls and kind in _CALLS):
            texts.append(repr(block))
    return message.model_copy(update={"content": "".join(texts)}), media


def block_type(block: Any) -> str | None:
    """Return the type that a block of content states."""
    kind = cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else None


def _takes_tools(counter: TokenCounter) -> bool:
    """Return whether a counter can be called with `tools=`."""
    try:
        inspect.signature(counter).bind([], tools=[])
    except (TypeError, ValueError):
        return False
    return True

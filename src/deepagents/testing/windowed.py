"""A scripted model with an input window: it counts, reports what it counted, and refuses what is too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately

from deepagents.errors import ScriptError
from deepagents.testing.histories import history_faults
from deepagents.testing.scripted import Asked, Reply, ScriptedAnswer, ScriptedModel

_MARKS = ("<messages>", "Messages to summarize:")


def is_summary_request(asked: Asked) -> bool:
    """Return whether a request asks for a summary of messages that it quotes."""
    return not asked.tools and any(mark in asked.last for mark in _MARKS)


def say_how_long(asked: Asked) -> str:
    """Answer a request for a summary with the length of what was to be summarized."""
    return f"Summary of {len(asked.last)} characters."


class WindowedModel(ScriptedModel):
    """A scripted model that behaves like a provider whose model takes so many tokens.

    Each request, its messages and the tools offered with it, is measured by `counter` (LangChain's
    `count_tokens_approximately` unless another is given) and kept in `asked` with its size in `tokens`.
    One above `window` is refused, one with a history that strict providers refuse is an error of the test
    (`strict=False` lets it pass). Requests for a summary are answered by `summary` and take nothing from the
    script. Replies report their usage as providers do; `honesty` is the share of it that they report, and
    `None` reports nothing.

    Raises:
        ContextOverflowError: for a request above the window.
        ScriptError: for a history that no strict provider would take.
    """

    window: int = 32_000
    counter: Callable[..., int] = count_tokens_approximately
    summary: Callable[[Asked], ScriptedAnswer] = say_how_long
    honesty: float | None = 1.0
    strict: bool = True

    def __init__(self, *replies: Reply, **settings: Any) -> None:
        super().__init__(*replies, **settings)
        self.profile = {"max_input_tokens": self.window, **(self.profile or {})}

    @property
    def turns(self) -> list[Asked]:
        """The requests that were taken and were not for a summary."""
        return [each for each in self.asked if not is_summary_request(each) and not self.refuses(each)]

    @property
    def summaries(self) -> list[Asked]:
        """The requests for a summary."""
        return [each for each in self.asked if is_summary_request(each)]

    @property
    def refused(self) -> list[Asked]:
        """The requests above the window."""
        return [each for each in self.asked if self.refuses(each)]

    def refuses(self, asked: Asked) -> bool:
        """Return whether a request is above the window."""
        return asked.tokens > self.window

    def _measure(self, messages: list[BaseMessage], tools: list[dict[str, Any]]) -> int:
        return self.counter(messages, tools=tools)

    def _reply(self, asked: Asked) -> Reply:
        if self.refuses(asked):
            return ContextOverflowError(
                f"prompt is too long: {asked.tokens} tokens, and the maximum context length is {self.window}"
            )
        faults = history_faults(asked.messages) if self.strict else []
        if faults:
            return ScriptError(f"no strict provider takes this request: {'; '.join(faults)}")
        return self.summary if is_summary_request(asked) else super()._reply(asked)

    def _add_report(self, asked: Asked, answer: AIMessage) -> AIMessage:
        metadata = {
            "model_provider": self.provider,
            "model_name": self.model_name,
            **answer.response_metadata,
        }
        usage = answer.usage_metadata or self._usage(asked, answer)
        return answer.model_copy(update={"response_metadata": metadata, "usage_metadata": usage})

    def _usage(self, asked: Asked, answer: AIMessage) -> UsageMetadata | None:
        if self.honesty is None:
            return None
        given, made = int(asked.tokens * self.honesty), int(self.counter([answer]) * self.honesty)
        return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)

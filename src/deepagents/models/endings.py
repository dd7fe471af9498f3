"""Recognize answers of a model that did not end as an answer ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.messages import AIMessage, BaseMessage

Break: TypeAlias = Literal["length", "filtered", "no_end", "malformed"]
"""How one broke off: at a limit of tokens, by a filter, before its end, or in calls that are not JSON."""

BROKEN: Final = "broken"
"""Where an answer that broke off says how, in `response_metadata`."""
_SAYS: Final = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
"""Where providers say how an answer ended: OpenAI and most others, Anthropic, Bedrock, Ollama, Responses."""
_ENDS: Final[Mapping[Break, str]] = {
    "length": "length|max_tokens|max_output_tokens|model_length|model_context_window_exceeded",
    "filtered": "content_filter|content_filtered|refusal|safety|recitation|language|blocklist|spii"
    "|prohibited_content|image_\\w+|guardrail_intervened|error_toxic",
    "no_end": "error|failed|cancelled|incomplete|in_progress|timeout|other|insufficient_system_resource"
    "|malformed_\\w+|unexpected_tool_call|too_many_tool_calls|missing_thought_signature",
}
# Some streams say it in more than one piece, and LangChain joins the texts.
_PATTERNS: Final[Mapping[Break, re.Pattern[str]]] = {
    kind: re.compile(f"(?:{words})+") for kind, words in _ENDS.items()
}
_ALWAYS_SAY: Final[Mapping[str, str]] = {
    **dict.fromkeys(("openai", "azure", "deepseek", "xai", "openrouter", "groq"), "model_provider"),
    **dict.fromkeys(("google_genai", "bedrock_converse", "mistralai"), "model_provider"),
    # Its package passes on neither the name nor the end where `stream_usage` is off.
    "anthropic": "model_name",
}
"""Whose streams end with a reason, and what else a stream says that would say it."""


def find_break(message: AIMessage, *, streamed: bool) -> Break | None:
    """Return how an answer broke off, by what its provider says of it; `None` for one that is whole.

    Silence means nothing, except in a stream of a provider whose streams end with a reason.
    """
    metadata: Mapping[str, Any] = message.response_metadata
    details: object = metadata.get("incomplete_details")
    more = cast("Mapping[str, Any]", details).get("reason") if isinstance(details, Mapping) else None
    reasons = [str(each).lower() for each in (*map(metadata.get, _SAYS), more) if each]
    for kind, pattern in _PATTERNS.items():
        if any(map(pattern.fullmatch, reasons)):
            return kind
    also_says = _ALWAYS_SAY.get(str(metadata.get("model_provider")))
    return "no_end" if streamed and not reasons and also_says and metadata.get(also_says) else None


def break_of(message: BaseMessage) -> Break | None:
    """Return how an answer in a history broke off."""
    return message.response_metadata.get(BROKEN) if isinstance(message, AIMessage) else None


def describe_break(kind: str) -> str:
    """Say how an answer broke off, to follow "the answer"."""
    return {
        "length": "was cut off at a limit of tokens",
        "filtered": "was ended by a filter of the provider or refused",
        "malformed": "holds a call whose arguments are not whole JSON",
    }.get(kind, "broke off before its end")

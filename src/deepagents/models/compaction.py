"""Recognize a provider's own compaction: models that ask for it, and the blocks in which it comes.

Anthropic's Messages API takes `context_management={"edits": [{"type": "compact_20260112"}]}` and answers with
a block whose `content` is a summary; OpenAI's Responses API takes `[{"type": "compaction", ...}]` and answers
with an item that it alone can read. Sources: the pages "Compaction" at platform.claude.com/docs and
developers.openai.com/api/docs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from deepagents.errors import ConfigError

_TYPE: Final = "compaction"
_SETTING: Final = "context_management"


def compacts_itself(model: BaseChatModel, settings: Mapping[str, Any]) -> bool:
    """Return whether a call of the model, with these settings, lets its provider compact the conversation.

    Raises:
        ConfigError: where the provider would stop after that, which would end the run without an answer.
    """
    given: Any = settings.get(_SETTING) or getattr(model, _SETTING, None)
    edits = _edits_in(given) if given else ()
    if any(each.get("pause_after_compaction") for each in edits):
        raise ConfigError(
            "pause_after_compaction would end the run with an answer that says nothing; leave it out of "
            "context_management"
        )
    return bool(edits)


def _edits_in(given: Any) -> Sequence[dict[str, Any]]:
    listed: Any = cast("Mapping[str, Any]", given).get("edits") if isinstance(given, Mapping) else given
    edits: Sequence[Any] = cast("Sequence[Any]", listed) if isinstance(listed, list | tuple) else ()
    described = [cast("dict[str, Any]", each) for each in edits if isinstance(each, dict)]
    return [each for each in described if "compact" in str(each.get("type"))]


def is_compaction(block: object) -> bool:
    """Return whether a block of an answer stands for what came before it."""
    if not isinstance(block, Mapping):
        return False
    found = cast("Mapping[str, Any]", block)
    # Of a compaction that failed, both are empty, and the provider passes over it.
    return found.get("type") == _TYPE and bool(found.get("content") or found.get("encrypted_content"))


def find_summary(message: BaseMessage) -> str | None:
    """Return the summary that an answer holds; `""` where its provider alone can read it, `None` without."""
    blocks: list[Any] = message.content if isinstance(message.content, list) else []
    found = next((each for each in reversed(blocks) if is_compaction(each)), None)
    return None if found is None else str(found.get("content") or "")


def without_compactions(message: BaseMessage) -> BaseMessage:
    """Return an answer without the blocks of compactions."""
    blocks: list[Any] = message.content if isinstance(message.content, list) else []
    return message.model_copy(update={"content": [each for each in blocks if not is_compaction(each)]})

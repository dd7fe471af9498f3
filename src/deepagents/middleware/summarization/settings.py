"""What a caller may set, checked: the sizes for a model, and the arguments of older versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from deepagents._deprecation import warn_legacy
from deepagents.errors import ConfigError
from deepagents.middleware.summarization.sizes import (
    ContextSize,
    Keep,
    SummarizationDefaults,
    Trigger,
    TriggerLike,
    defaults_for,
)
from deepagents.models.traits import input_window

DEFAULT_KEEP: Final[ContextSize] = ("messages", 20)
_TOKENS: Final = "max_tokens_before_summary"
_MESSAGES: Final = "messages_to_keep"


def compute_summarization_defaults(model: BaseChatModel) -> SummarizationDefaults:
    """Return the settings that fit a model: shares of its input window where its profile tells one."""
    return defaults_for(input_window(model))


def with_older(
    trigger: TriggerLike | None, keep: ContextSize, older: Mapping[str, Any]
) -> tuple[TriggerLike | None, ContextSize]:
    """Return the sizes with the arguments of older versions in them; each of those warns.

    Raises:
        TypeError: for an argument that there is not.
    """
    if "history_path_prefix" in older:
        raise TypeError(
            "history_path_prefix is no argument of SummarizationMiddleware: set artifacts_root of a "
            "CompositeBackend, and the archive lies in its conversation_history directory"
        )
    unknown = sorted(older.keys() - {_TOKENS, _MESSAGES})
    if unknown:
        raise TypeError(f"SummarizationMiddleware takes no argument {', '.join(map(repr, unknown))}")
    if _TOKENS in older:
        warn_legacy(f"{_TOKENS} is deprecated: pass trigger=('tokens', {older[_TOKENS]!r}).")
        trigger = ("tokens", older[_TOKENS]) if trigger is None else trigger
    if _MESSAGES in older:
        warn_legacy(f"{_MESSAGES} is deprecated: pass keep=('messages', {older[_MESSAGES]!r}).")
        keep = ("messages", older[_MESSAGES]) if keep == DEFAULT_KEEP else keep
    return trigger, keep


def check_fractions(model: BaseChatModel, trigger: Trigger, keep: Keep) -> None:
    """Refuse shares of a window that nobody knows.

    Raises:
        ConfigError: when the model's profile does not tell its input window.
    """
    if (trigger.uses_fraction or keep.uses_fraction) and input_window(model) is None:
        raise ConfigError(
            f"a fraction in trigger or keep needs a model that tells max_input_tokens in its profile, and "
            f"{type(model).__name__} does not: pass ('tokens', ...) or ('messages', ...), or give the model "
            "a profile={'max_input_tokens': ...}"
        )

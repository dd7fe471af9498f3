"""Set how much a model reasons before it answers, where its class has a field for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast, get_args, get_origin

from langchain_core.language_models import BaseChatModel

from deepagents.models.traits import largest_answer
from deepagents_cli.errors import CommandError, Exit

DEFAULT: Final = "default"
"""What a person writes for the effort that the provider chooses."""
_LEVELS: Final = ("reasoning_effort", "effort", "thinking_level")
"""Fields of LangChain's classes that take the name of a level."""
_USUAL: Final = ("low", "medium", "high")
_BUDGETS: Final[Mapping[str, int]] = {"low": 4_000, "medium": 16_000, "high": 32_000}
"""Tokens for thinking, where a class takes no level but such a number."""
_LEAST_BUDGET: Final = 1_024
"""Anthropic's: a smaller one is refused."""


def effort_levels(model: BaseChatModel) -> Mapping[str, Mapping[str, Any]]:
    """Return the levels that a model can be asked for, each with the fields of it that do so.

    There are none where its class has no such field, or its profile says that it does not reason.
    """
    profile, fields = _profile(model), type(model).model_fields
    if profile.get("reasoning_output") is False:
        return {}
    listed: Sequence[object] = profile.get("reasoning_effort_levels") or ()
    field = next((each for each in _LEVELS if each in fields), None)
    budget = next((each for each in ("thinking", "thinking_budget") if each in fields), None)
    # A profile that knows the model and no levels of it means that it would refuse one.
    if budget and not listed and (profile.get("reasoning_output") or not field):
        return {level: _budget(model, budget, tokens) for level, tokens in _BUDGETS.items()}
    if field is None:
        return {}
    named = [str(each) for each in listed] or _literals(fields[field].annotation) or _USUAL
    return {level: {field: level} for level in named}


def set_effort(model: BaseChatModel, level: str, label: str) -> BaseChatModel:
    """Return a model like this one that is asked for a level.

    Raises:
        CommandError: for a model that has none, or others.
    """
    levels = effort_levels(model)
    if not levels:
        raise CommandError(f"{label} has no levels of effort to choose from", Exit.USAGE)
    if level not in levels:
        raise CommandError(f"{level!r} is not an effort of {label}; write {', '.join(levels)}", Exit.USAGE)
    return model.model_copy(update={**levels[level]})


def _budget(model: BaseChatModel, field: str, tokens: int) -> Mapping[str, Any]:
    # What is thought counts as a part of the answer, which needs room behind it.
    most = (largest_answer(model, {}) or 2 * tokens) // 2
    tokens = max(min(tokens, most), _LEAST_BUDGET)
    return {field: {"type": "enabled", "budget_tokens": tokens} if field == "thinking" else tokens}


def _profile(model: BaseChatModel) -> Mapping[str, Any]:
    profile: object = getattr(model, "profile", None)
    return cast("Mapping[str, Any]", profile) if isinstance(profile, Mapping) else {}


def _literals(annotation: Any) -> list[str]:
    """Return the texts that a type lists, the last first: LangChain begins with the most."""
    if get_origin(annotation) is Literal:
        return [str(each) for each in reversed(get_args(annotation))]
    return [text for each in get_args(annotation) for text in _literals(each)]

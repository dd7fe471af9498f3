"""Make models for agents. Other programs replace these names by functions of their own.

So the library asks this module, each time, for `resolve_model`, and that one for `init_chat_model`.
"""

from __future__ import annotations

from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from deepagents._deprecation import warn_caller
from deepagents.errors import MissingKey
from deepagents.models import resolve as _resolve
from deepagents.models.keyless import KeylessModel
from deepagents.models.traits import model_identifier as get_model_identifier
from deepagents.models.traits import model_matches_spec
from deepagents.models.traits import model_provider as get_model_provider

__all__ = [
    "default_model",
    "get_model_identifier",
    "get_model_provider",
    "init_chat_model",
    "model_matches_spec",
    "resolve_model",
]


def resolve_model(model: str | BaseChatModel | dict[str, Any]) -> BaseChatModel:
    """Return a chat model as it is, or make the one that a name or settings describe.

    Where a key is missing it warns, and the model raises `MissingKey` when it is asked: modules that make
    agents are imported where there are no keys.

    Raises:
        UnknownModel: when no model can be made from what was given.
    """
    try:
        return _resolve.resolve_model(model, init_chat_model)
    except MissingKey as missing:
        warn_caller(str(missing))
        return KeylessModel(model_name=missing.model, provider=missing.provider, reason=str(missing))


def default_model() -> BaseChatModel:
    """Make the model to use when none was named.

    Raises:
        UnknownModel: when there is nothing to take, saying what could be done.
    """
    return _resolve.default_model(resolve_model)

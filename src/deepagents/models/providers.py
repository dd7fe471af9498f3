"""Providers of models that LangChain does not know: ours, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import cast

from langchain_core.language_models import BaseChatModel

from deepagents.models.local_server import chat_local_server
from deepagents.models.plugins import load_plugins


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """How `provider:name` becomes a chat model.

    Args:
        make: called with the name, which is empty for `provider` alone, and the arguments for the model.
        is_ready: tell whether `provider` alone can be the default model now, without a key.
        hint: how a user gets a model of this provider; ends the list of choices where no model was named.
    """

    make: Callable[..., BaseChatModel]
    is_ready: Callable[[], bool] = lambda: False
    hint: str = ""


def register_model_provider(name: str, provider: ModelProvider) -> None:
    """Make `name:model` a chat model by this provider from now on.

    A package registers its providers in an entry point of the group `deepagents.model_providers`, which names
    a function without arguments.

    Raises:
        ValueError: for a name that could not be distinguished from the model's.
        TypeError: for what is no provider.
    """
    if not name or ":" in name:
        raise ValueError(f"a provider's name has at least one character and no ':', got {name!r}")
    if not isinstance(cast(object, provider), ModelProvider):
        raise TypeError(f"a ModelProvider is registered for {name!r}, got {provider!r}")
    _find_registered()[name] = provider


def model_providers() -> dict[str, ModelProvider]:
    """Return the registered providers by name, those of installed packages too."""
    load_plugins()
    return dict(_find_registered())


@cache
def _find_registered() -> dict[str, ModelProvider]:
    return {"local-server": ModelProvider(chat_local_server)}

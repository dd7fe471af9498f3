"""Run a small open model in this process: weights, engine, chat model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepagents_local.catalog import DEFAULT_MODEL, KNOWN, LocalModel, known_model
    from deepagents_local.chat import ChatLocal
    from deepagents_local.errors import EngineError, PromptTooLong, WeightsError, WeightsMissing
    from deepagents_local.weights import (
        cache_dir,
        find_weights,
        need_weights,
        pull_weights,
        verify_weights,
    )

__all__ = [
    "DEFAULT_MODEL",
    "KNOWN",
    "ChatLocal",
    "EngineError",
    "LocalModel",
    "PromptTooLong",
    "WeightsError",
    "WeightsMissing",
    "cache_dir",
    "find_weights",
    "known_model",
    "need_weights",
    "pull_weights",
    "verify_weights",
]

_MODULES = {
    "catalog": ("DEFAULT_MODEL", "KNOWN", "LocalModel", "known_model"),
    "chat": ("ChatLocal",),
    "errors": ("EngineError", "PromptTooLong", "WeightsError", "WeightsMissing"),
    "weights": ("cache_dir", "find_weights", "need_weights", "pull_weights", "verify_weights"),
}


def __getattr__(name: str) -> Any:
    """Load names on first use: registering the provider costs every agent of any model only this file."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

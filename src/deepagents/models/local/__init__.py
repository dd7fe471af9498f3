"""A small open model in this process: weights, engine, chat model."""

from deepagents.models.local.catalog import DEFAULT_MODEL, KNOWN, LocalModel, known_model
from deepagents.models.local.chat import ChatLocal
from deepagents.models.local.errors import EngineError, PromptTooLong, WeightsError, WeightsMissing
from deepagents.models.local.weights import (
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

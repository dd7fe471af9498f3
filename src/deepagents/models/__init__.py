"""From the name of a model to a chat model."""

from deepagents.models.providers import ModelProvider, register_model_provider
from deepagents.models.resolve import default_model, resolve_model

__all__ = ["ModelProvider", "default_model", "register_model_provider", "resolve_model"]

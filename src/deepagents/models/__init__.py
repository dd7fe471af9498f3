"""From the name of a model to a chat model."""

from deepagents.models.resolve import ModelProvider, default_model, register_model_provider, resolve_model

__all__ = ["ModelProvider", "default_model", "register_model_provider", "resolve_model"]

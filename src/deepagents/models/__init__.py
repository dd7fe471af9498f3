"""Make a chat model from its name."""

from deepagents.models.resolve import ModelProvider, default_model, register_model_provider, resolve_model

__all__ = ["ModelProvider", "default_model", "register_model_provider", "resolve_model"]

"""From the name of a model to a chat model."""

from deepagents.models.resolve import default_model, resolve_model

__all__ = ["default_model", "resolve_model"]

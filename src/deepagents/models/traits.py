"""What a chat model says about itself."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel


def model_identifier(model: BaseChatModel) -> str | None:
    """Return the model's own name, if it tells one."""
    for attribute in ("model_name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return None


def model_provider(model: BaseChatModel) -> str | None:
    """Return the provider as LangChain's tracing names it, if the model tells one."""
    try:
        provider = model._get_ls_params().get("ls_provider")  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    except (AttributeError, TypeError, NotImplementedError):
        return None
    return provider or None

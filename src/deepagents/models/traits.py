"""What a chat model says about itself."""

from __future__ import annotations

from typing import Literal, TypeGuard, cast

from langchain_core.language_models import BaseChatModel

Input = Literal["image", "audio", "video", "pdf"]
_TAKE_ANY_FILE = ("openai", "azure")


def is_chat_model(given: object) -> TypeGuard[BaseChatModel]:
    """Tell whether this is a chat model itself, not its name, and not one with options bound to it."""
    return isinstance(given, BaseChatModel)


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


def input_window(model: BaseChatModel) -> int | None:
    """Return how many tokens a model takes, if its profile says so as a whole number."""
    profile: object = getattr(model, "profile", None)
    limit = cast("dict[str, object]", profile).get("max_input_tokens") if isinstance(profile, dict) else None
    return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None


def rejects_input(model: BaseChatModel, kind: Input, *, in_tool_message: bool = False) -> bool:
    """Tell whether a model's profile says that it does not take this kind; without a word it may."""
    profile = model.profile or {}
    in_tool = {"image": profile.get("image_tool_message"), "pdf": profile.get("pdf_tool_message")}
    at_all = {
        "image": profile.get("image_inputs"),
        "audio": profile.get("audio_inputs"),
        "video": profile.get("video_inputs"),
        "pdf": profile.get("pdf_inputs"),
    }
    return at_all[kind] is False or (in_tool_message and in_tool.get(kind) is False)


def may_take_any_file(model: BaseChatModel) -> bool:
    """Tell whether a model's provider has a way to take files other than media and PDF."""
    return model_provider(model) in _TAKE_ANY_FILE

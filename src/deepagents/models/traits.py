"""Read what a chat model says about itself: name, provider, window, kinds of input."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeGuard, cast
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel

Input = Literal["image", "audio", "video", "pdf"]
_ALIASES: Final = {"azure_openai": "azure", "mistralai": "mistral"}
_TAKE_ANY_FILE: Final = ("openai", "azure")
_BEDROCK_PROVIDERS: Final = frozenset(
    {"amazon_bedrock", "anthropic_bedrock", "aws", "bedrock", "bedrock_converse"}
)
_ANSWERS_AS: Final[Mapping[str, str]] = {
    **dict.fromkeys(_BEDROCK_PROVIDERS, "bedrock"),
    "openai-mantle": "openai",
    "anthropic-mantle": "anthropic",
    "azure": "openai",
    "openai-codex": "openai",
    "mistral": "mistralai",
}
"""What answers call their provider, where models call it something else."""
_BOUND_REASONING: Final = frozenset({"thinking", "redacted_thinking", "reasoning_content"})

ANSWER_SETTING: Final = "max_tokens"
"""The setting of a call that bounds its answer, where the model has a field of this name."""
_ANSWER_FIELDS: Final = (ANSWER_SETTING, "max_completion_tokens", "max_output_tokens", "num_predict")
"""The names that models have for it; the last two are Google's and Ollama's."""

_log = logging.getLogger(__name__)


def is_chat_model(given: object) -> TypeGuard[BaseChatModel]:
    """Return whether this is a chat model itself, not its name, and not one with options bound to it."""
    return isinstance(given, BaseChatModel)


def can_call_tools(model: BaseChatModel) -> bool:
    """Return whether a model has a `bind_tools` of its own, in its class or from what it wraps."""
    # Of the instance, not of the class: a wrapper may hand on what its model has.
    return getattr(model.bind_tools, "__func__", None) is not BaseChatModel.bind_tools


def model_identifier(model: BaseChatModel) -> str | None:
    """Return the model's own name, if it tells one."""
    for attribute in ("model_name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return None


def model_label(model: BaseChatModel) -> str:
    """Return the model's own name, or that of its class."""
    return model_identifier(model) or type(model).__name__


def model_provider(model: BaseChatModel) -> str | None:
    """Return the provider as LangChain's tracing names it, if the model tells one."""
    kind = f"{type(model).__module__}.{type(model).__name__}"
    try:
        params = cast(object, model._get_ls_params())  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    except (AttributeError, TypeError, NotImplementedError) as error:
        _log.info("%s does not tell its provider: %s", kind, error)
        return None
    if not isinstance(params, Mapping):
        _log.info("%s does not tell its provider, but %r", kind, params)
        return None
    provider = cast("Mapping[str, object]", params).get("ls_provider")
    return provider if isinstance(provider, str) and provider else None


def normal_provider(name: str) -> str:
    """Return one spelling for the names that a provider goes by."""
    spelled = name.lower().replace("-", "_")
    return _ALIASES.get(spelled, spelled)


def model_matches_spec(model: BaseChatModel, spec: str) -> bool:
    """Return whether this is the model that a name means: `NAME`, or `PROVIDER:NAME`."""
    identifier = model_identifier(model)
    if identifier is None or spec == identifier:
        return identifier is not None
    wanted, colon, name = spec.partition(":")
    if not colon or name != identifier:
        return False
    provider = model_provider(model)
    if provider is None:
        _log.debug("%r has no provider to compare with %r; its name decides", identifier, spec)
        return True
    return normal_provider(provider) == normal_provider(wanted)


def is_answer_of(metadata: Mapping[str, Any], provider: str | None) -> bool:
    """Return whether an answer with this metadata is of a provider, as far as both say so."""
    by = metadata.get("model_provider")
    return by is None or provider is None or _ANSWERS_AS.get(by, by) == _ANSWERS_AS.get(provider, provider)


def reasoning_bound_to_context(metadata: Mapping[str, Any]) -> Container[str | None]:
    """Return the types of the blocks in such an answer that are signed for the context it was made in."""
    provider = metadata.get("model_provider")
    if provider is None:
        return _BOUND_REASONING
    model = f"{metadata.get('model_name') or metadata.get('model_id') or ''}".lower()
    is_claude = provider in _BEDROCK_PROVIDERS and ("claude" in model or "anthropic" in model)
    return _BOUND_REASONING | {"reasoning"} if is_claude or provider == "anthropic" else ()


def is_served_here(model: BaseChatModel) -> bool:
    """Return whether a model runs on this machine: in this process, or on a server at a loopback address."""
    if getattr(model, "runs_in_process", False):
        return True
    addresses = (getattr(model, name, None) for name in ("openai_api_base", "base_url"))
    hosts = (urlsplit(each).hostname or "" for each in addresses if isinstance(each, str))
    return any(host == "localhost" or _is_loopback(host) for host in hosts)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def input_window(model: BaseChatModel) -> int | None:
    """Return how many tokens a model takes, if its profile says so as a whole number."""
    return _number_in_profile(model, "max_input_tokens")


def _number_in_profile(model: BaseChatModel, key: str) -> int | None:
    profile: object = getattr(model, "profile", None)
    limit = cast("dict[str, object]", profile).get(key) if isinstance(profile, dict) else None
    return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None


def largest_answer(model: BaseChatModel, settings: Mapping[str, Any]) -> int | None:
    """Return how many tokens an answer may have: by the settings of the call, the model or its profile."""
    own = {each: getattr(model, each, None) for each in _ANSWER_FIELDS}
    return answer_in(settings) or answer_in(own) or _number_in_profile(model, "max_output_tokens")


def answer_in(settings: Mapping[str, Any]) -> int | None:
    """Return how many tokens an answer may have, by the settings of a call."""
    found: Iterable[object] = map(settings.get, _ANSWER_FIELDS)
    return next((each for each in found if isinstance(each, int) and each > 0), None)


def answer_field(model: BaseChatModel) -> str | None:
    """Return the field of a model that bounds its answers, if it has one."""
    return next((each for each in _ANSWER_FIELDS if each in type(model).model_fields), None)


def thinking_bound(model: BaseChatModel, settings: Mapping[str, Any]) -> int:
    """Return how many tokens of an answer are for thinking; a bound on the answer must be above them."""
    thinking: object = settings.get("thinking") or getattr(model, "thinking", None)
    tokens = cast("dict[str, object]", thinking).get("budget_tokens") if isinstance(thinking, dict) else None
    return tokens if isinstance(tokens, int) else 0


def rejects_input(model: BaseChatModel, kind: Input, *, in_tool_message: bool = False) -> bool:
    """Return whether a model's profile says that it does not take this kind; without a word it may."""
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
    """Return whether a model's provider has a way to take files other than media and PDF."""
    return model_provider(model) in _TAKE_ANY_FILE

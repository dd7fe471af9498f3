"""Whatever names a model becomes a chat model, here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, TypeAlias, cast

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from deepagents._deprecation import warn_legacy
from deepagents.errors import UnknownModel
from deepagents.models.local_server import chat_local_server
from deepagents.models.provider_profiles import apply_provider_profile, get_provider_profile
from deepagents.models.traits import model_identifier, model_provider

DEFAULT_ANTHROPIC_MODEL = "claude-sonnet-4-6"

_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "langchain_anthropic", DEFAULT_ANTHROPIC_MODEL),
    "openai": ("OPENAI_API_KEY", "langchain_openai", "gpt-5"),
    "google_genai": ("GOOGLE_API_KEY", "langchain_google_genai", "gemini-2.5-pro"),
    "groq": ("GROQ_API_KEY", "langchain_groq", "openai/gpt-oss-120b"),
    "mistralai": ("MISTRAL_API_KEY", "langchain_mistralai", "mistral-large-latest"),
    "openrouter": ("OPENROUTER_API_KEY", "langchain_openrouter", "anthropic/claude-sonnet-4.6"),
}
"""For each provider: the variable that holds its key, the package that speaks to it, the model to take."""

_CHOICES = (
    "name one as PROVIDER:MODEL or in DEEPAGENTS_MODEL; or set a provider's key, such as "
    "ANTHROPIC_API_KEY or OPENAI_API_KEY; or run a local server (Ollama, llama.cpp, LM Studio, vLLM) and "
    "name it local-server:MODEL; or install deepagents[local] and run `deepagents models pull` for a small "
    "model in this process."
)


Make: TypeAlias = Callable[..., Any]
"""What makes a chat model from a name and arguments, as `init_chat_model` does."""


def resolve_model(model: str | BaseChatModel | dict[str, Any], make: Make = init_chat_model) -> BaseChatModel:
    """Return a chat model as it is, or make the one that a name or settings describe.

    Raises:
        UnknownModel: when no model can be made from what was given.
    """
    if isinstance(model, str):
        return _from_name(model, make)
    if isinstance(model, BaseChatModel):
        return model
    if not isinstance(cast(object, model), dict):
        raise UnknownModel(
            f"model must be a chat model or 'provider:name', got {model!r}; a model with options bound to it "
            "is none, so pass the options to the model itself"
        )
    warn_legacy("A model as a dict of settings is deprecated: pass init_chat_model(**settings).")
    name, provider = model.get("model") or "", model.get("model_provider")
    return _as_its_profile_says(f"{provider}:{name}" if provider else name, make, model)


def default_model(resolve: Callable[[str], BaseChatModel] = resolve_model) -> BaseChatModel:
    """Make the model to use when none was named: environment, then keys, then the local model.

    Raises:
        UnknownModel: when there is nothing to take, saying what could be done.
    """
    named = os.environ.get("DEEPAGENTS_MODEL")
    if named:
        return resolve(named)
    for provider, (key, package, name) in _KEYS.items():
        if os.environ.get(key) and find_spec(package):
            return resolve(f"{provider}:{name}")
    local = _local_if_there()
    if local is None:
        raise UnknownModel(f"There is no model to use: {_CHOICES}")
    return local


def _from_name(name: str, make: Make) -> BaseChatModel:
    provider, _, rest = name.partition(":")
    own = _OWN.get(provider)
    if own is not None:
        return own(rest)
    if not name:
        raise UnknownModel(f"No model could be made from {name!r}: {_CHOICES}")

    def made(**arguments: Any) -> Any:
        try:
            return make(arguments.pop("model"), **arguments)
        except Exception as error:
            raise UnknownModel(f"No model could be made from {name!r} ({error}): {_CHOICES}") from error

    return _as_its_profile_says(name, made, {"model": name})


def _as_its_profile_says(spec: str, make: Make, settings: Mapping[str, Any]) -> BaseChatModel:
    """Make a model with its provider's profile; a name without a provider is asked for it, once made."""
    if ":" in spec and get_provider_profile(spec):
        return make(**apply_provider_profile(spec, settings))
    model = make(**settings)
    provider = model_provider(model)
    full = f"{provider}:{model_identifier(model) or spec}"
    if provider is None or get_provider_profile(full) is None:
        return model
    return make(**apply_provider_profile(full, settings))


def _local(name: str) -> BaseChatModel:
    from deepagents.models.local import ChatLocal

    return ChatLocal(model=name) if name else ChatLocal()


def _local_if_there() -> BaseChatModel | None:
    if find_spec("xllamacpp") is None:
        return None
    from deepagents.models.local import find_weights

    return _local("") if find_weights() else None


_OWN: Mapping[str, Callable[[str], BaseChatModel]] = {"local": _local, "local-server": chat_local_server}

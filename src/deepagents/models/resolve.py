"""Make a chat model from a name, settings or the environment, with the providers that LangChain lacks."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Final, TypeAlias, cast

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from deepagents._deprecation import did_you_mean, warn_caller, warn_legacy
from deepagents._values import frozenclass
from deepagents.errors import MissingKey, UnknownModel
from deepagents.models.local_server import chat_local_server
from deepagents.models.plugins import load_plugins
from deepagents.models.provider_profiles import apply_provider_profile, get_provider_profile
from deepagents.models.traits import model_identifier, model_provider

_logger = logging.getLogger(__name__)

DEFAULT_ANTHROPIC_MODEL = "claude-sonnet-4-6"

PROVIDER_KEYS: Final[Mapping[str, tuple[str, str, str]]] = {
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
    "name it local-server:MODEL"
)

_ANOTHER = (
    "name another as PROVIDER:MODEL, such as anthropic:claude-sonnet-4-6, or as local-server:MODEL for a "
    "server on this machine (Ollama, llama.cpp, LM Studio, vLLM)"
)

Make: TypeAlias = Callable[..., Any]
"""What makes a chat model from a name and arguments, as `init_chat_model` does."""


@frozenclass
class ModelProvider:
    """How `provider:name` becomes a chat model.

    Args:
        make: called with the name, which is empty for `provider` alone, and the arguments for the model.
        is_ready: tell whether `provider` alone can be the default model now, without a key.
        hint: how a user gets a model of this provider; ends the list of choices where no model was named.
    """

    make: Callable[..., BaseChatModel]
    is_ready: Callable[[], bool] = lambda: False
    hint: str = ""


def register_model_provider(name: str, provider: ModelProvider) -> None:
    """Make `name:model` a chat model by this provider from now on.

    A package registers its providers in an entry point of the group `deepagents.model_providers`, which names
    a function without arguments.

    Raises:
        ValueError: for a name that could not be distinguished from the model's.
        TypeError: for what is not a provider.
    """
    if not name or ":" in name:
        raise ValueError(f"a provider's name has at least one character and no ':', got {name!r}")
    if not isinstance(cast(object, provider), ModelProvider):
        raise TypeError(f"a ModelProvider is registered for {name!r}, got {provider!r}")
    _PROVIDERS[name] = provider


def model_providers() -> dict[str, ModelProvider]:
    """Return the registered providers by name, those of installed packages too."""
    load_plugins()
    return dict(_PROVIDERS)


_PROVIDERS: Final = {"local-server": ModelProvider(chat_local_server)}


def resolve_model(model: str | BaseChatModel | dict[str, Any], make: Make = init_chat_model) -> BaseChatModel:
    """Return a chat model as it is, or make the one that a name or settings describe.

    Raises:
        UnknownModel: when no model can be made from what was given.
    """
    if isinstance(model, str):
        return _make_with_profile({"model": model}, make)
    if isinstance(model, BaseChatModel):
        return model
    if isinstance(model, type):
        name = cast("type[Any]", model).__name__
        raise UnknownModel(f"model is the class {name}; make one: {name}(...)")
    if not isinstance(cast(object, model), dict):
        raise UnknownModel(
            f"model must be a chat model or 'provider:name', got {model!r}; a model with options bound to "
            "it, or with configurable fields, is none, so make one with the options that it is to have"
        )
    warn_legacy("A model as a dict of settings is deprecated: pass init_chat_model(**settings).")
    return _make_with_profile(model, make)


def default_model(resolve: Callable[[str], BaseChatModel] = resolve_model) -> BaseChatModel:
    """Make the model to use when none was named: environment, then keys, then what installed packages offer.

    Raises:
        UnknownModel: when there is nothing to take, saying what could be done.
    """
    named = os.environ.get("DEEPAGENTS_MODEL")
    if named:
        return resolve(named)
    for provider, (key, package, name) in PROVIDER_KEYS.items():
        if os.environ.get(key) and find_spec(package):
            return resolve(f"{provider}:{name}")
    for name, provider in model_providers().items():
        if _is_ready(name, provider):
            return resolve(name)
    raise UnknownModel(f"There is no model to use: {_choices()}")


def _is_ready(name: str, provider: ModelProvider) -> bool:
    try:
        return provider.is_ready()
    # Installed packages bring these: one that fails must not keep the others from being asked.
    except Exception as error:
        _logger.exception("is_ready of model provider %s raised", name)
        warn_caller(f"The model provider {name!r} is skipped: its is_ready raised {error!r}.")
        return False


def _make_with_profile(settings: Mapping[str, Any], make: Make) -> BaseChatModel:
    """Make a model of settings, with its provider's profile; a name without a provider is made to tell it."""
    spec = _spec_of(settings)
    provider, colon, name = spec.partition(":")
    own = model_providers().get(provider)
    if own is not None:
        return _trying(
            _ours(own.make, name), settings, apply_provider_profile(spec if name else provider, settings)
        )
    if not provider or (colon and not name):
        raise UnknownModel(f"No model could be made from {_show_settings(settings)!r}: {_choices()}")
    if colon and get_provider_profile(spec):
        return _trying(make, settings, apply_provider_profile(spec, settings))
    model = _trying(make, settings, settings)
    maker = model_provider(model)
    full = f"{maker}:{model_identifier(model) or spec}"
    if maker is None or get_provider_profile(full) is None:
        return model
    return _trying(make, settings, apply_provider_profile(full, settings))


def _spec_of(settings: Mapping[str, Any]) -> str:
    name, provider = settings.get("model"), settings.get("model_provider")
    return f"{provider}:{name or ''}" if provider else str(name or "")


def _trying(make: Make, settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> BaseChatModel:
    rest = {key: value for key, value in arguments.items() if key != "model"}
    try:
        return _with_key(make(settings.get("model"), **rest))
    except UnknownModel:
        raise
    except Exception as error:
        spec, maker = _spec_of(settings), type(error).__module__.partition(".")[0]
        provider, colon, name = spec.partition(":")
        provider, name = (provider, name) if colon else (maker, spec)
        if name and _lacks_key(provider, arguments):
            raise _missing_key(provider, name) from error
        # What stands behind the first paragraph lists every provider that LangChain knows.
        why = " ".join(str(error).partition("\n\n")[0].split())
        # LangChain's sentence asks for a parameter of its own, which no name has.
        if "'model_provider'" in why:
            known = (*PROVIDER_KEYS, *model_providers())
            near = did_you_mean(_spec_of(settings).partition(":")[0], known, cutoff=0.7)
            why = f"it begins with no provider that LangChain knows{near}"
        raise UnknownModel(
            f"No model could be made from {_show_settings(settings)!r} ({why.rstrip('.')}): {_ANOTHER}."
        ) from error


def _with_key(model: BaseChatModel) -> BaseChatModel:
    """Return a model that can be asked: `ChatAnthropic` fails without a key at its first call only.

    Raises:
        MissingKey: naming the variable that holds the key.
    """
    key: object = getattr(model, "anthropic_api_key", None)
    if isinstance(key, SecretStr) and not key.get_secret_value() and not _has_other_credentials(model):
        raise _missing_key("anthropic", model_identifier(model) or "")
    return model


def _missing_key(provider: str, name: str) -> MissingKey:
    variable = PROVIDER_KEYS[provider][0]
    # A client names whatever else it could take, too.
    return MissingKey(
        f"{variable} is not set, and '{provider}:{name}' needs it: set it; or {_ANOTHER}.",
        provider,
        name,
    )


def _lacks_key(provider: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a model of an installed package could not be made because nothing holds its key."""
    if provider not in PROVIDER_KEYS or any("key" in each for each in arguments):
        return False
    variable, package, _ = PROVIDER_KEYS[provider]
    return not os.environ.get(variable) and find_spec(package) is not None


def _has_other_credentials(model: BaseChatModel) -> bool:
    headers: object = getattr(model, "default_headers", None)
    return bool(headers) or "ANTHROPIC_AUTH_TOKEN" in os.environ


def _show_settings(settings: Mapping[str, Any]) -> object:
    """Return what a caller gave: a name, or settings, of which only what names the model is shown."""
    if settings.keys() <= {"model"}:
        return settings.get("model", {})
    # The other settings may hold keys and headers.
    return {key: settings[key] for key in ("model", "model_provider") if key in settings}


def _ours(own: Callable[..., BaseChatModel], name: str) -> Make:
    def make(_: object, *, model_provider: object = None, **arguments: Any) -> BaseChatModel:
        return own(name, **arguments)

    return make


def _choices() -> str:
    hints = [provider.hint for provider in model_providers().values() if provider.hint]
    return "; or ".join((_CHOICES, *hints)) + "."

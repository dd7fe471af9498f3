"""Register what the models of a provider are made with."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from packaging.version import InvalidVersion, Version

from deepagents._deprecation import warn_caller
from deepagents._values import field, frozenclass
from deepagents.errors import ProfileError
from deepagents.models.registry import ProfileRegistry

R = TypeVar("R")

_OPENROUTER: Final = "langchain-openrouter"
_OLDEST_OPENROUTER: Final = "0.2.0"
_ALLOW_AZURE: Final = "DEEPAGENTS_OPENROUTER_ALLOW_AZURE"
_YES: Final = ("1", "true", "yes", "on")

_log = logging.getLogger(__name__)


@frozenclass
class ProviderProfile:
    """How models of one provider, or one model of it, are made from their names.

    Args:
        init_kwargs: arguments for the chat model.
        pre_init: called with `provider:model` before a model is made; what it raises stops the making.
        init_kwargs_factory: makes further arguments for each model; they win over `init_kwargs`.

    Raises:
        TypeError: for values of a wrong type.
    """

    init_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    pre_init: Callable[[str], None] | None = None
    init_kwargs_factory: Callable[[], Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.init_kwargs), Mapping):
            raise TypeError(f"init_kwargs must be a mapping, got {self.init_kwargs!r}")
        for name in ("pre_init", "init_kwargs_factory"):
            hook: object = getattr(self, name)
            if hook is not None and not callable(hook):
                raise TypeError(f"{name} must be a function or None, got {hook!r}")
        object.__setattr__(self, "init_kwargs", MappingProxyType(dict(self.init_kwargs)))


def register_provider_profile(key: str, profile: ProviderProfile) -> None:
    """Use a profile for `provider` or `provider:model`, over what is registered there.

    Raises:
        ProfileError: for a key that names nothing.
        TypeError: for what is not a profile.
    """
    if not isinstance(cast(object, profile), ProviderProfile):
        raise TypeError(f"a ProviderProfile is registered for {key!r}, got {profile!r}")
    _REGISTRY.register(key, profile)


def get_provider_profile(spec: str) -> ProviderProfile | None:
    """Return the profile that `provider:model` is made with, if there is one."""
    return _REGISTRY.find(spec)


def apply_provider_profile(
    spec: str, kwargs: Mapping[str, Any] | None = None, *, run_pre_init: bool = True
) -> dict[str, Any]:
    """Return the arguments to make a model with: those of its profile, then the caller's over them.

    Raises:
        ProfileError: when the profile's factory makes something else than arguments.
    """
    given = dict(kwargs or {})
    profile = get_provider_profile(spec)
    if profile is None:
        _log.debug("No provider profile matched %r", spec)
        return given
    if run_pre_init and profile.pre_init:
        profile.pre_init(spec)
    return {**profile.init_kwargs, **_arguments_of(profile.init_kwargs_factory), **given}


def _merge(base: ProviderProfile, override: ProviderProfile) -> ProviderProfile:
    return ProviderProfile(
        init_kwargs={**base.init_kwargs, **override.init_kwargs},
        pre_init=_one_after_the_other(base.pre_init, override.pre_init),
        init_kwargs_factory=_both_made(base, override),
    )


def _one_after_the_other(
    base: Callable[[str], None] | None, override: Callable[[str], None] | None
) -> Callable[[str], None] | None:
    if base is None or override is None:
        return base or override

    def both(spec: str) -> None:
        _log_failure(f"Base pre_init for {spec!r}", lambda: base(spec))
        _log_failure(f"Override pre_init for {spec!r}", lambda: override(spec))

    return both


def _both_made(base: ProviderProfile, override: ProviderProfile) -> Callable[[], Mapping[str, Any]] | None:
    first, second = base.init_kwargs_factory, override.init_kwargs_factory
    if first is None:
        return second

    def both() -> Mapping[str, Any]:
        made = _log_failure("Base init_kwargs_factory", lambda: _arguments_of(first))
        over = _log_failure("Override init_kwargs_factory", lambda: _arguments_of(second))
        return {**made, **override.init_kwargs, **over}

    return both


def _arguments_of(factory: Callable[[], Mapping[str, Any]] | None) -> Mapping[str, Any]:
    if factory is None:
        return {}
    made = factory()
    if not isinstance(cast(object, made), Mapping):
        raise ProfileError(
            f"init_kwargs_factory {factory!r} must return a mapping of arguments, got {made!r}"
        )
    return made


def _log_failure(what: str, hook: Callable[[], R]) -> R:
    try:
        return hook()
    except Exception:
        _log.exception("%s raised", what)
        raise


def _check_openrouter_version(spec: str) -> None:
    """Refuse a `langchain-openrouter` that is too old; one that is missing is left to who imports it.

    Raises:
        ImportError: naming the version that is needed.
    """
    try:
        installed = version(_OPENROUTER)
        if Version(installed) >= Version(_OLDEST_OPENROUTER):
            return
    except PackageNotFoundError:
        return
    except InvalidVersion as error:
        warn_caller(
            f"the version of {_OPENROUTER} tells nothing ({error}); {_OLDEST_OPENROUTER} or newer is needed"
        )
        return
    raise ImportError(
        f"{spec!r} needs {_OPENROUTER}>={_OLDEST_OPENROUTER}, installed is {installed}: "
        f"pip install -U {_OPENROUTER}"
    )


def _openrouter_kwargs() -> dict[str, object]:
    """Return what a model over OpenRouter is made with, as the environment stands now."""
    made: dict[str, object] = {}
    if "OPENROUTER_APP_TITLE" not in os.environ:
        made["app_title"] = "Deep Agents"
    if os.environ.get(_ALLOW_AZURE, "").strip().lower() not in _YES:
        made["openrouter_provider"] = {"ignore": ["azure"]}
    return made


_REGISTRY: Final = ProfileRegistry(
    "provider",
    {
        "nvidia": ProviderProfile(
            init_kwargs_factory=lambda: {"default_headers": {"X-BILLING-INVOKE-ORIGIN": "DeepAgents"}}
        ),
        "openai": ProviderProfile(init_kwargs={"use_responses_api": True}),
        "openrouter": ProviderProfile(
            pre_init=_check_openrouter_version, init_kwargs_factory=_openrouter_kwargs
        ),
    },
    _merge,
)

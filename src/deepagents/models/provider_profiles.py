"""ProviderProfile: what the models of a provider are made with, and the registry of these profiles."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from deepagents.errors import ProfileError
from deepagents.models.openrouter import check_openrouter_version, openrouter_kwargs
from deepagents.models.registry import ProfileRegistry

R = TypeVar("R")

_log = logging.getLogger(__name__)
_opening: Final = Lock()


@dataclass(frozen=True)
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
        _check(
            "init_kwargs", self.init_kwargs, isinstance(cast(object, self.init_kwargs), Mapping), "a mapping"
        )
        for name, hook in (("pre_init", self.pre_init), ("init_kwargs_factory", self.init_kwargs_factory)):
            _check(name, hook, hook is None or callable(hook), "a function or None")
        object.__setattr__(self, "init_kwargs", MappingProxyType(dict(self.init_kwargs)))


def register_provider_profile(key: str, profile: ProviderProfile) -> None:
    """Use a profile for `provider` or `provider:model`, over what is registered there.

    Raises:
        ProfileError: for a key that names nothing.
        TypeError: for what is no profile.
    """
    if not isinstance(cast(object, profile), ProviderProfile):
        raise TypeError(f"a ProviderProfile is registered for {key!r}, got {profile!r}")
    provider_registry().register(key, profile)


def get_provider_profile(spec: str) -> ProviderProfile | None:
    """Return the profile that `provider:model` is made with, if there is one."""
    return provider_registry().find(spec)


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
    made = _arguments_of(profile.init_kwargs_factory)
    return {**profile.init_kwargs, **made, **given}


def provider_registry() -> ProfileRegistry[ProviderProfile]:
    """Return the one registry of provider profiles."""
    with _opening:
        return _registry()


@cache
def _registry() -> ProfileRegistry[ProviderProfile]:
    built_in = {
        "nvidia": ProviderProfile(init_kwargs_factory=_nvidia_kwargs),
        "openai": ProviderProfile(init_kwargs={"use_responses_api": True}),
        "openrouter": ProviderProfile(
            pre_init=check_openrouter_version, init_kwargs_factory=openrouter_kwargs
        ),
    }
    return ProfileRegistry("provider", built_in, _merge)


def _nvidia_kwargs() -> dict[str, object]:
    return {"default_headers": {"X-BILLING-INVOKE-ORIGIN": "DeepAgents"}}


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


def _check(name: str, given: object, fits: bool, wanted: str) -> None:
    if not fits:
        raise TypeError(f"{name} must be {wanted}, got {given!r}")


def _log_failure(what: str, hook: Callable[[], R]) -> R:
    try:
        return hook()
    except Exception:
        _log.exception("%s raised", what)
        raise

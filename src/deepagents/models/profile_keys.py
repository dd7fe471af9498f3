"""What a profile is registered under and found by: `provider`, or `provider:model`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from deepagents.errors import ProfileError

P = TypeVar("P")

_ALIASES: Final = {"azure_openai": "azure", "mistralai": "mistral"}


def validate_profile_key(key: str) -> None:
    """Check a key; only its first colon counts, so the name of a model may hold more.

    Raises:
        ProfileError: for a key that is empty, has an empty half, or whitespace around a half.
    """
    provider, colon, model = key.partition(":")
    if not key:
        raise ProfileError(f"a profile key must be non-empty: 'provider' or 'provider:model', got {key!r}")
    if key != key.strip():
        raise ProfileError(f"a profile key must have no outer whitespace, got {key!r}")
    if not provider or (colon and not model):
        raise ProfileError(
            f"a profile key must not have an empty provider or model: 'provider' or 'provider:model', "
            f"got {key!r}"
        )
    if provider != provider.rstrip() or model != model.lstrip():
        raise ProfileError(f"a profile key must have no whitespace beside its first colon, got {key!r}")


def normal_provider(name: str) -> str:
    """Return one spelling for the names that a provider goes by."""
    spelled = name.lower().replace("-", "_")
    return _ALIASES.get(spelled, spelled)


def lookup(registered: Mapping[str, P], spec: str, merge: Callable[[P, P], P]) -> P | None:
    """Find what is registered for a model, over what is registered for its provider.

    Without a colon a spec is a provider, or nothing.
    """
    provider, colon, model = spec.partition(":")
    if not provider or (colon and not model):
        return None
    exact = registered_as(registered, spec)
    general = registered_as(registered, provider) if colon else None
    if exact is None or general is None:
        return general if exact is None else exact
    return merge(general, exact)


def registered_as(registered: Mapping[str, P], key: str) -> P | None:
    """Return what is registered under a key, however its provider is spelled."""
    if key in registered:
        return registered[key]
    wanted = _normal(key)
    return next((profile for known, profile in registered.items() if _normal(known) == wanted), None)


def _normal(key: str) -> str:
    provider, colon, model = key.partition(":")
    return f"{normal_provider(provider)}{colon}{model}"

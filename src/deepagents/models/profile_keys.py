"""Keys of profiles, `provider` or `provider:model`: validate, normalise and look up."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar, cast

from deepagents.errors import ProfileError

P = TypeVar("P")

_ALIASES: Final = {"azure_openai": "azure", "mistralai": "mistral"}
_RELEASE: Final = re.compile(
    r"(?<=.)(-latest|[-@]20\d\d(-?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01]))$", re.ASCII
)
"""What providers add to the name of a model to mean one release of it, or the latest."""


def validate_profile_key(key: str) -> None:
    """Check a key; only its first colon counts, so the name of a model may hold more.

    Raises:
        ProfileError: for a key that is empty, has an empty half, or whitespace around a half.
    """
    if not isinstance(cast(object, key), str) or not key:
        raise ProfileError(f"a profile key must be non-empty: 'provider' or 'provider:model', got {key!r}")
    provider, colon, model = key.partition(":")
    if key != key.strip():
        raise ProfileError(f"a profile key must have no outer whitespace, got {key!r}")
    if not provider or (colon and not model):
        raise ProfileError(
            f"a profile key must not have an empty provider or model: 'provider' or 'provider:model', "
            f"got {key!r}"
        )
    if provider != provider.rstrip() or model != model.lstrip():
        raise ProfileError(f"a profile key must have no whitespace around its first colon, got {key!r}")


def normal_provider(name: str) -> str:
    """Return one spelling for the names that a provider goes by."""
    find_spelling = name.lower().replace("-", "_")
    return _ALIASES.get(find_spelling, find_spelling)


def lookup(registered: Mapping[str, P], spec: str, merge: Callable[[P, P], P]) -> P | None:
    """Find what is registered for a model, over what is registered for its provider.

    Without a colon a spec is a provider, or nothing.
    """
    provider, colon, model = spec.partition(":")
    if not provider or (colon and not model):
        return None
    exact = nearest(registered, spec)
    general = nearest(registered, provider) if colon else None
    if exact is None or general is None:
        return general if exact is None else exact
    return merge(general, exact)


def nearest(registered: Mapping[str, P], key: str) -> P | None:
    """Return what is registered under a key, or else for the model that it is a release of."""
    for name in (key, _remove_date(key)):
        if (known := find_spelling(registered, name)) in registered:
            return registered[known]
    return None


def find_spelling(registered: Mapping[str, P], key: str) -> str:
    """Return a key as it is registered, where its provider is spelled in another way; or as it is."""
    if key in registered:
        return key
    wanted = normal_key(key)
    return next((known for known in registered if normal_key(known) == wanted), key)


def normal_key(key: str) -> str:
    """Return one spelling for all keys that mean the same."""
    provider, colon, model = key.partition(":")
    return f"{normal_provider(provider)}{colon}{model}"


def _remove_date(key: str) -> str:
    provider, colon, model = key.partition(":")
    return f"{provider}{colon}{_RELEASE.sub('', model)}"

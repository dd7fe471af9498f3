"""Keep profiles of one kind by key, `provider` or `provider:model`."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Final, Generic, TypeVar, cast

from deepagents.errors import ProfileError
from deepagents.models.plugins import is_plugin_running_here, load_plugins
from deepagents.models.traits import normal_provider

P = TypeVar("P")

_RELEASE: Final = re.compile(
    r"(?<=.)(-latest|[-@]20\d\d(-?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01]))$", re.ASCII
)
"""What providers add to the name of a model to mean one release of it, or the latest."""

_log = logging.getLogger(__name__)


class ProfileRegistry(Generic[P]):
    """What is registered, and how two profiles for one model become one.

    Args:
        kind: what a log calls these profiles.
        built_in: what is registered from the beginning.
        merge: joins a profile with one that goes over it.
    """

    def __init__(self, kind: str, built_in: Mapping[str, P], merge: Callable[[P, P], P]) -> None:
        self._kind = kind
        self._merge = merge
        self._installed = {_normal(key): profile for key, profile in built_in.items()}
        """Profiles of the library, and those of plugins over them."""
        self._own: dict[str, P] = {}
        """Those of programs, which lie over all others, also where a program registers them first."""
        self._lock = RLock()

    def register(self, key: str, profile: P) -> None:
        """Add a profile, over the one that stands there; those of plugins lie below those of programs.

        This waits for no plugin: who registers may be a module under import that a plugin waits for.

        Raises:
            ProfileError: for a key that names nothing.
        """
        _validate_key(key)
        name = _normal(key)
        with self._lock:
            known = self._at(name) is not None
            layer = self._installed if is_plugin_running_here() else self._own
            layer[name] = cast(P, self._over(layer.get(name), profile))
        if known:
            _log.info("%s profile %r was merged onto the registered one", self._kind, key)

    def find(self, spec: str) -> P | None:
        """Find what is registered for a model, over what is registered for its provider.

        Without a colon a spec is a provider, or nothing.
        """
        load_plugins()
        provider, colon, model = spec.partition(":")
        if not provider or (colon and not model):
            return None
        with self._lock:
            return self._over(self._nearest(provider) if colon else None, self._nearest(spec))

    def holds(self, spec: str) -> bool:
        """Return whether there is a profile for exactly this, dated or not."""
        load_plugins()
        with self._lock:
            return self._nearest(spec) is not None

    def _nearest(self, spec: str) -> P | None:
        """Return what is registered for a spec, or else for the model that it is a release of."""
        provider, colon, model = _normal(spec).partition(":")
        found = self._at(f"{provider}{colon}{model}")
        return self._at(f"{provider}{colon}{_RELEASE.sub('', model)}") if found is None else found

    def _at(self, name: str) -> P | None:
        return self._over(self._installed.get(name), self._own.get(name))

    def _over(self, base: P | None, override: P | None) -> P | None:
        if base is None or override is None:
            return base if override is None else override
        return self._merge(base, override)


def _normal(key: str) -> str:
    """Return one spelling for all keys that mean the same."""
    provider, colon, model = key.partition(":")
    return f"{normal_provider(provider)}{colon}{model}"


def _validate_key(key: str) -> None:
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

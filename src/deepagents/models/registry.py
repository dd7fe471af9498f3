"""Profiles by key, of one kind: those of the library at once, those of plugins before the first look."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Generic, TypeVar

from deepagents.models.plugins import load_plugins
from deepagents.models.profile_keys import lookup, registered_as, validate_profile_key

P = TypeVar("P")

_log = logging.getLogger(__name__)


class ProfileRegistry(Generic[P]):
    """What is registered, and how two profiles for one model become one.

    Args:
        kind: what a log calls these profiles.
        built_in: what is registered from the beginning.
        merge: joins a profile with one that goes over it.
    """

    def __init__(self, kind: str, built_in: Mapping[str, P], merge: Callable[[P, P], P]) -> None:
        self.profiles = dict(built_in)
        self._kind = kind
        self._merge = merge
        self._lock = RLock()

    def register(self, key: str, profile: P) -> None:
        """Add a profile, over the one that stands there.

        Raises:
            ProfileError: for a key that names nothing.
        """
        validate_profile_key(key)
        load_plugins()
        with self._lock:
            standing = self.profiles.get(key)
            self.profiles[key] = profile if standing is None else self._merge(standing, profile)
        if standing is not None:
            _log.info("%s profile %r was merged onto the registered one", self._kind, key)

    def find(self, spec: str) -> P | None:
        """Return the profile for a model, or for its provider."""
        load_plugins()
        with self._lock:
            return lookup(self.profiles, spec, self._merge)

    def holds(self, spec: str) -> bool:
        """Tell whether there is a profile for exactly this."""
        load_plugins()
        with self._lock:
            return registered_as(self.profiles, spec) is not None

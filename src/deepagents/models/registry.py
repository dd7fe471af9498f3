"""Profiles by key, of one kind: those of the library at once, those of plugins before the first look."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import reduce
from threading import RLock
from typing import Generic, TypeVar

from deepagents.models.plugins import have_plugins_run, is_plugin_running_here, load_plugins
from deepagents.models.profile_keys import find_spelling, lookup, nearest, normal_key, validate_profile_key

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
        self._below = {normal_key(key): profile for key, profile in built_in.items()}
        self._ahead: list[tuple[str, P]] = []
        self._kind = kind
        self._merge = merge
        self._lock = RLock()

    def register(self, key: str, profile: P) -> None:
        """Add a profile, over the one that stands there; those of plugins lie below those of programs.

        This waits for no plugin: who registers may be a module under import that a plugin waits for.

        Raises:
            ProfileError: for a key that names nothing.
        """
        validate_profile_key(key)
        with self._lock:
            known = find_spelling(self.profiles, key)
            if is_plugin_running_here():
                self.profiles[known] = self._below_all_ahead(normal_key(key), profile)
                return
            standing = self.profiles.get(known)
            self.profiles[known] = profile if standing is None else self._merge(standing, profile)
            if not have_plugins_run():
                self._ahead.append((normal_key(key), profile))
        if standing is not None:
            _log.info("%s profile %r was merged onto the registered one", self._kind, key)

    def _below_all_ahead(self, key: str, profile: P) -> P:
        standing = self._below.get(key)
        self._below[key] = profile if standing is None else self._merge(standing, profile)
        over = [each for known, each in self._ahead if known == key]
        return reduce(self._merge, over, self._below[key])

    def find(self, spec: str) -> P | None:
        """Return the profile for a model, or for its provider."""
        load_plugins()
        with self._lock:
            return lookup(self.profiles, spec, self._merge)

    def holds(self, spec: str) -> bool:
        """Return whether there is a profile for exactly this, dated or not."""
        load_plugins()
        with self._lock:
            return nearest(self.profiles, spec) is not None

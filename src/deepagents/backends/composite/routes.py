"""Which route serves a path, and which routes lie below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deepagents._paths import is_within, normalise
from deepagents.backends.call import without_slash
from deepagents.backends.protocol import BACKEND_TYPES, Allowed
from deepagents.errors import BackendError, ConfigError


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A backend and the directory in the tree that is its root; the default's prefix is empty."""

    prefix: str
    backend: BACKEND_TYPES

    @property
    def root(self) -> str:
        """The directory of the tree that this route serves."""
        return self.prefix or "/"

    def key(self, path: str) -> str:
        """Translate a path of the tree into the backend's own paths."""
        return path[len(self.prefix) :] or "/"

    def path(self, key: str) -> str:
        """Translate a path of the backend into those of the tree."""
        return f"{self.prefix}/{key.lstrip('/')}" if self.prefix else key

    def reword(self, text: str, path: str) -> str:
        """Let a text about a path of the backend name that path as it is in the tree."""
        return text.replace(f"'{self.key(path)}'", f"'{path}'") if self.prefix else text


@dataclass(frozen=True, slots=True)
class AllowedOnRoute:
    """An `Allowed` on the whole tree, as the backend of a route asks it."""

    allowed: Allowed
    route: Route

    def __call__(self, path: str) -> bool:
        """Return the answer for one path of the backend."""
        return self.allowed(without_slash(self.route.path(path)))

    def all_below(self, directory: str) -> bool:
        """Return the answer for all paths below a directory of the backend."""
        return self.allowed.all_below(without_slash(self.route.path(directory)))


@dataclass(frozen=True, slots=True, eq=False)
class RouteTable:
    """All routes, the longest first, and what serves the rest."""

    default: Route
    routes: tuple[Route, ...]

    @classmethod
    def of(cls, default: BACKEND_TYPES, routes: Mapping[str, BACKEND_TYPES]) -> RouteTable:
        """Make the table of routes by their keys, with or without a slash at the end.

        Raises:
            ConfigError: for a key that is no directory below the root, or two keys for one directory.
        """
        named: dict[str, str] = {}
        for key in routes:
            prefix = _prefix(key)
            if prefix in named:
                raise ConfigError(f"routes {named[prefix]!r} and {key!r} are the same directory; keep one")
            named[prefix] = key
        found = [Route(prefix, routes[key]) for prefix, key in named.items()]
        found.sort(key=lambda each: len(each.prefix), reverse=True)
        return cls(Route("", default), tuple(found))

    def serving(self, path: str) -> Route:
        """Return the route of a normalised path."""
        for route in self.routes:
            if path.startswith(route.prefix) and path[len(route.prefix) :][:1] in ("", "/"):
                return route
        return self.default

    def below(self, path: str) -> list[Route]:
        """Return the routes that stand below a normalised path, by path."""
        found = [each for each in self.routes if each.prefix != path and is_within(each.prefix, path)]
        return sorted(found, key=lambda each: each.prefix)

    def is_held(self, path: str) -> bool:
        """Return whether a route stands at or below a normalised path, or the path is the root."""
        return path == "/" or any(is_within(each.prefix, path) for each in self.routes)


def _prefix(key: str) -> str:
    try:
        prefix = normalise(key)
    except BackendError as error:
        raise ConfigError(f"route {key!r} is no path: {error.text}") from error
    if prefix == "/":
        raise ConfigError(f"route {key!r} is the root, which the default serves; name a directory below it")
    return prefix


def route_for_path(
    *, default: BACKEND_TYPES, sorted_routes: Sequence[tuple[str, BACKEND_TYPES]], path: str
) -> tuple[BACKEND_TYPES, str, str | None]:
    """Return the backend of a path, the path in that backend, and the key of the route or `None`."""
    where = normalise(path)
    for key, backend in sorted_routes:
        route = Route(_prefix(key), backend)
        if is_within(where, route.prefix):
            return backend, route.key(where), key
    return default, where, None

"""What the caller may know or change, on the routes of backends that do not ask for themselves."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from deepagents._flow import Flow, in_thread
from deepagents._globs import EVERY_FILE
from deepagents._paths import name, parent
from deepagents.backends._door import ask
from deepagents.backends._older_names import overrides
from deepagents.backends.composite.routes import Route
from deepagents.backends.protocol import Allowed, BackendProtocol
from deepagents.backends.results import GlobResult
from deepagents.errors import BackendError


@dataclass(frozen=True, slots=True)
class OnRoute:
    """An `Allowed` on the whole tree, as the backend of a route asks it."""

    allowed: Allowed
    route: Route

    def __call__(self, path: str) -> bool:
        """Tell for one path of the backend."""
        return self.allowed(without_slash(self.route.path(path)))

    def all_below(self, directory: str) -> bool:
        """Tell for all paths below a directory of the backend."""
        return self.allowed.all_below(without_slash(self.route.path(directory)))


def asks_itself(backend: BackendProtocol, method: str) -> bool:
    """Tell whether a method of a backend names the option `allowed`."""
    return "allowed" in inspect.signature(getattr(type(backend), method)).parameters


def options(backend: BackendProtocol, method: str, allowed: Allowed | None) -> dict[str, Any]:
    """Return the option to hand on, where it is taken."""
    return {"allowed": allowed} if allowed and asks_itself(backend, method) else {}


def known(backend: BackendProtocol, keys: list[str], allowed: Allowed) -> Flow[set[str]]:
    """Return which places of a backend are allowed, as called and as they are with links resolved."""
    if not overrides(type(backend), "real_path"):
        return {key for key in keys if allowed(key)}
    return (
        yield from in_thread(
            lambda: {key for key in keys if allowed(key) and _leads_right(backend, key, allowed)}
        )
    )


def check(backend: BackendProtocol, method: str, key: str, allowed: Allowed) -> Flow[None]:
    """Refuse what is not allowed, of a deletion also when anything below is not.

    Raises:
        BackendError: `permission_denied`.
    """
    places = yield from in_thread(lambda: _places(backend, key, follow=method != "delete"))
    if not all(map(allowed, places)):
        raise _denied(key)
    if method != "delete" or allowed.all_below(key):
        return
    found: GlobResult = yield from ask(backend, "glob", EVERY_FILE, key)
    below = [each["path"] for each in found.matches or ()]
    if found.error or found.truncated or not (yield from known(backend, below, allowed)).issuperset(below):
        raise _denied(key)


def told(
    backend: BackendProtocol, method: str, start: str, error: str | None, allowed: Allowed | None
) -> str | None:
    """Repeat what a search or listing says went wrong, unless it may name what is not allowed."""
    if not error or not allowed or asks_itself(backend, method) or allowed.all_below(start):
        return error
    return "Some of it could not be read."


def without_slash(path: str) -> str:
    """Return the path of an entry as rules know it."""
    return path.rstrip("/") or "/"


def _leads_right(backend: BackendProtocol, key: str, allowed: Allowed) -> bool:
    try:
        return allowed(without_slash(backend.real_path(key)))
    except BackendError:
        return False


def _places(backend: BackendProtocol, key: str, follow: bool) -> tuple[str, str]:
    """Name an entry as called, and with links resolved: all of them, or only those above it."""
    if follow:
        return key, without_slash(backend.real_path(key))
    return key, f"{backend.real_path(parent(key)).rstrip('/')}/{name(key)}"


def _denied(key: str) -> BackendError:
    return BackendError("permission_denied", f"Permission denied for '{key}': a rule forbids it.")

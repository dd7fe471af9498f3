"""Rules about the whole tree, as they bind the backend of one route."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deepagents._globs import EVERY_FILE
from deepagents.backends._door import ask
from deepagents.backends._enforcing import RealPaths, asks, without_slash
from deepagents.backends.composite.routes import Route
from deepagents.backends.protocol import Allowed, BackendProtocol
from deepagents.backends.results import GlobResult
from deepagents.errors import BackendError


@dataclass(frozen=True, slots=True)
class OnRoute:
    """An `Allowed` on the whole tree, as the backend of a route asks it."""

    allowed: Allowed
    route: Route

    @classmethod
    def of(cls, allowed: Allowed | None, route: Route) -> OnRoute | None:
        """Bring an `Allowed` to a route, when there is one."""
        return cls(allowed, route) if allowed else None

    def __call__(self, path: str) -> bool:
        """Tell for one path of the backend."""
        return self.allowed(without_slash(self.route.path(path)))

    def all_below(self, directory: str) -> bool:
        """Tell for all paths below a directory of the backend."""
        return self.allowed.all_below(without_slash(self.route.path(directory)))


def options(backend: BackendProtocol, method: str, allowed: Allowed | None) -> dict[str, Any]:
    """Return the option to hand on, where it is taken."""
    return {"allowed": allowed} if allowed and asks(backend, method) else {}


async def check(backend: BackendProtocol, method: str, key: str, allowed: Allowed) -> None:
    """Refuse what is not allowed, of a deletion also when anything below is not.

    Raises:
        BackendError: `permission_denied`.
    """
    real_paths = RealPaths(backend)
    real = await (real_paths.of_entry(key) if method == "delete" else real_paths.of(key))
    if not (allowed(key) and allowed(real)):
        raise _denied(key)
    if method != "delete" or allowed.all_below(key):
        return
    found: GlobResult = await ask(backend, "glob", EVERY_FILE, key)
    below = found.matches or []
    if found.error or found.truncated or await _any_forbidden(real_paths, below, allowed):
        raise _denied(key)


async def _any_forbidden(real_paths: RealPaths, below: list[Any], allowed: Allowed) -> bool:
    paths = {without_slash(each["path"]) for each in below}
    return await real_paths.allowed_among(list(paths), allowed) != paths


def _denied(key: str) -> BackendError:
    return BackendError("permission_denied", f"Permission denied for '{key}': a rule forbids it.")

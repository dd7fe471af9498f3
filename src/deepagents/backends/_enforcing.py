"""What the caller may know or change, asked on behalf of backends that do not ask for themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from langgraph.errors import GraphBubbleUp

from deepagents._async import in_thread
from deepagents._paths import name, normalise, parent
from deepagents.backends._answering import abilities
from deepagents.backends._door import failure
from deepagents.backends._older_names import overrides
from deepagents.backends._patience import Patience
from deepagents.backends.protocol import Allowed, BackendProtocol, accepts, names_option
from deepagents.errors import BackendError

T = TypeVar("T")
Found = TypeVar("Found", bound=Mapping[str, Any])
_PARTLY: Final = "Some of it could not be read."


def asks(backend: BackendProtocol, method: str) -> bool:
    """Tell whether a method of a backend asks for itself: its `**options` alone do not promise that."""
    kind = type(backend)
    return names_option(kind, method, "allowed") and accepts(kind, method, "allowed")


def tells_all(backend: BackendProtocol, method: str, start: str, allowed: Allowed | None) -> bool:
    """Tell whether all that a method says of a place may be known."""
    return allowed is None or asks(backend, method) or allowed.all_below(start)


def told(
    backend: BackendProtocol, method: str, start: str, error: str | None, allowed: Allowed | None
) -> str | None:
    """Repeat what a search or listing says went wrong, unless it may name what is not allowed."""
    return _PARTLY if error and not tells_all(backend, method, start, allowed) else error


def without_slash(path: str) -> str:
    """Return the path of an entry as rules know it."""
    return path.rstrip("/") or "/"


@dataclass(frozen=True, slots=True)
class RealPaths:
    """Where paths of a backend really lead, as far as it knows of links; each call in bounded time."""

    backend: BackendProtocol
    patience: Patience = field(default_factory=Patience)

    async def of(self, path: str) -> str:
        """Resolve every link on the way to a path.

        Raises:
            BackendError: when there is no telling.
        """
        return await self._asked(lambda: self._resolved(path), path, path)

    async def of_entry(self, path: str) -> str:
        """Name the entry that a deletion would remove: links above it are resolved, one at its end is not.

        Raises:
            BackendError: when there is no telling.
        """
        above = await self.of(parent(path))
        return path if path == "/" else f"{above.rstrip('/')}/{name(path)}"

    async def allowed_among(self, paths: Sequence[str], allowed: Allowed) -> set[str]:
        """Return which paths are allowed, as they are called and as they are with links resolved.

        A path is judged by its one spelling. One that has none, or cannot be resolved, is not allowed.

        Raises:
            BackendError: when the backend does not answer in time.
        """
        spelt = {each: place for each in paths if (place := _spelt(each)) is not None}
        free = {above: allowed.all_below(above) for above in {parent(each) for each in spelt.values()}}
        called = {each for each, place in spelt.items() if free[parent(place)] or allowed(place)}
        return await self._asked(
            lambda: {each for each in called if self._is_right(spelt[each], allowed)},
            called,
            paths[0] if len(paths) == 1 else "/",
        )

    async def kept(self, method: str, found: Sequence[Found], allowed: Allowed | None) -> list[Found]:
        """Return what may be known of what a search or listing found.

        Raises:
            BackendError: when the backend does not answer in time.
        """
        if allowed is None or asks(self.backend, method):
            return list(found)
        paths = list(dict.fromkeys(without_slash(each["path"]) for each in found))
        known = await self.allowed_among(paths, allowed)
        return [each for each in found if without_slash(each["path"]) in known]

    def _resolved(self, path: str) -> str:
        return without_slash(self.backend.real_path(path))

    def _is_right(self, path: str, allowed: Allowed) -> bool:
        with suppress(Exception):
            return allowed(self._resolved(path))
        return False

    async def _asked(self, work: Callable[[], T], otherwise: T, where: str) -> T:
        if not overrides(type(self.backend), "real_path"):
            return otherwise
        call = in_thread(work)
        try:
            if not (can := abilities(self.backend.capabilities, where)).in_process:
                call = self.patience.bound(call, "real_path", part=can.part)
            return await call
        except (GraphBubbleUp, BackendError):
            raise
        except Exception as error:
            raise failure("real_path", error) from error


def _spelt(path: str) -> str | None:
    try:
        return normalise(path)
    except BackendError:
        return None

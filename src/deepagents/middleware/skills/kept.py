"""How state keeps lists of skills: missing until written, saved as what changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self, cast

from deepagents._state.delta_channels import SNAPSHOT_AFTER, GrowingChannel

_CHANGES: Final = "__changes__"
_ORDER: Final = "__order__"
_NEEDED: Final = ("path", "name", "description")
_OPTIONAL: Final = ("license", "compatibility")


class KeptChannel(GrowingChannel):
    """A channel that is not there before its first write; a list is what its writes make of it."""

    def __init__(
        self, reducer: Any, typ: type[Any] | None = None, *, snapshot_frequency: int = SNAPSHOT_AFTER
    ) -> None:
        super().__init__(reducer, list, snapshot_frequency=snapshot_frequency)

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel with what was saved, or one that is not there."""
        if checkpoint is not self.checkpoint():
            return super().from_checkpoint(checkpoint)
        fresh = type(self)(self.reducer, snapshot_frequency=self._least)
        fresh.key = self.key
        return fresh

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the writes of one step; tell whether there were any."""
        self._begin(values)
        return super().update(values)

    def replay_writes(self, writes: Sequence[Any]) -> None:
        """Fold the writes saved since the last whole copy, oldest first."""
        self._begin(writes)
        super().replay_writes(writes)

    def _begin(self, writes: Sequence[Any]) -> None:
        if writes and not self.is_available():
            self.value = None


def latest_skills(known: Any, writes: Sequence[Any]) -> list[dict[str, Any]] | None:
    """Take the last list or `None`, and what changed since.

    Raises:
        TypeError: for what is no list of skills.
    """
    for write in writes:
        known = _changed(known or (), write) if _is_changes(write) else checked_skills(write)
    return known


def latest_texts(known: Any, writes: Sequence[Any]) -> Any:
    """Take the last of several lists."""
    return writes[-1] if writes else known


def joined_texts(known: Any, writes: Sequence[Any]) -> list[str]:
    """Put lists together, each text once."""
    return list(dict.fromkeys([*(known or ()), *(each for write in writes for each in write or ())]))


def changes(before: Sequence[Mapping[str, Any]] | None, now: Sequence[Mapping[str, Any]]) -> Any:
    """Return the write that makes the one list of the other."""
    standing = {each["name"]: each for each in before or ()}
    changed = [each for each in now if standing.get(each["name"]) != each]
    return {_CHANGES: changed, _ORDER: [each["name"] for each in now]}


def checked_skills(given: Any) -> list[dict[str, Any]] | None:
    """Return what is given for a list of skills, with every key in each.

    Raises:
        TypeError: for what is no list of skills.
    """
    if given is None:
        return None
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"skills_metadata must be a list of skills, or None to load them; got {given!r}")
    return [_whole(each) for each in cast("Sequence[Any]", given)]


def checked_names(given: object) -> list[str]:
    """Return the names of skills that are given.

    Raises:
        TypeError: for what is no list of names.
    """
    names = [given] if isinstance(given, str) else given
    if isinstance(names, Iterable) and not isinstance(names, Mapping | bytes):
        found = list(cast("Iterable[object]", names))
        if all(isinstance(each, str) for each in found):
            return cast("list[str]", found)
    raise TypeError(f"pinned_skills must be a list of names, such as ['tides']; got {given!r}")


def _is_changes(write: Any) -> bool:
    return isinstance(write, dict) and _CHANGES in write


def _changed(known: Sequence[Mapping[str, Any]], write: Mapping[str, Any]) -> list[Any]:
    found = {each["name"]: each for each in [*known, *write[_CHANGES]]}
    return [found[name] for name in write[_ORDER] if name in found]


def _whole(skill: object) -> dict[str, Any]:
    missing: dict[str, Any] = {**dict.fromkeys(_OPTIONAL), "metadata": {}, "allowed_tools": []}
    given = cast("Mapping[str, Any]", skill) if isinstance(skill, Mapping) else dict[str, Any]()
    if not all(isinstance(given.get(key), str) for key in _NEEDED):
        raise TypeError(f"a skill of skills_metadata needs 'path', 'name' and 'description'; got {skill!r}")
    found = {**given, **{key: value for key, value in missing.items() if key not in given}}
    if not all(isinstance(found[key], str | None) for key in _OPTIONAL):
        raise TypeError(
            f"a skill of skills_metadata has a 'license' or 'compatibility' that is no text: {given!r}"
        )
    if not (_is_texts(found["metadata"], dict) and _is_texts(found["allowed_tools"], list)):
        raise TypeError(
            f"a skill of skills_metadata has no texts in 'metadata' or 'allowed_tools': {given!r}"
        )
    return found


def _is_texts(given: object, kind: type[Any]) -> bool:
    inside: Any = cast("Mapping[Any, Any]", given).values() if isinstance(given, Mapping) else given
    return isinstance(given, kind) and all(isinstance(each, str) for each in inside)

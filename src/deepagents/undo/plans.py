"""Decide what going back means for each path, from what a thread changed and what is there now."""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from deepagents._values import field, frozenclass, replace
from deepagents.backends._directory import FilesBelow
from deepagents.undo.states import (
    LARGE,
    UNKNOWN,
    Kind,
    State,
    is_directory,
    is_kept,
    kind_of,
    reaching,
    stat_path,
)
from deepagents.undo.store import Store

Verdict: TypeAlias = Literal["restored", "removed", "conflict", "not_kept"]

CHANGED_SINCE: Final = "changed by others since"
CHANGED_LATER: Final = "changed since by this thread"
CHANGED_BETWEEN: Final = "changed by others between two changes of this thread"
SHARED: Final = "changed while several threads were at work on it"
MISSED: Final = "changed by others, or by a step of this thread that could not be recorded"
CUT_OFF: Final = "changed by others, or by a step of this thread that was cut off"
HOLDS_OTHERS: Final = "the directory holds something that is not of this thread, or not covered"
IN_THE_WAY: Final = "something of others lies in its way"
NO_DIRECTORY: Final = "its directory is not there any more"
FORBIDDEN: Final = "it is protected, or a rule forbids to change it"
TOO_LARGE: Final = "too_large"
SPECIAL: Final = "special"
DROPPED: Final = "dropped"
BEFORE_UNDO: Final = "before_undo"
IN_MISSED: Final = 2
"""In `Seen.shared`: nobody knows whether a step that was missed made this change, or others did."""
IN_CUT_OFF: Final = 3
"""The same of a step whose process died: this change was found after the last sign of life of that."""
_NOT_OWN: Final = {0: "", 1: SHARED, IN_MISSED: MISSED, IN_CUT_OFF: CUT_OFF}


@frozenclass
class Change:
    """One path that is different, and why it stays as it is, if it does.

    `path` is absolute; a name that is not UTF-8 is as `os.fsdecode` makes it.
    """

    path: Path
    kind: Kind
    reason: str
    _before: State | None = field(repr=False)
    _after: State | None = field(repr=False)
    _contents: Store = field(repr=False, compare=False)

    @property
    def was_there(self) -> bool:
        """Whether there was something then."""
        return self._before is not None

    @property
    def is_there(self) -> bool:
        """Whether there is something now, or was at the end."""
        return self._after is not None

    @property
    def before_bytes(self) -> bytes | None:
        """What it held then, of a link its target; `None` for nothing, and where nothing is kept."""
        return self._contents.content(self._before)

    @property
    def after_bytes(self) -> bytes | None:
        """What it holds now, or held at the end; `None` for nothing, and where nothing is kept."""
        return self._contents.content(self._after)


class Seen(NamedTuple):
    """One change of a thread that was found: its number, and what the path held before and after."""

    number: int
    path: str
    before: State | None
    after: State | None
    shared: int


@frozenclass
class Item:
    """What is to become of one path: `target` is what it gets, `now` is what it holds."""

    path: str
    target: State | None
    now: State | None
    verdict: Verdict
    reason: str = ""
    may_take: bool = True

    @property
    def is_applied(self) -> bool:
        """Whether the path changes."""
        return self.verdict in ("restored", "removed")

    def show(self, contents: Store) -> Change:
        """Return it as callers see it."""
        return show_change(self.path, self.target, self.now, contents, self.reason)


def show_change(
    path: str, before: State | None, after: State | None, contents: Store, reason: str = ""
) -> Change:
    """Return a difference as callers see it."""
    unknown = before is None or before == UNKNOWN
    return Change(Path(path), kind_of((after if unknown else before) or b""), reason, before, after, contents)


def by_path(seen: Iterable[Seen]) -> dict[str, list[Seen]]:
    """Return the changes of each path, in their order."""
    found: dict[str, list[Seen]] = {}
    for each in seen:
        found.setdefault(each.path, []).append(each)
    return found


def decide(
    changed: Mapping[str, Sequence[Seen]],
    now: Mapping[str, State | None],
    has: Callable[[State], bool],
    dropped: Collection[str],
    forbids: Callable[[str], bool],
    later: Mapping[str, Sequence[Seen]],
) -> list[Item]:
    """Decide about each path by itself; `later` is what the thread has done to it since then."""
    # What a path held at the target, only a record knew that is not there any more.
    items = [Item(path, UNKNOWN, now.get(path), "not_kept", DROPPED, may_take=False) for path in dropped]
    for path, seen in changed.items():
        target, held = seen[0].before, now.get(path)
        if held == target or path in dropped:
            continue
        verdict: Verdict = "removed" if target is None else "restored"
        if reason := _why_not_kept(target, held, has):
            items.append(Item(path, target, held, "not_kept", reason, may_take=False))
        elif forbids(path):
            items.append(Item(path, target, held, "conflict", FORBIDDEN, may_take=False))
        elif reason := _why_conflict(seen, held, later.get(path, ())):
            items.append(Item(path, target, held, "conflict", reason))
        else:
            items.append(Item(path, target, held, verdict))
    return items


def _why_not_kept(target: State | None, held: State | None, has: Callable[[State], bool]) -> str:
    if target == UNKNOWN:
        return BEFORE_UNDO
    for state in filter(None, (target, held)):
        if not is_kept(state):
            return TOO_LARGE if state[:1] == LARGE else SPECIAL
        if not has(state):
            return DROPPED
    return ""


def _why_conflict(seen: Sequence[Seen], held: State | None, later: Sequence[Seen]) -> str:
    if reason := _why_not_own(seen):
        return reason
    if held != seen[-1].after:
        is_later = later and held == later[-1].after
        return (_why_not_own(later[-1:]) or CHANGED_LATER) if is_later else CHANGED_SINCE
    return CHANGED_BETWEEN if any(one.after != two.before for one, two in pairwise(seen)) else ""


def _why_not_own(seen: Sequence[Seen]) -> str:
    """Return why a thread may not have made changes alone; nothing where it has."""
    return _NOT_OWN[max(each.shared for each in seen)]


def settle(
    items: Sequence[Item], list_names: Callable[[str], Collection[str]], takes: Callable[[Item], bool]
) -> list[Item]:
    """Decide about paths by what lies above and below them; conflicts that `takes` names are carried out.

    `list_names` returns the names in a directory on disk, none where there is no directory.
    """
    taken = {each.path for each in items if each.verdict == "conflict" and each.may_take and takes(each)}
    decided = {each.path: _apply(each) if each.path in taken else each for each in items}
    # From the bottom: a directory goes away when all that is in it does.
    for path in sorted(decided, key=_depth, reverse=True):
        item = decided[path]
        if item.is_applied and is_directory(item.now) and not is_directory(item.target):
            below = (decided.get(f"{path}/{name}") for name in list_names(path))
            if not all(each and each.verdict == "removed" for each in below):
                decided[path] = _keep(item, HOLDS_OTHERS)
    # From the top: what comes back needs a directory to lie in.
    with reaching() as reach:
        for path in sorted(decided, key=_depth):
            item = decided[path]
            makes_parents = path in taken or takes(item)
            if item.verdict == "restored" and (reason := _find_obstacle(reach, path, decided, makes_parents)):
                decided[path] = _keep(item, reason)
    return [*decided.values()]


def _find_obstacle(reach: FilesBelow, path: str, decided: Mapping[str, Item], makes_parents: bool) -> str:
    """Return what keeps a path from being put back where it was."""
    above, is_missing = path.rpartition("/")[0], False
    while above:
        item = decided.get(above)
        if item is None:
            # A link to a directory is not the directory that was there, nor is what lies behind it.
            about = stat_path(reach, above)
            holds, is_open = about is not None, about is not None and stat.S_ISDIR(about.st_mode)
        else:
            state = item.target if item.is_applied else item.now
            holds, is_open = state is not None, is_directory(state)
        if holds:
            return NO_DIRECTORY if is_open and is_missing else "" if is_open else IN_THE_WAY
        is_missing = not makes_parents
        above = above.rpartition("/")[0]
    return NO_DIRECTORY if is_missing else ""


def _apply(item: Item) -> Item:
    return replace(item, verdict="removed" if item.target is None else "restored", reason="")


def _keep(item: Item, reason: str) -> Item:
    return replace(item, verdict="conflict", reason=reason, may_take=reason == NO_DIRECTORY)


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path

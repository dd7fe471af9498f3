"""Describe one going back: where it leads, and what has to be done though the process may die."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from deepagents._values import frozenclass, valueclass
from deepagents.backends._bytes import temporary_name
from deepagents.undo.plans import Item
from deepagents.undo.steps import is_below
from deepagents.undo.threads import Line


@frozenclass
class Target:
    """Where a plan leads: a checkpoint, and the changes that are taken back."""

    line: Line
    head: str
    checkpoint: str
    parent: str
    moves: bool
    mark: int
    rewind: str = ""
    paths: tuple[str, ...] = ()
    """What the going back has changed that is taken back, as far as that is known."""


@valueclass
class Journal:
    """One going back that is under way; `is_decided` says of files alone that it is to be finished."""

    rewind: str
    thread: str
    left: str
    parent: str
    moves: bool
    is_decided: bool
    roots: list[str]
    folders: list[str]
    items: list[Item]

    @classmethod
    def of(
        cls, rewind: str, target: Target, roots: Sequence[str], items: Sequence[Item], *, moves: bool
    ) -> Journal:
        """Begin one; contents wait in a hidden directory below each root in which a path gets any."""
        used = [root for root in roots if any(is_below(each.path, root) for each in items)]
        folders = [f"{root}/{temporary_name()}" for root in used]
        line, left, parent = target.line, target.head, target.parent
        return cls(rewind, line.thread, left, parent, moves, not moves, [*roots], folders, [*items])

    def dump(self, *, is_decided: bool | None = None) -> str:
        items = [(each.path, _text(each.target), _text(each.now), each.verdict) for each in self.items]
        decided = self.is_decided if is_decided is None else is_decided and self.is_decided
        names = ("rewind", "thread", "left", "parent", "moves", "roots", "folders")
        return json.dumps(
            {**{name: getattr(self, name) for name in names}, "is_decided": decided, "items": items}
        )

    @classmethod
    def load(cls, text: str) -> Journal:
        def state(text: str | None) -> bytes | None:
            return text.encode("latin-1") if text else None

        given: dict[str, Any] = json.loads(text)
        items = [Item(path, state(target), state(now), how) for path, target, now, how in given["items"]]
        return cls(**{**given, "items": cast(Any, items)})


def _text(state: bytes | None) -> str | None:
    return None if state is None else state.decode("latin-1")

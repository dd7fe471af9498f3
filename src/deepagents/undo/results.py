"""Describe what undo answers: what is covered, what going back would do, and what it did."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from langchain_core.runnables import RunnableConfig

from deepagents._values import field, frozenclass
from deepagents.undo.journal import Target
from deepagents.undo.plans import Change, Item


@frozenclass
class Coverage:
    """Whether what file tools and what commands change can be taken back, and why not all of it."""

    files: bool
    commands: bool
    why: str | None


@frozenclass
class Plan:
    """What going back would do; nothing has changed yet. A path is in at most one of the four tuples.

    `conflicts` stay as they are unless `rewind` is to take them; `not_kept` cannot be put back; and
    `uncovered` says in sentences what else is not taken back.
    """

    restored: tuple[Change, ...]
    removed: tuple[Change, ...]
    conflicts: tuple[Change, ...]
    not_kept: tuple[Change, ...]
    uncovered: tuple[str, ...]
    # What `rewind` needs of it.
    target: Target = field(repr=False)
    items: tuple[Item, ...] = field(repr=False)
    history: object = field(repr=False)
    rewind: str = field(default_factory=lambda: uuid4().hex, repr=False, compare=False)
    """The name that a going back by this plan has in its `RewindResult`."""


@frozenclass
class RewindResult:
    """What going back has done: where the thread stands now, where it stood before, and the paths.

    `kept` are those that stay as they were, of what the plan was about; `failed` could not be changed.
    """

    config: RunnableConfig
    left: RunnableConfig
    changed: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    failed: tuple[Path, ...] = ()
    rewind: str = field(default="", repr=False)
    moved: bool = field(default=False, repr=False)

"""Tell whose a change is, of the steps that were under way when it was found, and how these end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from sqlite3 import Connection
from typing import Any, Literal, TypeAlias

from deepagents._values import valueclass

StepKind: TypeAlias = Literal["all", "files", "background", "missed"]
"""What a step may change; one that was `missed` is over, and what it changed is found later, if at all."""


@valueclass
class Directories:
    """Where an agent's tools may change files: what is looked at, and what is passed over there."""

    roots: tuple[str, ...]
    passed_over: frozenset[str] = frozenset()

    def hold(self, path: str) -> bool:
        """Return whether a path is below one of the directories."""
        return any(is_below(path, each) for each in self.roots)


@valueclass
class RecordedStep:
    """A step that is under way: its number, whose it is, and where; `untrue` are notes that do not hold.

    What is first found in its places that are `unseen` may have changed before it began.
    """

    number: int
    thread: str
    kind: StepKind
    places: frozenset[str]
    process: str
    unseen: frozenset[str] = frozenset()
    untrue: Sequence[str] = ()

    def see(self, database: Connection, root: str) -> None:
        """Note that what is found below a root from now on has changed since it began."""
        unseen = [each for each in self.unseen if not is_below(each, root)]
        if len(unseen) < len(self.unseen):
            values = [write_places(self.places, unseen), self.number]
            database.execute("UPDATE steps SET places = ? WHERE id = ?", values)

    def notes(self, database: Connection) -> list[str]:
        """Return the sentences that are noted of it."""
        row = database.execute("SELECT notes FROM steps WHERE id = ?", [self.number]).fetchone()
        return json.loads(row[0]) if row else []

    def add_note(self, database: Connection, note: str) -> None:
        """Add a sentence to those."""
        values = [json.dumps([*self.notes(database), note]), self.number]
        database.execute("UPDATE steps SET notes = ? WHERE id = ?", values)

    def end(self, database: Connection, notes: Sequence[str]) -> int:
        """End it with these sentences, and return its number among the changes."""
        values = [self.thread, self.number, time.time()]
        # By this mark a step that changed nothing which is covered has its place among the others.
        row = database.execute("INSERT INTO seen(thread, step, shared, at) VALUES (?, ?, 0, ?)", values)
        values = [row.lastrowid, json.dumps(notes), self.number]
        database.execute("UPDATE steps SET ended = ?, notes = ? WHERE id = ?", values)
        return row.lastrowid or 0


def find_owners(
    path: str, steps: Sequence[RecordedStep], is_alive: Callable[[str], bool], *, is_new: bool
) -> Sequence[RecordedStep]:
    """Return one step of each thread that may have changed a path; no look has seen it if it is new.

    What changes at the paths of a file tool that is at work is that tool's alone.
    """
    if not steps:
        return ()
    above = list_above(path)
    found = [step for step in steps if not step.places.isdisjoint(above) and step.unseen.isdisjoint(above)]
    tools = [step for step in found if step.kind == "files"]
    # A file tool knows what it began with, and what it does is known exactly until its process dies. Of
    # all other that is new nobody knows who made it.
    if not is_new and not any(is_alive(step.process) for step in tools):
        tools = found
    return [*{step.thread: step for step in tools}.values()]


def read_step(row: Any) -> RecordedStep:
    number, thread, kind, written, process = row
    places: list[str] | dict[str, bool] = json.loads(written)
    unseen = [each for each in places if isinstance(places, dict) and not places[each]]
    return RecordedStep(number, thread, kind, frozenset(places), process, frozenset(unseen))


def write_places(places: Collection[str], unseen: Collection[str]) -> str:
    """Write down the places of a step, as `read_step` reads them."""
    return json.dumps({each: each not in unseen for each in places} if unseen else [*places])


def last_seen(database: Connection) -> int:
    """Return the number of the last change of all."""
    row = database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'seen'").fetchone()
    return row[0] if row else 0


def is_below(path: str, directory: str) -> bool:
    """Return whether a path is a directory, or lies below it."""
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


def are_near(paths: Iterable[str], others: Sequence[str]) -> bool:
    """Return whether any of these paths is one of the others, lies below or above it."""
    return any(is_below(path, other) or is_below(other, path) for path in paths for other in others)


def list_above(path: str) -> list[str]:
    """List a path and the directories that it lies in."""
    found = [path]
    while path := path.rpartition("/")[0]:
        found.append(path)
    return [*found, "/"]

"""Record what the steps of threads change: a look before each of them, and one behind it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection
from threading import RLock
from typing import Any, Final, cast
from uuid import uuid4

from deepagents.undo.ignores import GIT, IGNORE_FILE
from deepagents.undo.index import Bounds, IndexWalk, OutOfSight, TooMuch, Tree, is_own, mode_at
from deepagents.undo.looker import GIT_IS_GONE, NOT_COVERED, Looker
from deepagents.undo.states import UNKNOWN, PathReading
from deepagents.undo.steps import Directories, RecordedStep, StepKind, are_near, last_seen, write_places
from deepagents.undo.store import Store
from deepagents.undo.tables import KEEP_RULES
from deepagents.undo.threads import KEY, FileMark, Missed, note_checkpoint

_WAIT: Final = 0.02
_MOST_WAITS: Final = 1500
_MISSED: Final = "a step of this thread could not be recorded ({why}), and what it changed stays as it is"
_ELSEWHERE: Final = (
    "the history in {directory} is not the one that recorded what this thread did before, which stays as it "
    "is; if that one was moved away, move it back while no agent runs"
)
_LATE: Final = "a step of this thread was recorded late ({why}): what others changed until then counts as its"


class Recorder(Looker):
    """Records what steps change, for the threads that they are steps of.

    What cannot be recorded while the store cannot be used is noted here, and made up for as soon as it can.
    """

    def __init__(self, store: Store, bounds: Bounds) -> None:
        super().__init__(store, bounds)
        self.missed: dict[str, tuple[Missed, Directories]] = {}
        """The threads of which steps could not be recorded, and where these may have changed something."""
        self._late: dict[int, tuple[RecordedStep, Directories, str]] = {}
        self.made_up: set[str] = set()
        """The threads of which something was recorded late, and whose state does not know that yet."""
        self._making_up = RLock()

    def note_missed(self, thread: str, places: Directories, why: str) -> None:
        """Note that a step of a thread is not recorded."""
        self.missed.setdefault(thread, (Missed(name=uuid4().hex, why=why), places))

    def note_late(self, step: RecordedStep, places: Directories, why: str) -> None:
        """Note that the end of a step could not be recorded."""
        self._late[step.number] = step, places, why

    def make_up(self) -> None:
        """Record what could not be recorded: ends of steps, and that there were others.

        What differs since the last look may be the work of steps that were missed, or of others.
        """
        if not (self.missed or self._late):
            return
        with self._making_up:
            for thread, (missed, places) in [*self.missed.items()]:
                self._note_gap(thread, places, missed["name"], _MISSED.format(why=missed["why"]))
                del self.missed[thread]
            for step, places, why in [*self._late.values()]:
                self.close(step, places, "" if step.kind == "missed" else _LATE.format(why=why))
                self.made_up.add(step.thread)
                del self._late[step.number]

    def take_made_up(self, thread: str) -> int | None:
        """Return the last change of a thread if something was made up for that its state does not know."""
        if thread not in self.made_up:
            return None
        self.made_up.discard(thread)
        return self.last_of(thread)

    def make_up_for(self, thread: str, places: Directories, state: Mapping[str, Any]) -> None:
        """Record that steps of which the state of a thread tells are not known here, unless that was done."""
        mark = cast("FileMark | None", state.get(KEY)) or FileMark(store="", thread=thread, seen=0)
        if missed := mark.get("missed"):
            self._note_gap(thread, places, missed["name"], _MISSED.format(why=missed["why"]))
        if mark["store"] not in ("", self.store.name):
            note = _ELSEWHERE.format(directory=self.store.directory)
            # By its number, for each time that the other one was used.
            self._note_gap(thread, places, f"{mark['store']} {mark['seen']} {thread}", note)
        self.make_up()

    def note_made_up(self, thread: str, checkpoint: str) -> None:
        """Note that a checkpoint has the files of what was made up for, if anything was."""
        if seen := self.take_made_up(thread):
            note_checkpoint(thread, checkpoint, seen, self.store)

    def _note_gap(self, thread: str, places: Directories, name: str, note: str) -> None:
        with self.store.write() as database:
            values = [f"missed {name}", thread]
            # Another process may have read it in the state of the thread.
            if database.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", values).rowcount:
                self.note_late(self._note(thread, "missed", places.roots, [note]), places, "")

    def begin_turn(self, thread: str, places: Directories) -> None:
        """Let what is ignored now be ignored in all that a thread does from now on."""
        if self.find_open(places.roots, dead=True):
            # What these have changed is found by the rules of their own turn.
            self.look_at_all(places)
        with self.store.write() as database:
            database.execute("DELETE FROM rules_of_turns WHERE thread = ?", [thread])

    def _keep_rules(self, thread: str, places: Directories) -> None:
        """Keep the rules of before the first step of a turn: what it ignores itself is still looked at.

        They are kept in the store, for another process may go on with the turn.
        """
        with self.store.write() as database:
            for statement in KEEP_RULES:
                rows = [{"thread": thread, "root": os.fsencode(root)} for root in places.roots]
                database.executemany(statement, rows)

    def begin(self, thread: str, places: Directories, kind: StepKind = "all") -> RecordedStep:
        """Look at all there is, and note that a step is under way which may change any of it."""
        while True:
            is_free = self.wait_for_rewind(places.roots)
            self.close_dead_files()
            looks = {root: self.look(root, places.passed_over, thread=thread) for root in places.roots}
            unseen = {root: why for root, why in looks.items() if why}
            notes = [NOT_COVERED.format(why=why) for why in unseen.values()]
            with self.store.write():
                # One may have begun during the look; one that begins from here on finds this step.
                if not (is_free and self.find_rewind(places.roots)):
                    self._keep_rules(thread, places)
                    return self._note(thread, kind, places.roots, notes, unseen)

    def start(self, begin: Callable[[Recorder], RecordedStep | None]) -> RecordedStep | None:
        """Begin a step, and give signs of life until it is closed."""
        if step := begin(self):
            self.store.processes.give_signs(step.number)
        return step

    def close(self, step: RecordedStep, places: Directories, note: str = "") -> int:
        """End a step of any kind. Return the number up to which changes are known."""
        self.store.processes.stop_signs(step.number)
        return self.end_files(step, note) if step.kind == "files" else self.end(step, places, note)

    def end(self, step: RecordedStep, places: Directories, note: str = "") -> int:
        """Look again: what differs is the step's. Return the number up to which changes are known."""
        why = self.look_at_all(places)
        with self.store.write() as database:
            if note:
                step.add_note(database, note)
            return self._end(database, step, places.roots, why)

    def begin_files(
        self, thread: str, paths: Iterable[str], places: Directories, notes: Sequence[str] = ()
    ) -> RecordedStep | None:
        """Keep what these paths hold before a tool changes them; `None` where there is nothing to record.

        `notes` say what becomes of what else it changes.
        """
        paths = [path for path in paths if not is_own(path)]
        if not paths and not notes:
            return None
        if any(Path(path).name == IGNORE_FILE for path in paths):
            self.look_at_all(places, thread=thread)
            self._keep_rules(thread, places)
        while True:
            is_free = self.wait_for_rewind(paths)
            self.close_dead_files()
            below, too_large, tops = _list_whole(paths, self.bounds)
            with self._comparing(below) as (changes, found):
                if is_free and self.find_rewind(paths):
                    continue
                self._bring_up_to_date(changes, found)
                # Of a directory with too much below it, nothing can be put back once it is gone.
                unknown = PathReading(UNKNOWN, (0, 0, 0, 0, 0), racy=True)
                changes.entries.update(dict.fromkeys(too_large, unknown))
                self._write(changes)
                notes = [*notes, *(GIT_IS_GONE.format(top=top) for top in tops)]
                return self._note(thread, "files", below, notes)

    def end_files(self, step: RecordedStep, note: str = "") -> int:
        """Record what has become of the paths of a file tool. Return the number of the last change."""
        below, *_ = _list_whole(step.places, self.bounds)
        with self._comparing([*{*step.places, *below}]) as (changes, found):
            self._bring_up_to_date(changes, found)
            self._write(changes)
            return self._close_files(changes.database, step, note)

    def _close_files(self, database: Connection, step: RecordedStep, note: str) -> int:
        """End a step of a file tool, which is kept only where there is something to say of it."""
        notes = step.notes(database)
        there = {each for each in step.places if notes and mode_at(Path(each, GIT))}
        untrue = {*step.untrue, *(GIT_IS_GONE.format(top=each) for each in there)}
        if kept := [each for each in (*notes, note) if each and each not in untrue]:
            return step.end(database, kept)
        database.execute("DELETE FROM steps WHERE id = ?", [step.number])
        return last_seen(database)

    def _note(
        self,
        thread: str,
        kind: StepKind,
        places: Sequence[str],
        notes: Sequence[str] = (),
        unseen: Collection[str] = (),
    ) -> RecordedStep:
        with self.store.write() as database:
            written = write_places(places, unseen), json.dumps(list(notes))
            values = [thread, kind, self.store.process, *written]
            row = database.execute(
                "INSERT INTO steps(thread, kind, process, places, notes) VALUES (?, ?, ?, ?, ?)", values
            )
            return RecordedStep(row.lastrowid or 0, thread, kind, frozenset(places), self.store.process)

    def keep_open(self, step: RecordedStep) -> None:
        """Let a step go on as a command in the background."""
        with self.store.write() as database:
            database.execute("UPDATE steps SET kind = 'background' WHERE id = ?", [step.number])

    def wait_for_rewind(self, paths: Sequence[str]) -> bool:
        """Wait until no going back is under way here; return whether that was so before it took too long."""
        for _ in range(_MOST_WAITS):
            if not self.find_rewind(paths):
                return True
            time.sleep(_WAIT)
        return False

    def find_rewind(self, paths: Sequence[str]) -> bool:
        """Return whether a going back of a process that lives may change any of these."""
        rows = self.store.read("SELECT process, data FROM journal")
        busy = (json.loads(data)["roots"] for process, data in rows if self.store.is_alive(process))
        return any(are_near(roots, paths) for roots in busy)

    def close_dead_files(self) -> None:
        """Record what file tools changed whose processes died, and end what no look will.

        Where a directory is not looked at whole, what a command that died has changed stays unknown.
        """
        for step in self._under_way():
            if self.store.is_alive(step.process):
                continue
            if step.kind == "files":
                self.end_files(step)
            elif all(map(self.find_refusal, step.places)):
                with self.store.write() as database:
                    self._end(database, step, sorted(step.places))

    def record_rewind(self, thread: str, rewind: str, paths: Sequence[str]) -> int:
        """Record what going back has changed; return the number of the last change."""
        step = self._note(thread, "files", paths)
        with self._comparing(paths) as (changes, found):
            # A mark comes first: the oldest records are dropped first, so while it is there all of them are.
            first = step.end(changes.database, ())
            for path, (now, known) in found.items():
                self._compare(changes, path, now, known, (step,))
            self._write(changes)
            changes.database.execute("DELETE FROM steps WHERE id = ?", [step.number])
            changes.database.execute("UPDATE seen SET rewind = ? WHERE id >= ?", [rewind, first])
            return last_seen(changes.database)

    def last_of(self, thread: str) -> int:
        """Return the number of the last change of a thread; 0 where there is none."""
        return self.store.read("SELECT coalesce(max(id), 0) FROM seen WHERE thread = ?", thread)[0][0]

    def find_open(self, roots: Sequence[str], *, dead: bool = False) -> bool:
        """Return whether commands are under way, or were when their process died, below any of these."""
        return any(
            are_near(step.places, roots)
            for step in self._under_way()
            if step.kind != "files" and not (dead and self.store.is_alive(step.process))
        )

    def find_busy(self, paths: Sequence[str]) -> bool:
        """Return whether a step of a process that lives may change any of these."""
        return any(
            are_near(step.places, paths)
            for step in self._under_way()
            if step.kind != "background" and self.store.is_alive(step.process)
        )


def _list_whole(paths: Iterable[str], bounds: Bounds) -> tuple[list[str], list[str], list[str]]:
    """List paths with all that is below them, and with the directories above that are not there.

    What lies below a directory above the bounds, or out of sight, is not listed; these directories are
    returned besides, and those in which git has its own.
    """
    found: list[str] = []
    unlisted: list[str] = []
    tops: set[str] = set()
    for path in paths:
        found.append(path)
        try:
            walk = IndexWalk(Tree(path, generation=0), replace(bounds, ignored=True))
            walk.go()
            found += walk.new
            tops |= walk.tree.ignores.tops
        except (TooMuch, OutOfSight):
            unlisted.append(path)
        for above in Path(path).parents:
            if mode_at(above):
                break
            found.append(str(above))
    return [*dict.fromkeys(found)], unlisted, sorted(tops.intersection(found))

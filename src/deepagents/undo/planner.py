"""Make plans: find what a thread has changed since, look at what is there now, and decide about each path."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from typing import Final

from deepagents.undo.agents import NOT_ON_DISK, AgentFiles
from deepagents.undo.journal import Target
from deepagents.undo.plans import Change, Item, Seen, by_path, decide, settle
from deepagents.undo.recorder import Recorder
from deepagents.undo.results import Plan

_NOT_KNOWN: Final = "not all is known any more that this going back has changed, and the rest stays as it is"


class Planner:
    """Makes the plans of one history."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._store = recorder.store

    def plan(self, files: AgentFiles, target: Target, history: object) -> Plan:
        """Return what going back would do, while it does nothing."""
        items = self.decide(files, target)
        settled = settle(items, list_names, lambda item: False)
        shown: dict[str, list[Change]] = {}
        for item in settled:
            shown.setdefault(item.verdict, []).append(item.show(self._store))
        restored, removed, conflicts, not_kept = (
            tuple(sorted(shown.get(each, ()), key=lambda change: change.path))
            for each in ("restored", "removed", "conflict", "not_kept")
        )
        uncovered = self._find_uncovered(target) if files.places.roots else (NOT_ON_DISK,)
        return Plan(restored, removed, conflicts, not_kept, uncovered, target, tuple(items), history)

    def decide(self, files: AgentFiles, target: Target) -> list[Item]:
        """Decide about each path by itself, as it is now."""
        recorder = self._recorder
        recorder.close_dead_files()
        if recorder.find_open(files.places.roots):
            recorder.look_at_all(files.places)
        recorder.look_at({each.path for each in self._select(target)[0]})
        # Once more: the look may have found changes of commands that are still under way.
        seen, later = self._select(target)
        changed = by_path(seen)
        dropped = self._find_dropped(target, changed)
        now = recorder.look_at({*changed, *dropped})
        return decide(
            changed,
            now,
            self._store.has,
            dropped,
            lambda path: not files.may_restore(path),
            by_path(later),
        )

    def _find_dropped(self, target: Target, changed: Collection[str]) -> list[str]:
        """List the paths of which a record is not there any more that going back would need."""
        if target.rewind:
            return sorted({*target.paths}.difference(changed))
        query = "SELECT path FROM dropped WHERE thread = ? AND until > ?"
        found = [self._store.read(query, thread, target.mark) for thread, _ in target.line.members]
        return sorted({os.fsdecode(path) for rows in found for (path,) in rows})

    def _select(self, target: Target) -> tuple[list[Seen], list[Seen]]:
        """Return the changes to take back, and those that the thread made since."""
        if not target.rewind:
            return target.line.seen(self._store, target.mark), []
        first, last = self._ends_of(target.rewind)
        return target.line.seen(self._store, first - 1, last), target.line.seen(self._store, last)

    def _ends_of(self, rewind: str) -> tuple[int, int]:
        """Return the numbers of the first and the last change of a going back, which were made at once."""
        query = "SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM seen WHERE rewind = ?"
        return self._store.read(query, rewind)[0]

    def _find_uncovered(self, target: Target) -> tuple[str, ...]:
        if target.rewind:
            first, last = self._ends_of(target.rewind)
            query, values = target.line.select("path", "seen", first - 1, last)
            return () if (None,) in self._store.read(query, *values) else (_NOT_KNOWN,)
        query, values = target.line.select("notes", "steps", target.mark)
        notes = [note for (text,) in self._store.read(query, *values) for note in json.loads(text)]
        until = "SELECT max(until) FROM dropped WHERE thread = ?"
        last = [self._store.read(until, thread)[0][0] or 0 for thread, _ in target.line.members]
        if max(last) > target.mark:
            notes.append("older records of this thread were dropped, and what only they knew stays as it is")
        return tuple(dict.fromkeys(notes))


def list_names(path: str) -> Collection[str]:
    """Return the names in a directory on disk, none where there is no directory."""
    try:
        return os.listdir(path)  # noqa: PTH208
    except OSError:
        return ()

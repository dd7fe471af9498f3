"""Tell which changes a step that was cut off has made, and which others may have made after it."""

from __future__ import annotations

import math
import os

from deepagents.undo.plans import IN_CUT_OFF, IN_MISSED
from deepagents.undo.states import changed_at, inode_at
from deepagents.undo.steps import RecordedStep, is_below, list_above
from deepagents.undo.store import Store


class Doubts:
    """Doubts of one look about whose the changes are that it finds.

    The last sign of life of a process is earlier than its death, and than all that others do behind that.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._signs: dict[str, float] = {}

    def find(self, step: RecordedStep, path: str) -> int:
        """Return why others may have made a change, as `Seen.shared` has it; 0 where the step made it."""
        if step.kind == "missed":
            return IN_MISSED
        if step.process not in self._signs:
            self._signs[step.process] = self._store.processes.last_sign(step.process)
        last = self._signs[step.process]
        return IN_CUT_OFF if last < math.inf and self._changed_at(path, step) >= last else 0

    def _changed_at(self, path: str, step: RecordedStep) -> int:
        """Return when a path has changed at the latest, or was moved together with what it lies in."""
        times = [changed_at(path)]
        for above in list_above(path)[1:]:
            if any(is_below(above, each) and above != each for each in step.places):
                rows = self._store.read("SELECT inode FROM entries WHERE path = ?", os.fsencode(above))
                if rows != [(inode_at(above),)]:
                    times.append(changed_at(above))
        return max(times)

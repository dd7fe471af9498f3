"""Make and check tasks of the public set: run by the interpreter of their environment, one task at a time.

    task_set.py list                     ids and waves of the tasks that may be used
    task_set.py lay ID WORK GOLD         write the files to start from, and those of a perfect outcome
    task_set.py verify ID WORK           check an outcome

Only tasks with an odd index in the order of their ids are for tuning and for the page. Of the others nothing
is read but the id.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from harness_bench.tasks import ALL_TASKS
from harness_bench.versioning import TASK_WAVES, task_number


def allowed(ids: list[str]) -> list[str]:
    """Return every second id in the order of the ids: those with an odd index, counted from 0."""
    return sorted(ids)[1::2]


def main(action: str, *words: str) -> Any:
    """Do one thing and return what is to be printed."""
    usable = allowed([task.id for task in ALL_TASKS])
    if action == "list":
        return [{"id": each, "wave": wave_of(each)} for each in usable]
    wanted, *places = words
    if wanted not in usable:
        raise SystemExit(f"{wanted!r} is kept for judging")
    task = next(task for task in ALL_TASKS if task.id == wanted)
    if action == "verify":
        verdict = task.verify(Path(places[0]))
        return {"passed": verdict.passed, "why": "" if verdict.passed else verdict.message[:500]}
    work, gold = map(Path, places)
    task.setup(work)
    task.setup(gold)
    task.apply_gold(gold)
    return {"prompt": task.prompt, "has_gold": bool(task.gold_files or task.gold_callback)}


def wave_of(task_id: str) -> str:
    """Name the group of tasks that the set itself puts a task into."""
    number = task_number(task_id)
    return next(wave.name for wave in TASK_WAVES if number is not None and wave.contains(number))


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))

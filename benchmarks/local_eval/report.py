"""Trials as a page of Markdown, whole or as far as they went."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.local_eval.trial import TEMPERATURE, Trial

_ABOUT = {
    "A": "Set A was written before anything was tuned, and the tuning was done on it.",
    "B": "Set B was written after the first tuning; the second looked at some of its tasks.",
    "C": "Set C has tasks of the same kinds with other words. It was written before the second tuning and "
    "not looked at in it: it is the one to judge by ([how it was tuned](concepts/local-model.md#details)).",
}


@dataclass(frozen=True)
class Row:
    """All attempts at one task."""

    group: str
    task: str
    trials: tuple[Trial, ...]

    @property
    def passed(self) -> int:
        """How many attempts succeeded."""
        return sum(not trial.fault for trial in self.trials)


def page(rows: list[Row], model: str, planned: int) -> str:
    """The whole page."""
    unfinished = (
        "" if len(rows) == planned else f"\nThis run is unfinished: {len(rows)} of {planned} tasks.\n"
    )
    return "\n".join([_head(model), unfinished, *(_group(name, rows) for name in _ABOUT)]).rstrip() + "\n"


def summary(rows: Iterable[Row]) -> str:
    """One line: successes, and seconds a turn."""
    trials = [trial for row in rows for trial in row.trials]
    turns = sum(trial.turns for trial in trials) or 1
    passed = sum(not trial.fault for trial in trials)
    pace = sum(trial.seconds for trial in trials) / turns
    return f"{passed} of {len(trials)} attempts succeeded, {pace:.1f} s a turn"


def _head(model: str) -> str:
    return f"""\
# The local model, measured

Written by `make eval-local`: `{model}` at temperature {TEMPERATURE} on {os.cpu_count()} cores
({platform.machine()}), through `create_deep_agent` on a directory. An attempt counts only if every file ends
exactly as it should, no file appears or vanishes unasked, and a question is answered. What the model says it
did counts for nothing: it often says that it succeeded when it did not."""


def _group(name: str, rows: list[Row]) -> str:
    mine = [row for row in rows if row.group == name]
    if not mine:
        return ""
    lines = [f"## Set {name}", "", _ABOUT[name], "", f"In all: {summary(mine)}.", ""]
    lines += ["| task | succeeded | turns | s/turn | what went wrong |", "|---|---|---|---|---|"]
    return "\n".join(lines + [_line(row) for row in mine]) + "\n"


def _line(row: Row) -> str:
    turns = sum(trial.turns for trial in row.trials) or 1
    pace = sum(trial.seconds for trial in row.trials) / turns
    faults = Counter(trial.fault for trial in row.trials if trial.fault)
    wrong = "; ".join(f"{fault} ({count})" for fault, count in faults.most_common())
    average = turns / len(row.trials)
    return f"| {row.task} | {row.passed} of {len(row.trials)} | {average:.1f} | {pace:.1f} | {wrong} |"

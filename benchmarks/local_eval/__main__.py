"""Measure the local model: `python -m benchmarks.local_eval --help`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from benchmarks.local_eval.report import Row, page, summary
from benchmarks.local_eval.set_a import SET_A
from benchmarks.local_eval.set_b import SET_B
from benchmarks.local_eval.set_c import SET_C
from benchmarks.local_eval.tasks import Task
from benchmarks.local_eval.trial import attempt
from deepagents_local import DEFAULT_MODEL, pull_weights

SETS = {"A": SET_A, "B": SET_B, "C": SET_C}
PAGE = Path(__file__).parents[2] / "docs" / "local-model-results.md"


def main() -> None:
    """Try every task, write the page anew after each, and print what came of it."""
    chosen = _arguments()
    pull_weights(chosen.model)
    jobs = [(group, task) for group in chosen.sets for task in SETS[group] if _wanted(task, chosen.only)]
    rows: list[Row] = []
    for group, task in jobs:
        trials = tuple(attempt(task, number, chosen.model) for number in range(chosen.tries))
        rows.append(Row(group, task.name, trials))
        print(f"{group}  {task.name:34}  {summary(rows[-1:])}", flush=True)
        if not chosen.dry:
            chosen.out.write_text(page(rows, chosen.model, len(jobs)))
    print(f"\nIn all: {summary(rows)}")


def _wanted(task: Task, only: str) -> bool:
    return only.casefold() in task.name.casefold()


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.local_eval")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--tries", type=int, default=5, help="attempts at each task (5)")
    parser.add_argument("--sets", default="CBA", help="some of A, B and C, in the order to run (CBA)")
    parser.add_argument("--only", default="", help="tasks whose name contains this")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--dry", action="store_true", help="write no page")
    return parser.parse_args()


if __name__ == "__main__":
    main()

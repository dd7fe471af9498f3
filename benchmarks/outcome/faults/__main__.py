"""Measure what a model gets done that errs: `python -m benchmarks.outcome.faults --help`."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import get_args

from benchmarks.contenders import REFERENCE, ROOT, child_environment, install_reference, python_of
from benchmarks.outcome.faults.forms import Form
from benchmarks.outcome.faults.readers import Reader
from benchmarks.outcome.faults.tables import render
from benchmarks.outcome.faults.tasks import TASKS
from benchmarks.outcome.faults.trial import Attempt, Job, attempts

ARMS = ("ours", "checked", "reference", "bare")
_OURS = ("ours", "checked")


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all attempts and print the tables."""
    chosen = _options(arguments)
    job = Job(tuple(chosen.rates), chosen.rounds, tuple(chosen.readers), not chosen.no_drifts, chosen.tasks)
    made: list[Attempt] = []
    for arm in chosen.arms:
        # Only our own agents have other forms.
        for form in chosen.form if arm in _OURS else ["replace"]:
            print(f"Running {arm}, {form}", file=sys.stderr, flush=True)
            own = replace(job, form=form)
            made += _of_the_reference(own) if arm == "reference" else attempts(arm, own)
    print(render(made))


def _of_the_reference(job: Job) -> Iterator[Attempt]:
    """Run the reference implementation as a black box, in its own environment."""
    install_reference()
    command = [
        python_of(REFERENCE),
        "-m",
        "benchmarks.outcome.faults.trial",
        "reference",
        json.dumps(asdict(job)),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, env=child_environment(), stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        yield from (Attempt(**json.loads(line)) for line in child.stdout)
    if child.returncode:
        raise SystemExit(f"the reference's process ended with {child.returncode}")


def _options(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.outcome.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="seeds for each task and rate (4)")
    parser.add_argument("--arms", type=_names(ARMS), default=list(ARMS), help=f"of {','.join(ARMS)}")
    readers = get_args(Reader)
    parser.add_argument(
        "--readers", type=_names(readers), default=list(readers), help=f"of {','.join(readers)}"
    )
    forms = get_args(Form)
    parser.add_argument(
        "--form", type=_names(forms), default=["replace"], help=f"how ours edits, of {','.join(forms)}"
    )
    parser.add_argument("--rates", type=_rates, default=[0.0, 0.1, 0.2, 0.4], help="shares of calls that err")
    parser.add_argument("--tasks", type=int, default=len(TASKS), help="only so many of the tasks")
    parser.add_argument("--no-drifts", action="store_true", help="leave out the drifted edits")
    return parser.parse_args(arguments)


def _rates(given: str) -> list[float]:
    return [float(each) for each in given.split(",")]


class _names:
    """Take some of the names that there are."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def __call__(self, given: str) -> list[str]:
        names = given.split(",")
        if unknown := set(names) - set(self._known):
            raise ValueError(f"{sorted(unknown)} not in {list(self._known)}")
        return names


if __name__ == "__main__":
    main()

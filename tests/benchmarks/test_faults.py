"""The dial of faults runs in small, its model errs as it should, and readers go on by what they read."""

from __future__ import annotations

import re

import pytest

from benchmarks.outcome.faults.__main__ import main
from benchmarks.outcome.faults.drifts import WAYS, drift
from benchmarks.outcome.faults.forms import Form
from benchmarks.outcome.faults.readers import Quote, advise
from benchmarks.outcome.faults.slips import Slip, can_drift
from benchmarks.outcome.faults.tasks import EDITS
from benchmarks.outcome.faults.trial import Job, attempts

pytestmark = pytest.mark.slow

EDIT = EDITS[0].steps[-1]
SHOWN = "Error: not found. Nearest: lines 8-9:\n     8\t    for price in prices:\n     9\t        x\nCopy it."


def test_the_tables_tell_what_was_solved(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--arms ours,bare --readers careful --rates 0,0.4 --tasks 2 --rounds 1 --no-drifts"

    main(options.split(" "))

    printed = capsys.readouterr().out
    assert "| faults | ours | bare |" in printed
    assert re.search(r"\| 0\.0 \| 100%, 3\.0, (\d+) \| 100%, 3\.0, \1 \|", printed)


@pytest.mark.parametrize("form", ["anchors", "patch"])
def test_a_model_that_makes_no_fault_solves_all_in_every_form(form: Form) -> None:
    job = Job((0.0,), 1, ("careful",), drifts=False, form=form)

    assert [each.task for each in attempts("ours", job) if not each.solved or each.turns > 6] == []


def test_an_anchor_that_drifted_is_mended_by_what_is_shown() -> None:
    job = Job((), 1, ("careful",), drifts=True, form="anchors", one="a letter of the hash")

    assert [each.landed_after for each in attempts("ours", job)] == [1] * len(EDITS)


@pytest.mark.parametrize(
    ("form", "way", "most"),
    [
        ("replace", "elided", 1),
        ("replace", "blank line before", 1),
        ("anchors", "indented less", 1),
        ("anchors", "escaped line ends", 1),
        ("anchors", "the last line left out", 1),
        ("patch", "escaped line ends", 0),
        ("patch", "a word", 1),
    ],
)
def test_edits_that_drifted_land_and_none_ends_wrong(form: Form, way: str, most: int) -> None:
    made = list(attempts("ours", Job((), 1, ("hasty",), drifts=True, form=form, one=way)))

    assert [each.task for each in made if each.spoiled or not each.solved] == []
    assert max(each.landed_after or 0 for each in made) == most


def test_the_same_seeds_make_the_same_faults() -> None:
    job = Job((0.4,), 1, ("careful",), drifts=False, tasks=3)
    assert list(attempts("bare", job)) == list(attempts("bare", job))


def test_each_drift_changes_some_quote() -> None:
    assert [
        way for way in WAYS if not any(can_drift(way, task.steps[-1], task.files) for task in EDITS)
    ] == []
    assert drift("a line missing", "a\nb\nc", "x") == ("a\nc", "x")


def test_a_hasty_reader_copies_what_is_shown_and_a_careful_one_looks() -> None:
    slip = Slip("drift", "indented less")
    assert advise(EDIT, slip, SHOWN, "hasty") == Quote("    for price in prices:\n        x")
    assert advise(EDIT, slip, SHOWN, "careful") == "look"


@pytest.mark.parametrize(
    ("slip", "text", "advice"),
    [
        (Slip("argument", "file_path"), "file_path: Field required", "right"),
        (Slip("argument", "file_path"), "something is missing", "stuck"),
        (Slip("tool", "edit_file"), "str_replace is not a valid tool, try one of [ls, edit_file].", "right"),
        (Slip("root", "/workspace"), "File '/workspace/shop.py' not found", "stuck"),
        (Slip("root", "/workspace"), "'/workspace/shop.py' not found; there is '/shop.py'", "right"),
        (Slip("no JSON"), "the arguments are not JSON", "right"),
        (Slip("drift", "line numbers"), SHOWN, "stuck"),
        (Slip("drift", "a word"), "String not found", "stuck"),
    ],
)
def test_readers_learn_only_what_is_said(slip: Slip, text: str, advice: str) -> None:
    assert advise(EDIT, slip, text, "careful") == advice

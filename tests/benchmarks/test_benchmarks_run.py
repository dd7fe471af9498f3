"""One tiny round of every benchmark runs and yields numbers; how fast it is, is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts import commands
from tests import postgres
from tests.architecture.source import ROOT

TINY = ("--rounds", "1", "--steps", "2", "--files", "40", "--subagents", "0,2", "--beside", "none")
EXPECTED = {
    "imports": {
        "import import": ["deepagents"],
        "help": ["deepagents --help", "import langchain.agents"],
    },
    "creation": {
        measure: ["deepagents"]
        for workers in (0, 2)
        for measure in (f"created {workers} first", f"created {workers} next", f"used {workers} used")
    },
    "pages": {"pages first": ["seek", "deepagents"], "pages next": ["seek", "deepagents"]},
    "commands": {
        f"commands {measure}": list(commands.ways()) for measure in ("first", "next", "hundredth", "four")
    },
    "steps": {f"{way} 2 step": ["deepagents"] for way in ("none", "awaited", "memory")},
    "store": {
        f"store {measure}": ["deepagents"]
        for measure in ("search", "ls", "glob", "grep", "delete", "globbed", "grepped")
    },
    "state": {f"state {count} {work}": ["deepagents"] for count in (100, 20) for work in ("write", "edit")},
    "checkpoints": {
        f"{run} {saver} {measure}": ["deepagents"]
        for run in ("held", "compacted")
        for saver in ("memory", "sqlite", *([] if postgres.missing() else ["postgres"]))
        for measure in ("1", "2", "4", "growth", "linear")
    },
}


def benchmarked(part: str, results: Path, *options: str) -> tuple[str, dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks", *TINY, "--only", part, "--json", str(results), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout, json.loads(results.read_text("utf-8"))


@pytest.mark.parametrize("part", EXPECTED)
def test_a_tiny_round_measures_everything(part: str, tmp_path: Path) -> None:
    printed, results = benchmarked(part, tmp_path / "results.json")

    assert results["failures"] == {}
    assert {measure: list(of) for measure, of in results["medians"].items()} == EXPECTED[part]
    assert all(value > 0 for of in results["medians"].values() for value in of.values())
    assert all(f"{target['sentence']}: at most" in printed for target in results["targets"])


def test_every_searcher_finds_the_same_and_a_page_shows_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    _, results = benchmarked("files", tmp_path / "results.json", "--write", str(page))

    searchers = ["plain", "deepagents", "deepagents with rules", "deepagents without rg"]
    assert results["failures"] == {}
    assert results["medians"]["files globbed"] == dict.fromkeys(searchers, 40)
    assert results["medians"]["tools ruled_grep"].keys() == {"deepagents"}
    assert results["medians"]["files grepped"] == dict.fromkeys(searchers, 7)
    assert "| files found | 40 | 40 | 40 | 40 |" in page.read_text("utf-8")


def test_a_measurement_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    printed, results = benchmarked("steps", tmp_path / "results.json", "--steps", "0,2")

    assert list(results["failures"]) == [f"{way} 0 of deepagents" for way in ("none", "awaited", "memory")]
    assert "FAILED  none 0 of deepagents: ZeroDivisionError" in printed
    assert results["medians"]["none 2 step"]["deepagents"] > 0
    assert [target["measured"] for target in results["targets"]] == [None] * 3

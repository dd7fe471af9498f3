"""One tiny round of every benchmark runs and yields numbers; how fast it is, is not judged here."""

from __future__ import annotations

import io
import json
import math
import runpy
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.parts import commands
from benchmarks.rounds import Job, in_a_process
from deepagents.backends import LocalSandbox
from tests import postgres
from tests.architecture.source import ROOT

pytestmark = pytest.mark.slow

TINY = (
    "--rounds",
    "1",
    "--steps",
    "2",
    "--files",
    "40",
    "--subagents",
    "0,2",
    "--session",
    "3",
    "--beside",
    "none",
)
SEARCHERS = ["plain", "deepagents", "deepagents with rules", "deepagents without rg"]
EXPECTED: Mapping[str, Mapping[str, list[str]]] = {
    "task": {"task cpu": ["deepagents run", "import langchain.agents, langchain_openai"]},
    "creation": {
        measure: ["deepagents"]
        for workers in (0, 2)
        for measure in (f"created {workers} first", f"created {workers} next", f"used {workers} used")
    },
    "steps": {f"{way} 2 step": ["deepagents"] for way in ("none", "awaited", "memory")},
    "files": {
        **{f"files {measure}": SEARCHERS for measure in ("glob", "globbed", "grep", "grepped")},
        **{f"tools {measure}": ["deepagents"] for measure in ("glob", "ruled_glob", "grep", "ruled_grep")},
    },
    "pages": {"pages first": ["seek", "deepagents"], "pages next": ["seek", "deepagents"]},
    "commands": {
        **{f"commands {each}": list(commands.ways()) for each in ("first", "next", "hundredth", "four")},
        **(
            {}
            if LocalSandbox.available()
            else {f"ruled {each}": ["100 directories"] for each in ("free", "ruled")}
        ),
    },
    "store": {
        f"store {measure}": ["deepagents"]
        for measure in ("search", "ls", "glob", "grep", "delete", "globbed", "grepped")
    },
    "session": {
        f"session in {window} {measure}": ["deepagents"]
        for window in (200_000, 64_000)
        for measure in ("price", "not served", "summaries")
    },
    "code_mode": {
        f"code mode {measure}": ["a turn for each", "one program"]
        for measure in ("requests", "tokens", "price", "seconds")
    },
    "mcp": {"servers step": ["no servers", "5 servers, 50 tools"]},
    "undo": {
        **{
            f"undo {key} {count}": ["undo on", "undo off"]
            for key in ("file", "command")
            for count in (200, 40)
        },
        **{f"undo {measure}": ["undo on"] for measure in ("text", "first", "grown")},
    },
    "state": {f"state {count} {work}": ["deepagents"] for count in (100, 20) for work in ("write", "edit")},
    "checkpoints": {
        f"{run} {saver} {measure}": ["deepagents"]
        for run in ("held", "compacted")
        for saver in ("memory", "sqlite", *([] if postgres.missing() else ["postgres"]))
        for measure in ("1", "2", "4", "growth", "linear")
    },
}


@dataclass(frozen=True)
class Here:
    """Runs probes in this process, which has imported what they need."""

    patches: pytest.MonkeyPatch

    def __call__(self, job: Job) -> str:
        """Run a probe and return what it printed."""
        if job.timed or job.environment:
            return in_a_process(job)
        _, _, name, *arguments = job.command
        self.patches.setattr(sys, "argv", [name, *arguments])
        with redirect_stdout(io.StringIO()) as printed:
            runpy.run_path(str(ROOT / f"{name.replace('.', '/')}.py"), run_name="__main__")
        return printed.getvalue()


def test_a_tiny_round_measures_everything_and_a_page_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, page = tmp_path / "results.json", tmp_path / "page.md"
    monkeypatch.setenv("BENCHMARK_ONCE", "1")

    main(
        [*TINY, "--only", ",".join(EXPECTED), "--json", str(results), "--write", str(page)],
        run=Here(monkeypatch),
    )

    found = json.loads(results.read_text("utf-8"))
    medians: dict[str, dict[str, float]] = found["medians"]
    shown = page.read_text("utf-8")
    assert found["failures"] == {}
    assert {measure: sorted(of) for measure, of in medians.items()} == {
        measure: sorted(of) for part in EXPECTED.values() for measure, of in part.items()
    }
    assert all(math.isfinite(value) for of in medians.values() for value in of.values())
    assert medians["files globbed"] == dict.fromkeys(SEARCHERS, 40)
    assert medians["files grepped"] == dict.fromkeys(SEARCHERS, 7)
    assert "| files found | 40 | 40 | 40 | 40 |" in shown
    assert [
        each["sentence"] for each in found["targets"] if f"{each['sentence']}: at most" not in shown
    ] == []


def test_a_measurement_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", *TINY, "--files", "0", "--only", "imports,pages"]
    done = subprocess.run(
        [*command, "--json", str(results)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    found: dict[str, Any] = json.loads(results.read_text("utf-8"))
    assert list(found["failures"]) == ["pages of seek", "pages of deepagents"]
    assert "FAILED  pages of deepagents: " in done.stdout
    assert {measure: list(of) for measure, of in found["medians"].items()} == {
        "import import": ["deepagents"],
        "help": ["deepagents --help", "import langchain.agents"],
    }
    assert [target["measured"] is None for target in found["targets"]] == [False, True, True]

"""The measure of outcomes: a tiny task goes the whole way in two arms, and known numbers come out right."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import ToolMessage

from benchmarks.outcome import results
from benchmarks.outcome.__main__ import KEPT, PAGE, PLAN, main
from benchmarks.outcome.adapter import write_turns
from benchmarks.outcome.attempts import Result, find_destroyed, how_it_ended
from benchmarks.outcome.box import can_box
from benchmarks.outcome.page import page
from benchmarks.outcome.rates import bootstrap, paired_difference
from benchmarks.outcome.tasks import local_tasks, spread
from tests.architecture.source import ROOT

pytestmark = pytest.mark.slow

RESULT = Result("a task", "core", "ours", 0, "", "answered", 3, 100, 10, 50, (), 1.5, "0123abc")
SET = """
class Task:
    def __init__(self, task_id):
        self.id = task_id
    def __getattr__(self, name):
        raise SystemExit(f"{name} of {self.id} was read")

ALL_TASKS = [Task(f"task_{number}") for number in (3, 1, 2, 4)]
"""
WAVES = """
class Wave:
    name = "core"
    def contains(self, number):
        return True

TASK_WAVES = [Wave()]

def task_number(task_id):
    return int(task_id[5:])
"""


def call(tool: str, **arguments: str) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


@pytest.mark.slow
@pytest.mark.skipif(not can_box(), reason="bubblewrap is not installed, or may not run here")
def test_a_task_goes_the_whole_way_in_two_arms_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = json.dumps({"answer": "Done."})
    script = {
        "list_files": [call("write_file", path="hello.txt", content="Hello, world!"), done],
        "write_todos": [call("write_file", file_path="/other.txt", content="Spoilt."), done],
    }
    (tmp_path / "script.json").write_text(json.dumps(script))
    kept, written = tmp_path / "kept", tmp_path / "page.md"
    words = ["--model", f"scripted:{tmp_path / 'script.json'}", "--run", "tiny", "--sets", "local"]
    words += ["--tasks", "1", "--seeds", "1", "--arms", "bare,ours", "--jobs", "2"]

    for _ in range(2):
        main([*words, "--kept", str(kept), "--page", str(written)])

    found = {each.arm: each for each in results.read(kept / "tiny.jsonl")}
    assert {arm: (each.fault, each.end, each.turns) for arm, each in found.items()} == {
        "bare": ("", "answered", 2),
        "ours": ("hello.txt is missing", "answered", 2),
    }
    assert (found["bare"].destroyed, found["ours"].destroyed) == ((), ("other.txt",))
    assert "| local A | 1 | 100 % | 0 % |" in written.read_text()
    assert "0 attempts to make" in capsys.readouterr().out


def test_the_page_says_what_is_kept() -> None:
    assert PAGE.read_text("utf-8") == page(KEPT, PLAN)


@pytest.mark.parametrize(
    ("said", "end"),
    [
        (["ai"], "no call"),
        (["ai", ("Wrote a.txt", "success"), "ai"], "answered"),
        (["ai", ("Error: no such file", "success"), "ai"], "after an error"),
        (["ai", ("File '/a.txt' not found", "error"), "ai"], "after an error"),
    ],
)
def test_an_answer_right_after_a_failure_is_told_apart(said: list[str | tuple[str, str]], end: str) -> None:
    messages = [
        {"type": each, "data": {}}
        if isinstance(each, str)
        else {"type": "tool", "data": {"content": each[0], "status": each[1]}}
        for each in said
    ]

    assert how_it_ended("answered", messages) == end
    assert how_it_ended("turns", messages) == "turns"


def test_a_model_that_reads_text_only_is_told_what_it_does_not_see() -> None:
    block = {"type": "file", "base64": "AAAA", "mime_type": "application/zip"}

    (turn,) = write_turns([ToolMessage([block], tool_call_id="1", name="read_file")], [])

    assert turn["content"] == "Result of read_file:\n[file: this model reads text only]"


def test_of_the_tasks_that_are_kept_for_judging_only_the_ids_are_read(tmp_path: Path) -> None:
    package = tmp_path / "harness_bench"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "tasks.py").write_text(SET)
    (package / "versioning.py").write_text(WAVES)
    program = [sys.executable, str(ROOT / "benchmarks" / "outcome" / "task_set.py")]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *words], capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}
        )

    assert [each["id"] for each in json.loads(run("list").stdout)] == ["task_2", "task_4"]
    assert "'task_3' is kept for judging" in run("verify", "task_3", str(tmp_path)).stderr
    assert "verify of task_4 was read" in run("verify", "task_4", str(tmp_path)).stderr


def test_a_line_that_was_cut_off_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "run.jsonl"
    second = replace(RESULT, seed=1, destroyed=("a.txt",))
    results.add(path, RESULT)
    results.add(path, second)
    path.write_text(path.read_text() + '{"task": "a ta')

    assert results.read(path) == [RESULT, second]
    results.add(path, replace(RESULT, seed=2))
    assert [each.seed for each in results.read(path)] == [0, 1, 2]


def test_the_first_tasks_are_spread_over_the_waves_by_their_size() -> None:
    tasks = spread(local_tasks(), 7)

    assert sorted(task.id for task in tasks) == sorted(task.id for task in local_tasks())
    assert [task.id for task in tasks] == [task.id for task in spread(local_tasks(), 7)]
    for count in (4, 8, 16):
        assert abs(sum(task.wave == "local A" for task in tasks[:count]) - count / 2) <= 1


def test_a_difference_is_taken_task_by_task() -> None:
    ours = {"a": 1.0, "b": 1.0, "c": 0.5, "only here": 0.0}
    theirs = {"a": 0.0, "b": 1.0, "c": 0.0}

    found = paired_difference(ours, theirs)

    assert found is not None
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    assert not found.excludes_zero
    assert paired_difference({"a": 1.0}, {"b": 1.0}) is None


def test_an_interval_has_the_width_that_theory_says() -> None:
    found = bootstrap([0.0] * 50 + [1.0] * 50, resamples=2_000)

    assert found.value == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert found.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)
    assert bootstrap([0.2] * 9, resamples=100).excludes_zero


def test_a_file_is_destroyed_if_it_changed_and_should_not_have() -> None:
    before = {"kept": "1", "wanted": "1", "spoilt": "1", "gone": "1", "to go": "1"}
    gold = {"kept": "1", "wanted": "2", "spoilt": "1", "gone": "1", "new": "1"}
    after = {"kept": "1", "wanted": "3", "spoilt": "2", "stray": "1"}

    assert find_destroyed(before, after, gold) == ("gone", "spoilt")

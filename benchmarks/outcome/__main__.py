"""Measure how much work one model gets done in several harnesses: `python -m benchmarks.outcome --help`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.contenders import ROOT, install_reference
from benchmarks.outcome import results
from benchmarks.outcome.attempts import Bench, Result, attempt, served
from benchmarks.outcome.environments import HOME
from benchmarks.outcome.model_server import Settings
from benchmarks.outcome.page import page
from benchmarks.outcome.tasks import local_tasks, public_tasks, spread

HERE = Path(__file__).parent
PLAN: dict[str, Any] = tomllib.loads((HERE / "plan.toml").read_text("utf-8"))
KEPT = HERE / "kept"
PAGE = ROOT / "docs" / "outcomes.md"
ARMS = ("bare", "reference", "ours", "ours-without:NAME", "ours-as:PROVIDER")


def main(words: Sequence[str] | None = None) -> None:
    """Make the attempts that are missing, keep each as it ends, and write the page anew."""
    chosen = _arguments(words)
    kept = chosen.kept / f"{chosen.run or chosen.model.replace(':', '-').replace('/', '-')}.jsonl"
    if not chosen.page_only:
        try:
            _measure(chosen, kept)
        except KeyboardInterrupt:
            print("Stopped. The same command goes on from here.", file=sys.stderr)
    if chosen.page:
        chosen.page.write_text(page(chosen.kept, PLAN), "utf-8")


def _measure(chosen: Namespace, kept: Path) -> None:
    tasks = spread(
        [*public_tasks(), *local_tasks()] if chosen.sets == "all" else local_tasks(), PLAN["order"]
    )
    done = {each.key for each in results.read(kept)}
    jobs = [
        (task, arm, seed)
        for task in tasks[: chosen.tasks]
        for seed in range(chosen.seeds)
        for arm in chosen.arms
        if (task.id, arm, seed) not in done
    ]
    print(f"{len(jobs)} attempts to make; kept in {kept}", flush=True)
    if not jobs:
        return
    if "reference" in chosen.arms:
        install_reference()
    settings = Settings(chosen.model, PLAN["temperature"], PLAN["turns"], PLAN["window"], PLAN["answer"])
    logs = HOME / "outcome" / kept.stem
    logs.mkdir(parents=True, exist_ok=True)
    # The model ends first, so that no attempt under way keeps the pool waiting.
    with ThreadPoolExecutor(chosen.jobs) as pool, served(settings) as socket:
        bench = Bench(socket, PLAN["seconds"], PLAN["verify_seconds"], logs, _code())
        running = [pool.submit(attempt, *job, bench) for job in jobs]
        try:
            for number, each in enumerate(as_completed(running), 1):
                # A model that could not answer says nothing about a harness: the next call tries it again.
                if each.result().end != "model":
                    results.add(kept, each.result())
                print(f"{number} of {len(jobs)}: {_line(each.result())}", flush=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _line(result: Result) -> str:
    outcome = f"FAILED ({result.end}) {result.fault[:80]!r}" if result.fault else "solved"
    return (
        f"{result.arm:18} {result.task} #{result.seed}: {outcome}, {result.turns} turns, {result.seconds} s"
    )


def _code() -> str:
    """Name the state of the code that is measured."""
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return asked.stdout.strip()


def _arguments(words: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.outcome")
    parser.add_argument("--model", default="local", help="local, scripted:FILE, or provider:name (local)")
    parser.add_argument("--tasks", type=int, default=PLAN["tasks"], help=f"how many ({PLAN['tasks']})")
    parser.add_argument(
        "--seeds", type=int, default=PLAN["seeds"], help=f"attempts of an arm ({PLAN['seeds']})"
    )
    parser.add_argument(
        "--arms", type=lambda text: text.split(","), default=PLAN["arms"], help=", ".join(ARMS)
    )
    parser.add_argument(
        "--sets", choices=("all", "local"), default="all", help="all, or the local sets alone"
    )
    parser.add_argument("--jobs", type=int, default=1, help="attempts at a time, with a model elsewhere (1)")
    parser.add_argument("--run", default="", help="the name under which results are kept (the model's)")
    parser.add_argument("--kept", type=Path, default=KEPT, help="the directory of the results")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--page-only", action="store_true", help="make no attempt, write the page")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()

"""What came out, as a page of Markdown: written from the kept results, and what people say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.outcome import results
from benchmarks.outcome.attempts import Result
from benchmarks.outcome.rates import Interval, mean, paired_difference
from benchmarks.outcome.tasks import LOCAL_WAVES

COMPARED = (("ours", "bare"), ("ours", "reference"))

_HEAD = """\
# Outcomes, measured

Written by `make outcome` from the attempts that are kept; only "What it says" is typed by hand. The same
model tries the same tasks in several harnesses, and programs check the files that are left.

- `bare`: LangChain's `create_agent` with five plain tools (list, read, write, replace, shell).
- `reference`: the reference implementation, run as a black box.
- `ours`: `create_deep_agent` as it is.
- `ours-without:NAME`: the same, without the tool or middleware of that name; without `task`, no subagents.
- `ours-as:PROVIDER`: the same, with the [harness profile](concepts/profiles.md) of that provider.

All arms get the same model, seeds, temperature, shell and turns. An attempt runs in a throw-away directory,
without a network. The tasks are every second one of the public set `harness-bench-fast` 0.1.0 (those with an
odd index, counted from 0, in the order of their ids; the others are kept for judging), whose requests are in
Russian, and the two sets of [the local model](local-model-results.md), whose requests are in English. A
selection is spread over the waves, as the set calls its groups, by their size.

## What was fixed before

{hypothesis}

At least {tasks} tasks and {seeds} seeds for each arm; temperature {temperature}, {turns} calls of the model,
{window:,} tokens of context with {answer:,} for an answer, {seconds} seconds. Rates are means over tasks. An
interval is the middle 95 % of a bootstrap over the tasks that both arms have tried. The local sets count in
no total: set A was used for tuning. Waves: {waves}."""

_NOTHING = """\
## No run yet

No run of the planned size was made, so nothing is known: `make outcome` makes one and writes it here."""

_LOCAL = """\
This model writes text only. One adapter lets it call tools: the schemas that a harness gives stand in the
prompt as they are, and a grammar makes each reply one JSON object, a call of one of these tools with any
arguments, or an answer. A model with 1.5 billion parameters says little about larger ones; `make outcome
MODEL=provider:name` measures any other."""


def page(kept: Path, plan: Mapping[str, Any]) -> str:
    """Write the whole page: what was fixed before, and each run that is kept."""
    runs = [(path.stem, results.read(path)) for path in sorted(kept.glob("*.jsonl"))]
    head = _HEAD.format(
        **{**plan, "hypothesis": plan["hypothesis"].strip(), "waves": ", ".join(plan["waves"])}
    )
    shown = [f"{_run(name, found, plan)}{_notes(kept / f'{name}.md')}" for name, found in runs if found]
    return "\n\n".join([head, *(shown or [_NOTHING])]) + "\n"


def _run(name: str, found: Sequence[Result], plan: Mapping[str, Any]) -> str:
    arms = list(dict.fromkeys([*plan["arms"], *(each.arm for each in found)]))
    arms = [arm for arm in arms if any(each.arm == arm for each in found)]
    public = [each for each in found if each.wave not in LOCAL_WAVES]
    parts = [f"## Run `{name}`", _size(found, plan)]
    if name.startswith("local"):
        parts.append(_LOCAL)
    parts += [_waves(found, arms), _empty_waves(found)]
    parts += [_comparisons(public), _price(found, arms), _ends(found, arms)]
    return "\n\n".join(filter(None, parts))


def _notes(path: Path) -> str:
    """Return what people wrote of a run, where they did."""
    return f"\n\n### What it says\n\n{path.read_text('utf-8').strip()}" if path.is_file() else ""


def _size(found: Sequence[Result], plan: Mapping[str, Any]) -> str:
    tasks, seeds = {each.task for each in found}, {each.seed for each in found}
    code = ", ".join(sorted({f"`{each.code}`" for each in found}))
    text = f"{len(found)} attempts at {len(tasks)} tasks with {len(seeds)} seeds; commits {code}."
    planned = plan["tasks"] * plan["seeds"]
    made = {arm: sum(each.arm == arm for each in found) for arm in plan["arms"]}
    short = [f"`{arm}` has {number} of {planned}" for arm, number in made.items() if number < planned]
    if not short:
        return text
    return f"{text} **This is less than was planned**: {', '.join(short)}; its rates are of fewer tasks."


def task_rates(found: Iterable[Result], arm: str) -> dict[str, float]:
    """Return the share of solved attempts of an arm, for each task."""
    solved: dict[str, list[float]] = {}
    for each in found:
        if each.arm == arm:
            solved.setdefault(each.task, []).append(not each.fault)
    return {task: mean(values) for task, values in solved.items()}


def _waves(found: Sequence[Result], arms: Sequence[str]) -> str:
    rows = [
        [wave, len({each.task for each in mine}), *(_percent(task_rates(mine, arm)) for arm in arms)]
        for wave, mine in _by_wave(found)
    ]
    public = [each for each in found if each.wave not in LOCAL_WAVES]
    total = ["**all public**", len({each.task for each in public})]
    total += [_percent(task_rates(public, arm)) for arm in arms]
    return "### Solved, by wave\n\n" + _table(["wave", "tasks", *arms], [*rows, total])


def _by_wave(found: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    names = dict.fromkeys(each.wave for each in sorted(found, key=lambda each: each.wave))
    return [(name, [each for each in found if each.wave == name]) for name in names]


def _empty_waves(found: Sequence[Result]) -> str:
    empty = [wave for wave, mine in _by_wave(found) if all(each.fault for each in mine)]
    return (
        f"Every arm is at zero in: {', '.join(empty)}. These waves say nothing about harnesses."
        if empty
        else ""
    )


def _comparisons(public: Sequence[Result]) -> str:
    lines = ["### Against each other", ""]
    for one, other in COMPARED:
        difference = paired_difference(task_rates(public, one), task_rates(public, other))
        if difference is not None:
            lines.append(f"- `{one}` over `{other}`: {_points(difference)}")
    return "\n".join(lines) if lines[2:] else ""


def _points(difference: Interval) -> str:
    verdict = "excludes" if difference.excludes_zero else "does not exclude"
    low, high = 100 * difference.low, 100 * difference.high
    return f"{100 * difference.value:+.1f} points (95 %: {low:+.1f} to {high:+.1f}), which {verdict} zero."


def _price(found: Sequence[Result], arms: Sequence[str]) -> str:
    rows = [[arm, *_prices([each for each in found if each.arm == arm])] for arm in arms]
    head = [
        "arm",
        "attempts",
        "solved",
        "tokens for each solved task",
        "of these cached",
        "turns for each solved task",
    ]
    return "\n".join(
        [
            "### Price",
            "",
            "All tokens and turns of an arm, failed attempts included, by the tasks that it solved.",
            "",
            _table([*head, "attempts that destroyed a file"], rows),
        ]
    )


def _prices(mine: Sequence[Result]) -> list[object]:
    solved = sum(not each.fault for each in mine)
    tokens = sum(each.input + each.output for each in mine)
    cached = sum(each.cached for each in mine)
    destroyed = sum(bool(each.destroyed) for each in mine)
    by_task = [f"{tokens / solved:,.0f}", f"{100 * cached / (tokens or 1):.0f} %"] if solved else ["-", "-"]
    turns = f"{sum(each.turns for each in mine) / solved:.1f}" if solved else "-"
    return [len(mine), solved, *by_task, turns, destroyed]


def _ends(found: Sequence[Result], arms: Sequence[str]) -> str:
    kinds = {
        "no call": "answered without calling a tool",
        "after an error": "answered right after a call that failed",
        "answered": "answered after a call that worked",
        "turns": "used up its turns",
        "context": "outgrew the context",
        "seconds": "took too long",
        "crash": "the harness ended with an error",
    }
    counts = {arm: Counter(each.end for each in found if each.arm == arm and each.fault) for arm in arms}
    rows = [[text, *(counts[arm][end] for arm in arms)] for end, text in kinds.items()]
    shown = [row for row in rows if any(row[1:])]
    return "### How failed attempts ended\n\n" + _table(["end", *arms], shown) if shown else ""


def _percent(rates: Mapping[str, float]) -> str:
    return f"{100 * mean(list(rates.values())):.0f} %" if rates else "-"


def _table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)

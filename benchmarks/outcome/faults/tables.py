"""What came of the attempts, as tables of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.outcome.faults.trial import Attempt


def render(attempts: Sequence[Attempt]) -> str:
    """Return all tables that there is something for."""
    tasks = [each for each in attempts if each.part == "tasks"]
    drifts = [each for each in attempts if each.part == "drifts"]
    readers = list(dict.fromkeys(each.reader for each in attempts))
    parts: list[str] = []
    for reader in readers:
        read = [each for each in tasks if each.reader == reader]
        if read:
            parts += [
                f"## Tasks, {reader} reader",
                "Solved; for each attempt turns, and characters that the model wrote:",
                _rates(read),
            ]
            parts += ["The last fault of the attempts that were not solved:", _losses(read)]
        read = [each for each in drifts if each.reader == reader]
        if read:
            parts += [f"## Drifted edits, {reader} reader", _landings(read)]
            parts += ["Landed within two retries, and ended wrong, by the way of the drift:", _ways(read)]
    return "\n\n".join(parts)


def _rates(attempts: Sequence[Attempt]) -> str:
    arms = _arms(attempts)
    rows = [
        [
            str(rate),
            *(_solved([each for each in attempts if (each.dial, each.arm) == (rate, arm)]) for arm in arms),
        ]
        for rate in dict.fromkeys(each.dial for each in attempts)
    ]
    return _table(["faults", *arms], rows)


def _solved(attempts: Sequence[Attempt]) -> str:
    turns = sum(each.turns for each in attempts) / len(attempts)
    written = sum(each.written for each in attempts) / len(attempts)
    return f"{_share(each.solved for each in attempts)}, {turns:.1f}, {written:.0f}"


def _losses(attempts: Sequence[Attempt]) -> str:
    arms = _arms(attempts)
    lost = {
        arm: Counter(each.last_slip for each in attempts if each.arm == arm and not each.solved)
        for arm in arms
    }
    kinds = sorted({kind for counts in lost.values() for kind in counts})
    return _table(
        ["last fault", *arms], [[kind or "none", *(str(lost[arm][kind]) for arm in arms)] for kind in kinds]
    )


def _landings(attempts: Sequence[Attempt]) -> str:
    rows: list[list[str]] = []
    for arm in _arms(attempts):
        made = [each for each in attempts if each.arm == arm]
        rows.append(
            [
                arm,
                _share(each.solved and each.landed_after == 0 for each in made),
                _share(each.solved for each in made),
                _share(each.spoiled for each in made),
                f"{sum(each.turns for each in made) / len(made):.1f}",
                f"{sum(each.written for each in made) / len(made):.0f}",
            ]
        )
    return _table(["", "at the first try", "within two retries", "ended wrong", "turns", "written"], rows)


def _ways(attempts: Sequence[Attempt]) -> str:
    arms = _arms(attempts)
    rows: list[list[str]] = []
    for way in dict.fromkeys(each.dial for each in attempts):
        by_arm = [[each for each in attempts if (each.dial, each.arm) == (way, arm)] for arm in arms]
        rows.append([str(way), *map(_landed_and_wrong, by_arm)])
    return _table(["", *arms], rows)


def _landed_and_wrong(attempts: Sequence[Attempt]) -> str:
    wrong = sum(each.spoiled for each in attempts)
    landed = f"{sum(each.solved for each in attempts)} of {len(attempts)}"
    return f"{landed}, {wrong} wrong" if wrong else landed


def _arms(attempts: Iterable[Attempt]) -> list[str]:
    return list(dict.fromkeys(each.arm for each in attempts))


def _share(held: Iterable[bool]) -> str:
    found = list(held)
    return f"{sum(found) / len(found):.0%}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

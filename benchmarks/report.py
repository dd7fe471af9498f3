"""Tables and targets, as values and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from benchmarks.rounds import Samples

Place = tuple[str, str]
"""A measure and a contender."""


@dataclass(frozen=True)
class Row:
    """A line of a table: a measure of every contender, or its ratio to another, or a count without ratios."""

    label: str
    measure: str
    under: str | None = None
    counts: bool = False


@dataclass(frozen=True)
class Target:
    """What one ratio may be at most; with `added`, what one measure may have more than another.

    Without another measure, it is the most of the measure itself.
    """

    sentence: str
    over: Place
    under: Place | None
    at_most: float
    added: bool = False


@dataclass(frozen=True)
class Table:
    """One part of the report. `ratios` are columns: each names two contenders."""

    title: str
    unit: str
    contenders: Sequence[str]
    rows: Sequence[Row]
    ratios: Sequence[tuple[str, str]] = ()
    targets: Sequence[Target] = ()
    notes: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Verdict:
    """A target and what was measured; `None` where it could not be."""

    sentence: str
    at_most: float
    measured: float | None
    unit: str = "times"

    @property
    def passed(self) -> bool:
        """Tell whether the target is met."""
        return self.measured is not None and self.measured <= self.at_most

    def __str__(self) -> str:
        mark = "PASS" if self.passed else "MISS"
        shown = "not measured" if self.measured is None else f"{self.measured:.2f}"
        return f"{mark}  {self.sentence}: at most {self.at_most:g} {self.unit}, measured {shown}"


def verdicts(tables: Iterable[Table], samples: Samples) -> list[Verdict]:
    """Judge every target of every table."""
    return [_verdict(target, table, samples) for table in tables for target in table.targets]


def _verdict(target: Target, table: Table, samples: Samples) -> Verdict:
    if target.under is None:
        return Verdict(target.sentence, target.at_most, samples.median(*target.over), table.unit)
    if target.added:
        more = samples.difference(target.over, target.under)
        return Verdict(target.sentence, target.at_most, more, f"{table.unit} more")
    return Verdict(target.sentence, target.at_most, samples.ratio(target.over, target.under))


def cells(table: Table, samples: Samples) -> list[list[str]]:
    """Lay out a table: a head, and a line for each row."""
    head = [table.unit, *table.contenders, *(f"{over} / {under}" for over, under in table.ratios)]
    return [head, *(_line(row, table, samples) for row in table.rows)]


def _line(row: Row, table: Table, samples: Samples) -> list[str]:
    if row.under is not None:
        grown = [samples.ratio((row.measure, each), (row.under, each)) for each in table.contenders]
        return [row.label, *map(_shown_ratio, grown), *("" for _ in table.ratios)]
    values = [samples.median(row.measure, each) for each in table.contenders]
    if row.counts:
        counted = ["-" if value is None else f"{value:,.0f}" for value in values]
        return [row.label, *counted, *("" for _ in table.ratios)]
    ratios = [samples.ratio((row.measure, over), (row.measure, under)) for over, under in table.ratios]
    return [row.label, *map(_shown, values), *map(_shown_ratio, ratios)]


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _shown_ratio(value: float | None) -> str:
    return "-" if value is None else f"x {value:.2f}"


def as_text(table: Table, samples: Samples) -> str:
    """Write a table for a terminal."""
    lines = cells(table, samples)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
    return "\n".join([table.title, *(f"  {line}" for line in shown), *(f"  {note}" for note in table.notes)])


def _aligned(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = zip(line, widths, strict=True)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]


def as_markdown(table: Table, samples: Samples) -> str:
    """Write a table for a page."""
    head, *lines = (f"| {' | '.join(line)} |" for line in cells(table, samples))
    columns = 1 + len(table.contenders) + len(table.ratios)
    rule = f"|---|{'---:|' * (columns - 1)}"
    return "\n\n".join([f"## {table.title}", "\n".join([head, rule, *lines]), *table.notes])


def as_values(tables: Iterable[Table], samples: Samples) -> dict[str, object]:
    """Give all of it as plain data."""
    medians = {
        measure: {contender: samples.median(measure, contender) for contender in of}
        for measure, of in samples.values.items()
    }
    judged = [{**asdict(each), "passed": each.passed} for each in verdicts(tables, samples)]
    return {
        "medians": medians,
        "samples": {measure: dict(of) for measure, of in samples.values.items()},
        "targets": judged,
        "failures": samples.failures,
    }

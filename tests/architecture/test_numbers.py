"""The numbers in CONTRIBUTING.md are limits, and each of them is measured here."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from statistics import median

import grimp
import pytest

from tests.architecture import rules
from tests.architecture.source import ROOT, Source, function_lines, sources

SRC = sources("src")
PACKAGES = tuple(sorted(path.name for path in (ROOT / "src").iterdir() if (path / "__init__.py").is_file()))
ROW = re.compile(
    r"\| (?P<what>[^|]+?) \| [^|]* \| (?P<bound>at most|at least|below) (?P<limit>[\d,.]+)(?P<unit> %)? \|"
)


def read_limits(text: str) -> dict[str, tuple[str, float]]:
    """Read what a table limits: each row by its first column, with its bound."""
    return {
        row["what"]: (row["bound"], float(row["limit"].replace(",", "")))
        for row in map(ROW.fullmatch, text.splitlines())
        if row
    }


def keeps(value: float, bound: str, limit: float) -> bool:
    return {"at most": value <= limit, "at least": value >= limit, "below": value < limit}[bound]


def share(files: Iterable[Source], count: Callable[[Source], int]) -> float:
    listed = list(files)
    return 100 * sum(map(count, listed)) / sum(source.lines for source in listed)


def import_lines(source: Source) -> int:
    """Count the lines of the imports at the top of a file, the continued ones too."""
    imports = [node for node in source.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def levels(package: str) -> int:
    """Return the length of the longest chain of parts of a package, each of which imports the next."""
    graph = grimp.build_graph(package, cache_dir=None)
    parts = graph.find_children(package)
    for part in parts:
        graph.squash_module(part)
    below = {part: graph.find_modules_directly_imported_by(part) & parts - {part} for part in parts}

    @cache
    def height(part: str) -> int:
        return 1 + max((height(each) for each in below[part]), default=0)

    return max(map(height, parts))


def measure_shape() -> Mapping[str, float]:
    """Return what is measured on the source, by the rows of the table."""
    functions = [function_lines(function) for source in SRC for function in source.functions]
    return {
        **{f"lines of `{name}`": sum(each.lines for each in sources(f"src/{name}")) for name in PACKAGES},
        "lines of a file, median": median(source.lines for source in SRC if source.lines),
        "lines of one file": max(source.lines for source in SRC),
        "lines of a function, median": median(functions),
        "lines of one function": max(functions),
        "imports, share of the lines": share(SRC, import_lines),
        "comments, share of the lines": share(SRC, rules.comment_lines),
        "docstrings, share of the lines": share(SRC, rules.all_docstring_lines),
        "levels of `deepagents`": levels("deepagents"),
        "levels of `deepagents_cli`": levels("deepagents_cli"),
        "levels of `deepagents_server`": levels("deepagents_server"),
    }


def measure_trips() -> Mapping[str, float]:
    """Return what calls pass on their way, by the rows of the table; measured where nothing ran before."""
    command = (sys.executable, "-m", "benchmarks.probes.trips")
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    rows = {line[:32].strip(): [*map(int, line[32:].split())] for line in printed.splitlines()[1:]}
    state, tree = rows["write_file to state"], rows["write_file, composite, one rule"]
    return {
        "modules that `write_file` to state passes": state[0],
        "switches between them": state[2],
        "modules that it passes in a composite with one rule": tree[0],
        "switches between these": tree[2],
        "modules that `create_deep_agent(model)` passes": rows["create_deep_agent(model)"][0],
    }


def test_the_source_keeps_to_every_number_of_the_table() -> None:
    limits = read_limits((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    measured = {**measure_shape(), **measure_trips()}

    assert measured.keys() == limits.keys(), "each row is measured, and each measure has a row"
    missed = {what: value for what, value in measured.items() if not keeps(value, *limits[what])}
    assert missed == {}


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ("at most 9", True),
        ("at most 8.5", False),
        ("below 9", False),
        ("at least 9", True),
        ("at least 1,000", False),
    ],
)
def test_a_number_that_is_missed_is_found(row: str, fits: bool) -> None:
    ((bound, limit),) = read_limits(f"| what | aim | limit |\n|---|---|---|\n| lines | 5 | {row} |").values()

    assert keeps(9, bound, limit) is fits

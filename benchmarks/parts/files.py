"""Search in many files on disk, beside the least that could do it."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.contenders import OURS, REFERENCE, python_of, without_ripgrep
from benchmarks.parts import Part, Size, module
from benchmarks.probes.files import NEEDLE
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

PLAIN, UNAIDED, RULED = "plain", "deepagents without rg", "deepagents with rules"
NEEDLES = 7
_WORDS = ("lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit", "sed", "eiusmod")


@contextmanager
def tree(size: Size) -> Iterator[str]:
    """Make the files, the same each time, and remove them afterwards."""
    root = Path(tempfile.mkdtemp(prefix="benchmark-files-"))
    try:
        _fill(root, size)
        yield str(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _fill(root: Path, size: Size) -> None:
    chance = random.Random(1)
    holders = set(chance.sample(range(size.files), NEEDLES))
    for number in range(size.files):
        folder = root / f"part-{number % size.directories:03}"
        folder.mkdir(exist_ok=True)
        lines = [" ".join(chance.choices(_WORDS, k=9)) for _ in range(chance.randint(20, 55))]
        if number in holders:
            lines[len(lines) // 2] += f" {NEEDLE}"
        (folder / f"note-{number:05}.txt").write_text("\n".join(lines) + "\n", "utf-8")


def plan(size: Size, root: str) -> Part:
    """Find all files by name, and a rare literal in them."""
    bare_python, bare_environment = without_ripgrep()
    jobs = [Job("files", PLAIN, module(sys.executable, "files", "plain_search", root))]
    jobs += [
        Job("files", each, module(python_of(each), "files", "backend_search", root)) for each in size.deep
    ]
    jobs.append(
        Job(
            "files",
            UNAIDED,
            module(bare_python, "files", "backend_search", root),
            environment=bare_environment,
        )
    )
    jobs.append(Job("files", RULED, module(sys.executable, "files", "ruled_search", root)))
    contenders = [PLAIN, OURS, UNAIDED, RULED, *(each for each in size.deep if each != OURS)]
    rows = [
        Row('glob("*.txt")', "files glob"),
        Row("files found", "files globbed", counts=True),
        Row("grep of a rare literal", "files grep"),
        Row("lines found", "files grepped", counts=True),
    ]
    table = Table(
        f"Search in {size.files:,} files",
        "milliseconds",
        contenders,
        rows,
        ratios=[
            (OURS, PLAIN),
            (UNAIDED, PLAIN),
            (RULED, PLAIN),
            *((OURS, each) for each in size.deep if each == REFERENCE),
        ],
        targets=_targets(),
        notes=["plain is a walk over os.scandir, and grep -rF. reference finds rg on the search path too."],
    )
    tools = _through_tools(size, root)
    return Part([*jobs, *tools.jobs], [table, *tools.tables])


def _through_tools(size: Size, root: str) -> Part:
    """Call the tools of an agent, without rules and with three."""
    jobs = [Job("tools", each, module(python_of(each), "tools", root)) for each in size.deep]
    rows = [
        Row(f"{tool}, {rules}", f"tools {measure}")
        for tool, name in (('glob("*.txt")', "glob"), ("grep of a rare literal", "grep"))
        for rules, measure in (("no rules", name), ("three rules", f"ruled_{name}"))
    ]
    table = Table(
        f"The same through the tools of an agent, with permission rules, in {size.files:,} files",
        "milliseconds a run",
        size.deep,
        rows,
        ratios=[(OURS, each) for each in size.deep if each == REFERENCE],
        targets=[
            Target(
                f"{name} with three rules beside none",
                (f"tools ruled_{name}", OURS),
                (f"tools {name}", OURS),
                2,
            )
            for name in ("glob", "grep")
        ],
        notes=["A run is an agent's turn with one call of the tool, by a scripted model."],
    )
    return Part(jobs, [table])


def _targets() -> list[Target]:
    return [
        Target('glob("*.txt") beside a walk over os.scandir', ("files glob", OURS), ("files glob", PLAIN), 2),
        Target("grep beside grep -rF, with rg", ("files grep", OURS), ("files grep", PLAIN), 2),
        Target("grep beside grep -rF, without rg", ("files grep", UNAIDED), ("files grep", PLAIN), 2),
        Target("glob with three rules, beside a walk", ("files glob", RULED), ("files glob", PLAIN), 2),
        Target("grep with three rules, beside grep -rF", ("files grep", RULED), ("files grep", PLAIN), 2),
    ]

"""Run the measurements and print what they found: `make bench`, or `make bench ARGS="--quick"`."""

from __future__ import annotations

import argparse
import compileall
import datetime
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.contenders import (
    BARE,
    OURS,
    REFERENCE,
    REFERENCE_RELEASE,
    ROOT,
    install_plain,
    install_reference,
    versions,
)
from benchmarks.parts import (
    Part,
    Size,
    checkpoints,
    code_mode,
    commands,
    creation,
    files,
    imports,
    mcp,
    pages,
    session,
    state,
    steps,
    store,
    task,
    undo,
)
from benchmarks.report import Table, Verdict, as_markdown, as_text, as_values, verdicts
from benchmarks.rounds import Run, Samples, in_a_process, measure

RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
PAGE = ROOT / "docs" / "benchmarks.md"
PARTS = (
    "imports",
    "task",
    "creation",
    "steps",
    "files",
    "pages",
    "commands",
    "store",
    "state",
    "checkpoints",
    "session",
    "code_mode",
    "mcp",
    "undo",
)


def main(arguments: Sequence[str] | None = None, run: Run = in_a_process) -> int:
    """Measure, print, write; the exit code tells of missed targets only with --strict."""
    options = _options(arguments)
    size = _size(options)
    if REFERENCE in size.contenders:
        install_reference()
        install_plain()
    # Else the first round would measure the compiler.
    compileall.compile_dir(ROOT / "src", quiet=2)
    machine = _machine(size, options.rounds)
    print("\n".join(machine), end="\n\n", flush=True)
    samples = Samples()
    tables = _measured(options.only, size, partial(_run, options.rounds, samples, run))
    judged = verdicts(tables, samples)
    print("\n".join(map(str, judged)))
    print(*(f"FAILED  {name}: {why}" for name, why in samples.failures.items()), sep="\n")
    _write(options, machine, tables, samples, judged)
    return int(options.strict and not all(each.passed for each in judged))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two rounds, two lengths, a tenth of the files")
    parser.add_argument("--rounds", type=int, help="default 5, or 2 with --quick")
    parser.add_argument("--only", type=_words, default=PARTS, help=f"parts, by comma: {','.join(PARTS)}")
    parser.add_argument("--steps", type=_numbers, help="lengths of the runs, by comma")
    parser.add_argument("--files", type=int, help="how many files to search")
    parser.add_argument("--subagents", type=_numbers, default=Size.workers, help="how many, by comma")
    parser.add_argument("--session", type=int, default=Size.session, help="steps of the priced session")
    parser.add_argument("--beside", type=_words, default=(BARE, REFERENCE), help="contenders, or none")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the numbers go")
    parser.add_argument("--write", type=Path, nargs="?", const=PAGE, help="write a page: docs/benchmarks.md")
    parser.add_argument("--strict", action="store_true", help="end with 1 when a target is missed")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (2 if options.quick else 5)
    return options


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word and word != "none")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, _words(text)))


def _size(options: argparse.Namespace) -> Size:
    lengths = options.steps or ((50, 200) if options.quick else (50, 200, 800))
    count = options.files
    if count is None:
        count = 2_000 if options.quick else 20_000
    return Size(
        lengths=lengths,
        files=count,
        directories=max(1, count // 100),
        workers=options.subagents,
        session=options.session,
        contenders=(OURS, *(each for each in options.beside if each != OURS)),
    )


def _measured(only: Sequence[str], size: Size, run: Callable[[Part], list[Table]]) -> list[Table]:
    tables: list[Table] = []
    for name, part in (("imports", imports), ("task", task), ("creation", creation), ("steps", steps)):
        if name in only:
            tables += run(part.plan(size))
    if "files" in only:
        with files.tree(size) as root:
            tables += run(files.plan(size, root))
    if "pages" in only:
        with pages.log(size) as root:
            tables += run(pages.plan(size, root))
    others = {
        "commands": commands,
        "store": store,
        "state": state,
        "session": session,
        "code_mode": code_mode,
        "mcp": mcp,
        "undo": undo,
    }
    for name, part in others.items():
        if name in only:
            tables += run(part.plan(size))
    if "checkpoints" in only:
        with checkpoints.database() as place:
            tables += run(checkpoints.plan(size, place))
    return tables


def _run(rounds: int, samples: Samples, run: Run, part: Part) -> list[Table]:
    measure(part.jobs, 1 if part.exact else rounds, samples, run)
    for table in part.tables:
        print(as_text(table, samples), end="\n\n", flush=True)
    return part.tables


def _machine(size: Size, rounds: int) -> list[str]:
    lines = [
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, Python {platform.python_version()},"
        f" {platform.system()}, {_processor()}, {os.cpu_count()} cores",
        f"Medians of {rounds} interleaved rounds; every measurement is a process of its own. Other work may"
        " share the cores: ratios are medians of the ratios within a round, and say more than milliseconds.",
        *(f"{each}: {_shown_versions(each)}" for each in size.contenders if each != BARE),
    ]
    if REFERENCE in size.contenders:
        lines.append(
            f"reference is the reference implementation (PyPI {REFERENCE_RELEASE}), run as a black box."
        )
    return lines


def _shown_versions(contender: str) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions(contender).items())


def _processor() -> str:
    try:
        known = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in known if line.startswith("model name"))
    return next(names, platform.machine())


def _write(
    options: argparse.Namespace,
    machine: list[str],
    tables: list[Table],
    samples: Samples,
    judged: list[Verdict],
) -> None:
    values = {"machine": machine, **as_values(tables, samples)}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(values, indent=1) + "\n", "utf-8")
    if options.write:
        options.write.write_text(_page(machine, tables, samples, judged), "utf-8")


def _page(machine: list[str], tables: list[Table], samples: Samples, judged: list[Verdict]) -> str:
    parts = [
        "# Benchmarks",
        "Written by `make bench ARGS=--write`; nothing here is typed by hand.",
        "\n\n".join(machine),
        *(as_markdown(table, samples) for table in tables),
        "## Targets",
        "\n".join(f"- {verdict}" for verdict in judged),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())

"""Files in a store, beside one full search of that store."""

from __future__ import annotations

from benchmarks.contenders import OURS, REFERENCE, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

WORKS = {
    "ls": "list a directory",
    "glob": 'glob("*.txt")',
    "grep": "grep of a rare literal",
    "delete": "delete one file",
}
AT_MOST = 2
SHARE = 10


def plan(size: Size) -> Part:
    """List, find, search and delete; the reference does so among a tenth of the files."""
    fewer = size.files // SHARE
    smaller = f"{REFERENCE}, {fewer:,} files"
    jobs = [Job("store", OURS, module(python_of(OURS), "store", size.files))]
    if REFERENCE in size.contenders:
        jobs.append(Job("store", smaller, module(python_of(REFERENCE), "store", fewer)))
    rows = [
        Row("one full search of the store", "store search"),
        *(Row(said, f"store {work}") for work, said in WORKS.items()),
        *(
            Row(f"{said}, beside one full search", f"store {work}", "store search")
            for work, said in WORKS.items()
        ),
        Row("files found", "store globbed", counts=True),
        Row("lines found", "store grepped", counts=True),
    ]
    table = Table(
        f"{size.files:,} files in an InMemoryStore",
        "milliseconds",
        [job.contender for job in jobs],
        rows,
        notes=[
            f"The reference is given {fewer:,} files: among 20,000 it takes 17 seconds for each operation."
        ],
        targets=[
            Target(
                f"{said} in a store, beside one full search",
                (f"store {work}", OURS),
                ("store search", OURS),
                AT_MOST,
            )
            for work, said in WORKS.items()
        ],
    )
    return Part(jobs, [table])

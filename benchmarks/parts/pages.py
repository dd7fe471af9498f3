"""Ten lines out of the middle of a large file, beside a seek to their place."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.contenders import OURS, REFERENCE, python_of
from benchmarks.parts import Part, Size, module
from benchmarks.report import Row, Table, Target
from benchmarks.rounds import Job

PLAIN = "seek"
BYTES_A_FILE = 10_000
MOST_MORE = 20
LINE = 92


@contextmanager
def log(size: Size) -> Iterator[str]:
    """Make one file of lines of equal length, last changed an hour ago, and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="benchmark-pages-") as root:
        path = Path(root) / "big.log"
        with path.open("wb") as file:
            for number in range(size.files * BYTES_A_FILE // LINE):
                file.write(b"%09d ".ljust(LINE, b"x")[: LINE + 2] % number + b"\n")
        an_hour_ago = time.time() - 3600
        os.utime(path, (an_hour_ago, an_hour_ago))
        yield root


def plan(size: Size, root: str) -> Part:
    """Read the lines for the first time, and further ones near them."""
    lines = size.files * BYTES_A_FILE // LINE
    jobs = [Job("pages", PLAIN, module(sys.executable, "pages", "seek", root, lines // 2))]
    jobs += [
        Job("pages", each, module(python_of(each), "pages", "read", root, lines // 2)) for each in size.deep
    ]
    table = Table(
        f"Ten lines out of the middle of {size.files * BYTES_A_FILE // 1_000_000} MB",
        "milliseconds",
        [PLAIN, *size.deep],
        [Row("the first page", "pages first"), Row("the next page", "pages next")],
        ratios=[(OURS, each) for each in size.deep if each == REFERENCE],
        targets=[
            Target(
                "the first page, beside a seek",
                ("pages first", OURS),
                ("pages first", PLAIN),
                MOST_MORE,
                True,
            ),
            Target(
                "the next page, beside a seek", ("pages next", OURS), ("pages next", PLAIN), MOST_MORE, True
            ),
        ],
        notes=[
            "seek knows at which byte the lines start. The first page counts the lines before it and"
            " remembers where some start, so that the next page is a seek too."
        ],
    )
    return Part(jobs, [table])

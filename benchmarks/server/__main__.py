"""Measure the server: `python -m benchmarks.server overhead`, `load` or `drill`; each has `--help`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.server.drill import Size, drill, on_postgres, on_sqlite


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drilling = commands.add_parser("drill", help="kill processes while runs are at work, and count")
    drilling.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    drilling.add_argument("--runs", type=int, default=100)
    drilling.add_argument("--pause", type=float, default=5.0, help="seconds between two blows")
    options = parser.parse_args()
    return _drill(options)


def _drill(options: argparse.Namespace) -> int:
    size = Size(runs=options.runs, pause=options.pause)
    if options.database == "sqlite":
        size = Size(runs=options.runs, pause=options.pause, server_restarts=5)
    scene = on_sqlite if options.database == "sqlite" else on_postgres
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        with scene(Path(directory), size) as opened:
            found = asyncio.run(drill(opened, size))
        log = (Path(directory) / "log").read_text(errors="replace").splitlines()
    print("\n".join(found.lines(size)))
    if not found.is_right(size):
        print("\n".join(["", "The end of the log:", *log[-60:]]))
    return int(not found.is_right(size))


if __name__ == "__main__":
    sys.exit(main())

"""Measure the server: `python -m benchmarks.server load` (or another command below); each has `--help`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.server.drill import Size, drill, on_postgres, on_sqlite
from benchmarks.server.growth import growth
from benchmarks.server.load import cancelling, load, overhead
from benchmarks.server.programs import Server, deepagents, install_langgraph_dev, langgraph_dev
from benchmarks.server.scale import scale
from benchmarks.server.share import share


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drilling = commands.add_parser("drill", help="kill processes while runs are at work, and count")
    drilling.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    drilling.add_argument("--runs", type=int, default=100)
    drilling.add_argument("--pause", type=float, default=3.0, help="seconds between two blows")
    drilling.add_argument(
        "--kills", type=int, default=12, help="how often a process that runs agents is killed"
    )
    growing = commands.add_parser("growth", help="keep more and more threads, and see what requests cost")
    growing.add_argument("--database", choices=("postgres", "sqlite"), default="sqlite")
    sharing = commands.add_parser("share", help="see what a noisy owner does to a quiet one")
    sharing.add_argument("--times", type=int, default=60)
    commands.add_parser("scale", help="count transactions and notices on a PostgreSQL")
    loading = commands.add_parser("load", help="stream to many clients, beside langgraph dev")
    loading.add_argument("--clients", type=int, default=200)
    loading.add_argument("--seconds", type=float, default=60, help="600 to see whether memory stays flat")
    loading.add_argument("--times", type=int, default=40, help="runs from which the overhead is measured")
    loading.add_argument("--alone", action="store_true", help="leave langgraph dev out")
    options = parser.parse_args()
    return {"drill": _drill, "growth": _grow, "load": _load, "scale": _scale, "share": _share}[
        options.command
    ](options)


def _share(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        print("\n".join(asyncio.run(share(Path(directory), options.times))))
    return 0


def _scale(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        for line in scale(Path(directory)):
            print(line, flush=True)
    return 0


def _grow(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        for line in growth(Path(directory), options.database):
            print(line, flush=True)
    return 0


def _load(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        ours = deepagents(Path(directory) / "ours", "--runs", str(options.clients))
        servers = {"deepagents serve": ours}
        if not options.alone:
            install_langgraph_dev()
            servers["langgraph dev"] = langgraph_dev(Path(directory) / "theirs", options.clients)
        for name, server in servers.items():
            print("\n".join([f"{name}:", *_measure(server, options), ""]), flush=True)
    return 0


def _measure(server: Server, options: argparse.Namespace) -> list[str]:
    server.start()
    try:
        server.wait()
        asyncio.run(load(server, 2, 2))
        costs = asyncio.run(overhead(server, options.times))
        cancelled = asyncio.run(cancelling(server, options.times))
        return [*costs, cancelled, *asyncio.run(load(server, options.clients, options.seconds)).lines()]
    finally:
        server.end()


def _drill(options: argparse.Namespace) -> int:
    size, scene = Size(runs=options.runs, pause=options.pause, kills=options.kills), on_postgres
    if options.database == "sqlite":
        # There the server is what runs agents.
        size = replace(size, kills=0, sleeps=0, database_restarts=0, server_kills=options.kills)
        scene = on_sqlite
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

"""Write which calls of LangGraph's clients work on this server, and on `langgraph dev`."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langgraph_sdk import get_client, get_sync_client

from tests.server.clients.calls import STORIES
from tests.server.serving import GRAPHS, serving
from tests.server.test_javascript import install, tell

PAGE = Path(__file__).parents[3] / "docs" / "agent-server-clients.md"
SECONDS = 30
HEAD = """# Which clients work

The same scripts, against `deepagents serve` and against `langgraph dev` of langgraph-api {other}: each public
call of `langgraph_sdk` {sdk} in Python, with the blocking client and the other one, then the stories of the
JavaScript clients. `make clients` writes this page. What is empty works; the rest says how it fails.

deep-agents-ui and agent-chat-ui are no packages that could be installed, so their stories make the calls that
they make, with the same parameters.

| call | `deepagents serve` | `langgraph dev` |
|---|---|---|
"""


@contextmanager
def langgraph_dev(directory: Path) -> Generator[str]:
    """Run `langgraph dev`, which keeps nothing and calls nobody."""
    (directory / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": GRAPHS}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "HOME": str(directory)}
    with (directory / "log").open("wb") as log:
        running = subprocess.Popen(
            [*command, "--n-jobs-per-worker", "10", "--port", str(port)],
            cwd=directory,
            env={**os.environ, **quiet},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(f"http://127.0.0.1:{port}/ok")
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(30)


def _wait(address: str) -> None:
    for _ in range(120):
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise SystemExit(f"{address} does not answer.")


def outcome(make: Callable[..., Any], url: str, name: str) -> str:
    """Run one story in a thread of its own, since it may never end."""
    found = [f"no end in {SECONDS} s"]

    async def run() -> None:
        client = make(url=url, api_key=None)
        try:
            await STORIES[name](client)
            found[0] = ""
        except Exception as error:  # noqa: BLE001
            # Whatever it is, the table says so.
            text = str(error) or "wrong answer"
            found[0] = f"{type(error).__name__}: {text}".splitlines()[0][:90].replace("|", "/")

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    thread.join(SECONDS)
    return found[0]


def rows(url: str) -> dict[str, str]:
    """Return how each call ends on a server."""
    found: dict[str, str] = {}
    for name in sorted(STORIES):
        both = [outcome(make, url, name) for make in (get_client, get_sync_client)]
        found[f"`{name}`"] = both[0] or (both[1] and f"blocking: {both[1]}")
    javascript = {f"JavaScript: {name}": error or "" for name, error in tell(url).items()}
    return found | {name: error.splitlines()[0][:90] if error else "" for name, error in javascript.items()}


def main() -> None:
    install()
    with TemporaryDirectory() as place:
        with serving(Path(place)) as url:
            ours = rows(url)
        with langgraph_dev(Path(place)) as url:
            theirs = rows(url)
    head = HEAD.format(other=version("langgraph-api"), sdk=version("langgraph-sdk"))
    # What is written by hand below the table stays.
    _, mark, rest = PAGE.read_text().partition("\n## ")
    table = "".join(f"| {name} | {ours[name]} | {theirs[name]} |\n" for name in ours)
    PAGE.write_text(head + table + mark + rest)
    failed = [sum(map(bool, found.values())) for found in (ours, theirs)]
    sys.stdout.write(f"{PAGE.name}: {failed[0]} fail here, {failed[1]} there.\n")


if __name__ == "__main__":
    main()
    # A story that did not end has a thread that would keep the program.
    os._exit(0)

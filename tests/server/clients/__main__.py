"""Write which clients of LangGraph and which public pages work on this server, and on `langgraph dev`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langgraph_sdk import get_client, get_sync_client

from tests.server.clients.calls import STORIES
from tests.server.pages import build as pages
from tests.server.serving import GRAPHS, serving
from tests.server.test_javascript import install, tell

PAGE = Path(__file__).parents[3] / "docs" / "agent-server-clients.md"
PICTURE = PAGE.parent / "concepts" / "agent-chat-ui.png"
SECONDS = 30
LONGEST_START = 60
HEAD = """# Which clients work

The same scripts, against `deepagents serve` and against `langgraph dev` of langgraph-api {other}: each public
call of `langgraph_sdk` {sdk} in Python, with the blocking client and the other one, the stories of the
JavaScript clients, and at the end two public chat pages in a browser. `make clients` writes this page. What
is empty works; the rest says how it fails.

| call | `deepagents serve` | `langgraph dev` |
|---|---|---|
"""
IN_A_BROWSER = """## In a browser

Two public chat pages, used in headless Chromium as a person uses them: agent-chat-ui, as version
{create-agent-chat-app} of the npm package `create-agent-chat-app` brings it, without a change; and the
components of the npm package `deep-agents-ui` {deep-agents-ui}, in a small page that puts them together as
its README does.

Both releases know an older form of questions to a person, that of LangGraph's agent inbox. A question of
`interrupt_on` has the form that LangChain uses now, so these releases show it, but have no buttons for it.
In the second package a page brings the buttons, and a changed file cannot be saved. This holds on both
servers.

| what a person does | `deepagents serve` | `langgraph dev` |
|---|---|---|
"""


@contextmanager
def langgraph_dev(directory: Path, graphs: Mapping[str, str]) -> Generator[str]:
    """Run `langgraph dev`, which keeps nothing and calls nobody."""
    (directory / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": dict(graphs)}))
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
    ends = time.monotonic() + LONGEST_START
    while time.monotonic() < ends:
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
    return found | {f"JavaScript: {name}": error for name, error in _short(tell(url)).items()}


def _short(told: Mapping[str, str | None]) -> dict[str, str]:
    return {name: error.splitlines()[0][:90] if error else "" for name, error in told.items()}


def browse(url: str, picture: Path | None = None) -> dict[str, str]:
    """Return how each story of the pages ends on a server; none if they cannot be used here."""
    try:
        pages.build()
        return _short(pages.tell(url, picture))
    except pages.UnavailableError as error:
        sys.stdout.write(f"What a browser showed stays as it was: {error}.\n")
        return {}


def _table(head: str, ours: dict[str, str], theirs: dict[str, str]) -> str:
    sys.stdout.write(f"{sum(map(bool, ours.values()))} fail here, {sum(map(bool, theirs.values()))} there.\n")
    return head + "".join(f"| {name} | {ours[name]} | {theirs[name]} |\n" for name in ours)


def main() -> None:
    install()
    graphs = {**GRAPHS, **pages.GRAPHS}
    with TemporaryDirectory() as place:
        with serving(Path(place), graphs=graphs) as url:
            ours, seen = rows(url), browse(url, PICTURE)
        with langgraph_dev(Path(place), graphs) as url:
            theirs, seen_there = rows(url), browse(url)
    _, browser, differences = re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)
    if seen and seen_there:
        browser = _table(IN_A_BROWSER.format(**pages.PACKAGES), seen, seen_there)
    calls = _table(HEAD.format(other=version("langgraph-api"), sdk=version("langgraph-sdk")), ours, theirs)
    # What is written by hand below the tables stays.
    PAGE.write_text(f"{calls}\n{browser.strip()}\n\n{differences}")


if __name__ == "__main__":
    main()
    # A story that did not end has a thread that would keep the program.
    os._exit(0)

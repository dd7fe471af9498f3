"""The public chat pages for agent servers: fetched from npm, built, served and used in a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Thread
from typing import Any

from tests.server.test_javascript import node

SOURCES = Path(__file__).parent
PLACE = SOURCES.parents[2] / "build" / "pages"
GRAPHS = {name: f"{SOURCES / 'agents.py'}:{name}" for name in ("pilot", "clerk")}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DAY = "2026-11-20"
"""The pages bring no lock file, so npm takes what was released before this day."""
PACKAGES: dict[str, str] = json.loads((SOURCES / "package.json").read_text())["dependencies"]

_VITE = "node_modules/vite/bin/vite.js"
_TEMPLATE = PLACE / "node_modules" / "create-agent-chat-app" / "templates" / "vite"
_CHAT = PLACE / "agent-chat-ui"


class UnavailableError(RuntimeError):
    """The pages cannot be used on this machine; the message says what is missing."""


def build() -> None:
    """Build the pages, once for each change of what they are made of.

    Raises:
        UnavailableError: if npm cannot fetch the packages, which mostly means that it reaches no registry.
    """
    own = {name: (SOURCES / name).read_text() for name in ("package.json", "index.html", "main.jsx")}
    wanted = json.dumps([DAY, own])
    PLACE.mkdir(parents=True, exist_ok=True)
    built = PLACE / "built"
    if not built.is_file() or built.read_text() != wanted:
        for name, text in own.items():
            (PLACE / name).write_text(text)
        _install(PLACE)
        _run(PLACE, _VITE, "build", "--target", "esnext")
        shutil.copytree(_TEMPLATE, _CHAT, dirs_exist_ok=True)
        _install(_CHAT)
        _run(_CHAT, _VITE, "build")
        built.write_text(wanted)
    shutil.copy(SOURCES / "stories.mjs", PLACE)


def _install(place: Path) -> None:
    npm = "lib/node_modules/npm/bin/npm-cli.js"
    _run(place, npm, "install", "--before", DAY, "--ignore-scripts", "--no-audit", "--no-fund")


def _run(place: Path, *command: str) -> str:
    try:
        made = node(*command, seconds=300, place=place)
    except TimeoutExpired as late:
        raise UnavailableError(f"{' '.join(command[:2])} did not end in {late.timeout:.0f} s") from late
    if made.returncode:
        raise UnavailableError(f"{' '.join(command[:2])} failed: {made.stderr[-300:]}")
    return made.stdout


def tell(url: str, picture: Path | None = None) -> dict[str, str | None]:
    """Use the pages as a person would, with a server, and return what went wrong in each story.

    Raises:
        UnavailableError: if there is no browser.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise UnavailableError(f"none of {', '.join(BROWSERS)} is installed")
    with ExitStack() as opened:
        pages = [opened.enter_context(_served(place / "dist")) for place in (_CHAT, PLACE)]
        told = _run(PLACE, "stories.mjs", browser, url, *pages, *([str(picture)] if picture else []))
    return json.loads(told.splitlines()[-1])


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing about each request."""


class _Pages(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a browser leaves before it has read all."""


@contextmanager
def _served(directory: Path) -> Generator[str]:
    with _Pages(("127.0.0.1", 0), partial(_Handler, directory=str(directory))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()

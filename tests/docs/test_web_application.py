"""The web application of the documents keeps users apart, streams, and goes on after it was killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from deepagents.testing import call
from tests.architecture.source import ROOT
from tests.docs.provider import Script, serve

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "concepts" / "web-application.md").read_text("utf-8")
ANN, BO = ({"authorization": f"Bearer key-of-{name}"} for name in ("ann", "bo"))


def shown(language: str) -> str:
    """Return the block of this language that the page shows."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return block


@contextmanager
def running(folder: Path, model: str) -> Generator[tuple[httpx.Client, subprocess.Popen[str]]]:
    """Start the application as the page says; it is killed at the end."""
    environment = {**os.environ, "ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "none"}
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        lines = iter(process.stderr.readline, "")
        address = next(found[0] for line in lines if (found := re.search(r"http://[\d.:]+", line)))
        with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
            yield client, process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stderr
        process.stderr.close()


def stream(client: httpx.Client, user: dict[str, str], given: dict[str, str]) -> Generator[dict[str, Any]]:
    """Send a message to the thread `main`, and yield the events as they come."""
    with client.stream("POST", "/threads/main", headers=user, json=given) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if line:
                yield json.loads(line.removeprefix("data: "))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(shown("python"))
    (tmp_path / "page.html").write_text(shown("html"))
    return tmp_path


def test_a_run_that_was_killed_goes_on_and_users_stay_apart(folder: Path) -> None:
    asked, over = Event(), Event()

    def hang(request: dict[str, Any]) -> str:
        asked.set()
        over.wait()
        return "Nobody hears this."

    write = call("write_file", file_path="/note.md", content="Ann's")
    script = Script({"*": [write, hang, "It is in /note.md.", call("ls", path="/"), "Nothing."]})
    with serve(script) as model:
        with running(folder, model) as (client, process):
            assert "<form>" in client.get("/").text
            assert client.post("/threads/main", json={"text": "Hello"}).status_code == 401
            events = stream(client, ANN, {"text": "Note it in /note.md."})
            assert any(event["type"] == "tool_finished" for event in events)
            asked.wait()
            process.send_signal(signal.SIGKILL)
            process.wait()
        over.set()
        with running(folder, model) as (client, _):
            assert client.post("/threads/main", headers=BO, json={}).status_code == 409
            *_, last = stream(client, ANN, {})
            assert last["text"] == "It is in /note.md."
            assert client.post("/threads/main", headers=ANN, json={}).status_code == 409
            results = [each for each in stream(client, BO, {"text": "What is there?"}) if "status" in each]
    assert "note.md" not in json.dumps(results)
    assert script.unused() == []

"""A person sees which models can be used here, and what the others need."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from deepagents_cli.project.models import ModelHere, find_models
from tests.cli.conftest import Command


class _Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": [{"id": "tiny\x1b[2J"}]}).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of this machine with one model, whose name would clear the screen."""
    with HTTPServer(("127.0.0.1", 0), _Server) as listening:
        thread = Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://127.0.0.1:{listening.server_port}/v1"
        monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", address)
        yield address
        listening.shutdown()
        thread.join()


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A port that is taken, and where nobody answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", f"http://127.0.0.1:{silent.getsockname()[1]}")
        yield


def by_name(environment: dict[str, str]) -> dict[str, ModelHere]:
    return {each.name: each for each in find_models(environment)}


@pytest.mark.usefixtures("no_server")
def test_a_missing_key_is_named_by_its_variable_and_never_shown() -> None:
    without = by_name({})["anthropic:claude-sonnet-4-6"]
    given = by_name({"ANTHROPIC_API_KEY": "sk-secret"})

    assert (without.usable, without.missing) == (False, "set ANTHROPIC_API_KEY")
    assert given["anthropic:claude-sonnet-4-6"].usable
    assert "secret" not in str(given)
    assert next(iter(given.values())).usable


@pytest.mark.usefixtures("no_server")
def test_a_missing_package_is_named_with_how_to_get_it() -> None:
    assert (
        by_name({"GROQ_API_KEY": "x"})["groq:openai/gpt-oss-120b"].missing == "pip install 'langchain-groq'"
    )


@pytest.mark.usefixtures("no_server")
def test_missing_weights_are_named_with_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv("DEEPAGENTS_CACHE", str(tmp_path))

    assert "deepagents models pull" in (by_name({})["local:qwen2.5-coder-0.5b"].missing or "")


def test_a_server_of_this_machine_is_found_and_its_names_are_cleaned(server: str) -> None:
    found = by_name({})[r"local-server:tiny\x1b[2J"]

    assert (found.usable, found.detail) == (True, f"on this machine, at {server}")


@pytest.mark.usefixtures("no_server")
def test_the_list_shows_them(cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    lines = [line.split() for line in cli("models", "list").out.splitlines()]
    assert ["anthropic:claude-sonnet-4-6", "needs:", "set", "ANTHROPIC_API_KEY"] in lines

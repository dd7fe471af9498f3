"""A model server on this machine is found, asked for its models, and used."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from deepagents import ProviderProfile, register_provider_profile
from deepagents.errors import UnknownModel
from deepagents.models import resolve_model

ADDRESS = "DEEPAGENTS_LOCAL_SERVER"


class Server(BaseHTTPRequestHandler):
    """Speaks as much of the OpenAI protocol as one answer needs."""

    models: tuple[str, ...] = ("small", "large")

    def do_GET(self) -> None:
        self._say({"data": [{"id": name} for name in self.models]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = asked.get("model", "")
        said = {"role": "assistant", "content": f"{model} heard {asked['messages'][-1]['content']}"}
        self._say({"id": "1", "object": "chat.completion", "created": 1, "model": model,
                   "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]})  # fmt: skip

    def log_message(self, format: str, *args: object) -> None:
        return

    def _say(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class EmptyServer(Server):
    models = ()


class OddServer(Server):
    def do_GET(self) -> None:
        self._say({"unexpected": []})


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serving(Server) as address:
        monkeypatch.setenv(ADDRESS, f"{address}/")
        yield address


@pytest.mark.parametrize(("name", "model"), [("large", "large"), ("", "small")])
def test_a_named_model_or_the_first_answers(name: str, model: str, server: str) -> None:
    chat = resolve_model(f"local-server:{name}")

    assert chat.invoke("hello").text == f"{model} heard hello"


@pytest.mark.usefixtures("server")
def test_a_provider_profile_says_what_its_models_are_made_with() -> None:
    register_provider_profile("local-server:large", ProviderProfile({"timeout": 9, "max_retries": 0}))

    made: list[Any] = [resolve_model(f"local-server:{name}") for name in ("large", "small")]

    assert [(model.request_timeout, model.max_retries) for model in made] == [(9, 0), (None, None)]


def test_a_model_that_the_server_lacks_is_refused_with_what_it_has(server: str) -> None:
    with pytest.raises(UnknownModel, match="'huge'.*small, large"):
        resolve_model("local-server:huge")


@pytest.mark.parametrize(
    ("handler", "reason"), [(EmptyServer, "has none"), (OddServer, "No local model server")]
)
def test_a_server_without_models_is_refused(
    handler: type[BaseHTTPRequestHandler], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(handler) as address:
        monkeypatch.setenv(ADDRESS, address)
        with pytest.raises(UnknownModel, match=reason):
            resolve_model("local-server:")


def test_no_server_at_all_is_said_with_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Server) as address:
        monkeypatch.setenv(ADDRESS, address)
    with pytest.raises(UnknownModel, match=address):
        resolve_model("local-server:small")


class NoServer(BaseHTTPRequestHandler):
    """Speaks another protocol than HTTP."""

    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(b"220 ready\r\n")


def test_what_is_no_model_server_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(NoServer) as address:
        monkeypatch.setenv(ADDRESS, address)
        with pytest.raises(UnknownModel, match="No local model server"):
            resolve_model("local-server:")


def test_an_address_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, "my-server/v1")
    with pytest.raises(UnknownModel, match="my-server/v1"):
        resolve_model("local-server:")

"""A model server on this machine is found, asked for its models, and used."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessageChunk
from openai import BadRequestError

from deepagents import ProviderProfile, register_provider_profile
from deepagents.errors import UnknownModel
from deepagents.models import resolve_model
from tests.conftest import CallMode

ADDRESS = "DEEPAGENTS_LOCAL_SERVER"


class Server(BaseHTTPRequestHandler):
    """Speaks as much of the OpenAI protocol as one answer needs."""

    models: tuple[str, ...] = ("small", "large")
    reads_for = 0.0

    def do_GET(self) -> None:
        self._say({"data": [{"id": name} for name in self.models]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked.get("stream"):
            self._stream(asked)
            return
        model = asked.get("model", "")
        said = {"role": "assistant", "content": f"{model} heard {asked['messages'][-1]['content']}"}
        self._say({"id": "1", "object": "chat.completion", "created": 1, "model": model,
                   "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]})  # fmt: skip

    def _stream(self, asked: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        Event().wait(self.reads_for)
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "small"}
        said = {"index": 0, "delta": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        chunks: list[dict[str, Any]] = [{**head, "choices": [said]}]
        if asked.get("stream_options", {}).get("include_usage"):
            chunks.append({**head, "choices": [], "usage": usage})
        for chunk in (*map(json.dumps, chunks), "[DONE]"):
            self.wfile.write(f"data: {chunk}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        return

    def _say(self, answer: dict[str, Any], status: int = 200) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class StrictServer(Server):
    """Refuses what it does not know."""

    refused: ClassVar[list[str]] = []

    def _stream(self, asked: dict[str, Any]) -> None:
        if "stream_options" in asked:
            self.refused.append(asked["messages"][-1]["content"])
            self._say({"error": {"message": "stream_options: extra fields not permitted"}}, 400)
        elif asked["messages"][-1]["content"] == "wrong":
            self._say({"error": {"message": "no such thing"}}, 400)
        else:
            super()._stream(asked)


class EmptyServer(Server):
    models = ()


class OddServer(Server):
    def do_GET(self) -> None:
        self._say({"unexpected": []})


def joined(pieces: list[AIMessageChunk]) -> AIMessageChunk:
    return pieces[0] + pieces[1:]


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


class SlowServer(Server):
    """Reads a prompt for longer than the bound that LangChain's class has for OpenAI."""

    reads_for = 0.5


@pytest.mark.usefixtures("server")
def test_no_certificates_are_loaded_for_what_is_not_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_mode: CallMode
) -> None:
    # They are looked for where this says: whoever loads them fails.
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))

    assert call_mode.invoke(resolve_model("local-server:small"), "you").text == "small heard you"


async def test_a_server_that_reads_for_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGCHAIN_OPENAI_STREAM_CHUNK_TIMEOUT_S", "0.05")
    with serving(SlowServer) as address:
        monkeypatch.setenv(ADDRESS, address)
        pieces = [piece async for piece in resolve_model("local-server:").astream("Hello?")]
    assert "".join(piece.text for piece in pieces) == "Hello."


@pytest.mark.usefixtures("server")
async def test_the_tokens_of_a_stream_are_counted() -> None:
    chat = resolve_model("local-server:small")
    pieces = [piece async for piece in chat.astream("hello")]

    for whole in (joined(pieces), joined([*chat.stream("hello")])):
        assert whole.text == "Hello."
        assert whole.usage_metadata
        assert whole.usage_metadata["total_tokens"] == 10


async def test_a_server_that_cannot_be_asked_to_count_answers_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(StrictServer) as address:
        monkeypatch.setenv(ADDRESS, address)
        one, other = resolve_model("local-server:small"), resolve_model("local-server:small")

        assert [each.text for each in one.stream("one")][0] == "Hello."
        assert [each.text async for each in other.astream("other")][0] == "Hello."
        with pytest.raises(BadRequestError, match="no such thing"):
            list(one.stream("wrong"))

    assert StrictServer.refused == ["one", "other"], "it is asked once"


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

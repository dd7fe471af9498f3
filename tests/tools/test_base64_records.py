"""Media that the oldest agents kept as base64 in records of text are shown as media."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from deepagents import create_deep_agent
from deepagents.backends import StateBackend, StoreBackend
from deepagents.backends.protocol import FileData, ReadResult
from deepagents.backends.utils import create_file_data
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(100)).decode()
PDF = base64.b64encode(b"%PDF-1.7\n" + bytes(range(200))).decode()


def shown(call_mode: CallMode, path: str, **options: Any) -> Any:
    files = options.pop("files", None)
    with ScriptedModel(call("read_file", file_path=path), "Done.") as model:
        agent = create_deep_agent(model, **options)
        result = call_mode.invoke(agent, {"messages": "Go", **({"files": files} if files else {})})
    return next(message for message in result["messages"] if message.type == "tool").content


@pytest.mark.parametrize(("path", "content"), [("/p.png", PNG), ("/d.pdf", PDF)])
def test_a_record_in_state_is_shown_as_what_it_is(call_mode: CallMode, path: str, content: str) -> None:
    (block,) = shown(call_mode, path, files={path: create_file_data(content)})

    assert block["base64"] == content


def test_a_record_with_lines_is_shown_as_what_it_is(call_mode: CallMode) -> None:
    (block,) = shown(call_mode, "/p.png", files={"/p.png": {"content": [PNG]}})

    assert block["base64"] == PNG


def test_what_was_written_to_a_store_as_base64_is_shown_as_what_it_is(call_mode: CallMode) -> None:
    store = InMemoryStore()
    backend = StoreBackend(store=store, namespace=lambda _: ("files",))
    call_mode.call(backend, "write", "/p.png", PNG)

    (block,) = shown(call_mode, "/p.png", backend=backend, store=store)
    assert block["base64"] == PNG


def test_a_backend_that_answers_base64_as_text_is_understood(call_mode: CallMode) -> None:
    class Plain(StateBackend):
        def read(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
            return ReadResult(file_data=FileData(content=PNG, encoding="utf-8"))

    (block,) = shown(call_mode, "/p.png", backend=Plain())
    assert block["base64"] == PNG


def test_text_that_only_looks_a_little_like_base64_stays_text(call_mode: CallMode) -> None:
    assert "QUJD" in shown(call_mode, "/p.png", files={"/p.png": create_file_data("QUJD")})

"""Providers compact a conversation themselves where a model asks for it; the library keeps the archive."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.errors import ConfigError
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.middleware.claude import Claude, serving
from tests.middleware.voyages import ARCHIVE, THREAD, research

SETTING = {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]}
NOTES = {"type": "compaction", "content": "The whale is white."}


def compacting(claude: Claude, *, at: int, block: Any = NOTES, **settings: Any) -> Any:
    """Make a model whose provider compacts before it answers the request of this number, counted from 1."""
    claude.compactions[at] = [block]
    for number in range(at):
        claude.will_call("research", topic=f"whale {number}")
    given = {"betas": ["compact-2026-01-12"], "context_management": SETTING, **settings}
    return claude.model(profile={"max_input_tokens": 4_500}, **given)


def text_of(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"])


def test_anthropic_writes_the_summary_and_the_library_keeps_words_and_archive(call_mode: CallMode) -> None:
    with serving() as claude:
        agent = create_deep_agent(compacting(claude, at=8), tools=[research], checkpointer=InMemorySaver())
        result = call_mode.invoke(agent, {"messages": "Find the white whale."}, THREAD)
        more = call_mode.invoke(agent, {"messages": "Go on."}, THREAD)

    before, after = claude.asked[7], claude.asked[8]
    assert [each["context_management"] for each in claude.asked] == [SETTING] * 10
    # Far over its own trigger, the library has asked for no summary.
    assert len(text_of(before)) > 15_000
    assert "<summary>" not in text_of(before)
    assert "The whale is white." in after["messages"][0]["content"]
    assert "Find the white whale." in after["messages"][0]["content"]
    assert ARCHIVE in after["messages"][0]["content"]
    assert [each["role"] for each in after["messages"]] == ["user", "assistant", "user"]
    assert "compaction" not in json.dumps(after["messages"])
    assert "search_history" in [each["name"] for each in after["tools"]]
    archive = result["files"][ARCHIVE]["content"]
    assert "About whale 0" in archive
    assert "About whale 7" not in archive
    assert len(result["messages"]) == 18
    assert claude.asked[9]["messages"][: len(after["messages"])] == after["messages"]
    assert more["messages"][-1].text == "Done."


def test_a_compaction_that_failed_changes_nothing() -> None:
    with serving() as claude:
        failed = {"type": "compaction", "content": None}
        agent = create_deep_agent(compacting(claude, at=2, block=failed), tools=[research])
        result = agent.invoke({"messages": "Find the white whale."}, THREAD)

    assert "About whale 0" in text_of(claude.asked[-1])
    assert ARCHIVE not in result.get("files", {})


def test_a_pause_after_compaction_is_refused() -> None:
    with serving() as claude:
        paused: Any = {"edits": [{"type": "compact_20260112", "pause_after_compaction": True}]}
        agent = create_deep_agent(compacting(claude, at=1, context_management=paused), tools=[research])
        with pytest.raises(ConfigError, match="pause_after_compaction"):
            agent.invoke({"messages": "Find the white whale."})


@contextmanager
def responding(*outputs: list[dict[str, Any]]) -> Generator[tuple[ChatOpenAI, list[dict[str, Any]]]]:
    """Serve OpenAI's Responses API with these outputs, and keep the requests."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = {
                "id": f"resp_{len(asked)}", "object": "response", "created_at": 0, "model": "gpt",
                "status": "completed", "output": outputs[len(asked) - 1], "parallel_tool_calls": True,
                "tool_choice": "auto", "tools": [],
            }  # fmt: skip
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    given: dict[str, Any] = {
        "model": "gpt", "api_key": "none", "max_retries": 0, "store": False,
        "base_url": f"http://127.0.0.1:{server.server_port}",
        "context_management": [{"type": "compaction", "compact_threshold": 100_000}],
    }  # fmt: skip
    try:
        yield ChatOpenAI(**given), asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asks_for(topic: str, number: int) -> dict[str, Any]:
    arguments = json.dumps({"topic": topic})
    return {
        "type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "research",
        "arguments": arguments, "status": "completed",
    }  # fmt: skip


def says(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


OPAQUE = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VjcmV0"}


def test_openai_gets_its_item_back_in_place_of_what_it_stands_for(call_mode: CallMode) -> None:
    outputs = [[asks_for("whale 0", 0)], [OPAQUE, asks_for("whale 1", 1)], [says("Done.")]]
    with responding(*outputs) as (model, asked):
        agent = create_deep_agent(model, tools=[research])
        result = call_mode.invoke(agent, {"messages": "Find the white whale."}, THREAD)

    sent = asked[2]["input"]
    assert asked[0]["context_management"] == [{"type": "compaction", "compact_threshold": 100_000}]
    kinds = [each.get("type") or each["role"] for each in sent]
    assert kinds[-3:] == ["compaction", "function_call", "function_call_output"]
    assert sent[-3]["encrypted_content"] == "c2VjcmV0"
    assert "About whale 0" not in json.dumps(sent)
    assert "About whale 0" in result["files"][ARCHIVE]["content"]


def test_another_model_is_not_shown_what_it_cannot_read() -> None:
    saver, outputs = InMemorySaver(), [[OPAQUE, says("Hm.")]]
    with responding(*outputs) as (model, _):
        create_deep_agent(model, checkpointer=saver).invoke({"messages": "Find it."}, THREAD)
    with ScriptedModel(call("ls", path="/"), "Done.") as other:
        create_deep_agent(other, checkpointer=saver).invoke({"messages": "Go on."}, THREAD)

    assert "c2VjcmV0" not in str(other.asked[-1].messages)
    assert "Find it." in str(other.asked[-1].messages)

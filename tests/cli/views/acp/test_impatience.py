"""Editors that are impatient: they cancel early, break off, send too much, and begin anew in the middle."""

from __future__ import annotations

import base64
from threading import Event
from time import monotonic

import pytest

from tests.cli.openai_server import OpenAIServer, Reply, call
from tests.cli.views.acp.conftest import PATIENCE, Message, RawEditor, Start

pytestmark = pytest.mark.slow

LARGE = 20_000_000


def test_a_prompt_is_cancelled_before_the_first_token(editor: RawEditor, server: OpenAIServer) -> None:
    held = Event()
    server.then(lambda request: Reply("Late." if held.wait(PATIENCE) else ""), "Here.")
    session = editor.new()
    number = editor.begin_prompt(session, "Think.")
    server.wait_for_request()

    editor.notify("session/cancel", sessionId=session)

    assert editor.wait_for(number)["stopReason"] == "cancelled"
    held.set()
    assert editor.prompt(session, "Are you there?") == "end_turn"
    assert editor.said() == "Here."


@pytest.mark.parametrize("kind", ["picture", "text", "blob", "link"])
def test_a_large_attachment_is_left_out_and_named(editor: RawEditor, server: OpenAIServer, kind: str) -> None:
    server.then("Seen.")
    uri = (editor.directory / "large.txt").as_uri()
    data = base64.b64encode(b"\x89PNG" + b"x" * LARGE).decode() if kind in ("picture", "blob") else ""
    block: Message
    match kind:
        case "picture":
            block = {"type": "image", "data": data, "mimeType": "image/png"}
        case "text":
            block = {"type": "resource", "resource": {"uri": uri, "text": "x" * LARGE}}
        case "blob":
            block = {"type": "resource", "resource": {"uri": uri, "blob": data}}
        case _:
            (editor.directory / "large.txt").write_bytes(b"x" * LARGE)
            block = {"type": "resource_link", "name": "large.txt", "uri": uri}

    assert editor.prompt(editor.new(), "Look at ", block) == "end_turn"

    sent = str(server.requests[-1].body)
    assert "[Not attached: " in sent
    assert len(sent) < 200_000


@pytest.mark.parametrize("half", [True, False])
def test_an_editor_that_breaks_off_ends_the_agent(start: Start, server: OpenAIServer, half: bool) -> None:
    editor = start("--mode", "auto")
    editor.initialize(fs={"readTextFile": True, "writeTextFile": True})
    editor.on["fs/write_text_file"] = lambda params: None
    server.then(call("write_file", file_path="new.md", content="new\n"), "Done.")
    editor.begin_prompt(editor.new(), "Write.")
    while not editor.asked("fs/write_text_file"):
        editor.take()

    if half:
        editor.write(b'{"jsonrpc": "2.0", "id": 0, "resu')
    began = monotonic()
    assert editor.process.end() == 0

    assert monotonic() - began < PATIENCE / 2
    assert "Traceback" not in editor.process.log


def test_an_editor_that_reads_no_more_ends_the_agent(start: Start, server: OpenAIServer) -> None:
    editor = start("--mode", "auto")
    editor.initialize()
    server.then(call("execute", command="seq 100000"), Reply(" ".join(["word"] * 20_000)))
    editor.begin_prompt(editor.new(), "Print much.")
    editor.wait_for_update("tool_call")

    editor.process.reading.close()
    server.wait_for_request()

    assert editor.process.end() == 0
    assert "Traceback" not in editor.process.log


def test_an_editor_begins_anew_in_the_middle_of_a_turn(start: Start, server: OpenAIServer) -> None:
    first, second = start("--mode", "auto"), start("--mode", "auto")
    first.initialize()
    second.initialize()
    server.then(call("execute", command="echo begun; sleep 300"), "Never.")
    session = first.new()
    first.begin_prompt(session, "Run.")
    first.wait_for_update("tool_call_update", status="in_progress")

    first.process.writing.close()
    second.call("session/load", sessionId=session, cwd=str(second.directory), mcpServers=[])

    assert second.said("user_message_chunk") == "Run."
    assert [each["status"] for each in second.updates("tool_call_update")] == ["failed"]
    server.forget()
    server.then("I was stopped.")
    assert second.prompt(session, "What happened?") == "end_turn"
    assert second.said().endswith("I was stopped.")


def test_a_session_is_loaded_again_before_the_first_load_is_answered(
    editor: RawEditor, server: OpenAIServer
) -> None:
    server.then("Hello.")
    session = editor.new()
    editor.prompt(session, "Hi.")
    where = {"cwd": str(editor.directory), "mcpServers": []}
    first = editor.begin("session/load", sessionId=session, **where)
    second = editor.begin("session/load", sessionId=session, **where)

    editor.wait_for_answer(second)
    while not any(each.get("id") == first for each in editor.seen):
        editor.take()


def test_a_session_is_loaded_again_in_the_middle_of_a_turn(start: Start, server: OpenAIServer) -> None:
    editor = start("--mode", "auto")
    editor.initialize()
    server.then(call("execute", command="echo begun; sleep 300"), "Never.")
    session = editor.new()
    number = editor.begin_prompt(session, "Run.")
    editor.wait_for_update("tool_call_update", status="in_progress")

    loads = editor.begin("session/load", sessionId=session, cwd=str(editor.directory), mcpServers=[])

    assert editor.wait_for(number)["stopReason"] == "cancelled"
    editor.wait_for_answer(loads)
    server.forget()
    server.then("I was stopped.")
    assert editor.prompt(session, "What happened?") == "end_turn"

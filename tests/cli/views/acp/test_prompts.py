"""What an editor sends with a prompt: files that it names, buffers, selections and pictures."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.cli.openai_server import OpenAIServer
from tests.cli.views.acp.conftest import Failure, Message, RawEditor, choose

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()


def _link(path: Path, fragment: str = "") -> Message:
    return {"type": "resource_link", "name": path.name, "uri": f"{path.as_uri()}{fragment}"}


def _resource(uri: str, **held: Any) -> Message:
    return {"type": "resource", "resource": {"uri": uri, **held}}


def _sent(server: OpenAIServer) -> Any:
    return next(each["content"] for each in reversed(server.requests[-1].messages) if each["role"] == "user")


def test_files_that_are_named_are_read(editor: RawEditor, server: OpenAIServer) -> None:
    server.then("Seen.")
    odd = editor.directory / "a b.txt"
    odd.write_text("odd\n")
    (editor.directory / "src").mkdir()

    notes = editor.directory / "notes.md"
    links = [_link(notes, "#L1:2"), " and ", _link(odd), " in ", _link(editor.directory / "src")]
    assert editor.prompt(editor.new(), "Look at ", *links) == "end_turn"

    sent = _sent(server)
    assert sent[0]["text"] == "Look at @notes.md and @a b.txt in @src"
    assert [each["text"] for each in sent[1:]] == [
        '\n\n<file path="notes.md">\nfirst line\nsecond line\n\n</file>',
        '\n\n<file path="a b.txt">\nodd\n\n</file>',
    ]


def test_a_buffer_is_used_as_it_is(editor: RawEditor, server: OpenAIServer) -> None:
    server.then("Seen.")
    buffer = _resource((editor.directory / "notes.md").as_uri(), text="not saved yet\n")

    assert editor.prompt(editor.new(), "Look at ", buffer, ", please.") == "end_turn"

    assert _sent(server) == ('Look at @notes.md, please.\n\n<file path="notes.md">\nnot saved yet\n\n</file>')


def test_a_file_that_looks_like_a_secret_is_asked_about(editor: RawEditor, server: OpenAIServer) -> None:
    server.then("Seen.")
    secret = editor.directory / ".env"
    secret.write_text("KEY=hidden\n")
    editor.on["session/request_permission"] = choose("reject")

    buffer = _resource(secret.as_uri(), text="KEY=hidden\n")
    assert editor.prompt(editor.new(), "Look at ", buffer) == "end_turn"

    asked = editor.asked("session/request_permission")[0]
    assert "looks like it holds secrets" in asked["toolCall"]["title"]
    assert "hidden" not in str(server.requests[-1].body)


@pytest.mark.parametrize("by", ["cancel", "dismissal"])
def test_a_prompt_is_cancelled_at_the_question_about_its_file(
    editor: RawEditor, server: OpenAIServer, by: str
) -> None:
    server.forget()
    (editor.directory / ".env").write_text("KEY=hidden\n")
    session = editor.new()

    def handle(params: Message) -> Message | None:
        if by == "cancel":
            editor.notify("session/cancel", sessionId=session)
            return None
        return {"outcome": {"outcome": "cancelled"}}

    editor.on["session/request_permission"] = handle
    assert editor.prompt(session, "Look at ", _link(editor.directory / ".env")) == "cancelled"

    server.forget()
    server.then("Hello.")
    assert editor.prompt(session, "Hi.") == "end_turn"
    assert "hidden" not in str([each.body for each in server.requests])


@pytest.mark.parametrize("uri", ["http://[", "file:///" + "a" * 5_000])
def test_what_can_be_no_name_stays_a_text(editor: RawEditor, server: OpenAIServer, uri: str) -> None:
    server.then("Seen.")
    link = {"type": "resource_link", "name": "odd", "uri": uri}
    assert editor.prompt(editor.new(), "Look at ", link) == "end_turn"
    assert uri.removeprefix("file://") in str(_sent(server))


def test_what_lies_elsewhere_or_is_too_large_is_left_out_and_named(
    editor: RawEditor, server: OpenAIServer, tmp_path: Path
) -> None:
    server.then("Seen.")
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("not for the agent\n")
    blocks = [
        _link(elsewhere),
        _resource("file:///x/large.md", text="x" * 100_001),
        _resource("zed:///blob", blob="AAAA", mimeType="application/x-y"),
        {"type": "resource_link", "name": "a page", "uri": "https://example.org/a"},
    ]

    assert editor.prompt(editor.new(), *blocks) == "end_turn"

    sent = str(_sent(server))
    assert "not for the agent" not in sent
    assert f"[Not attached: '{elsewhere}' lies outside" in sent
    assert "[Not attached: /x/large.md has over 100,000 characters" in sent
    assert "[Not attached: zed:///blob is neither text nor a picture]" in sent
    assert "https://example.org/a" in sent
    assert "Sent without a file" in editor.said()


def test_pictures_reach_the_model(editor: RawEditor, server: OpenAIServer) -> None:
    server.then("Seen.")
    session = editor.new()

    picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
    held = _resource("file:///x/y.png", blob=PNG, mimeType="image/png")
    assert editor.prompt(session, "What is this?", picture, held) == "end_turn"

    shown = [each for each in _sent(server) if each["type"] == "image_url"]
    assert [each["image_url"]["url"] for each in shown] == [f"data:image/png;base64,{PNG}"] * 2
    with pytest.raises(Failure, match="not base64"):
        editor.prompt(session, {"type": "image", "data": "%%%", "mimeType": "image/png"})


def test_what_came_with_a_prompt_is_shown_again_as_it_came(
    editor: RawEditor, server: OpenAIServer, tmp_path: Path
) -> None:
    server.then("Seen.", "Again.")
    session = editor.new()
    notes, new = (editor.directory / "notes.md").as_uri(), (tmp_path / "new.md").as_uri()
    picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
    buffer = _resource(new, text="</file>\nnot saved\n")
    editor.prompt(session, "Look at ", _link(editor.directory / "notes.md"), " and ", buffer, ".", picture)
    editor.prompt(session, "Look again.")
    editor.call("session/close", sessionId=session)

    editor.call("session/load", sessionId=session, cwd=str(editor.directory), mcpServers=[])

    assert [each["content"] for each in editor.updates("user_message_chunk")] == [
        {"type": "text", "text": "Look at "},
        _resource(notes, text="first line\nsecond line\n"),
        {"type": "text", "text": " and "},
        buffer,
        {"type": "text", "text": "."},
        picture,
        {"type": "text", "text": "Look again."},
    ]

"""Lines that are no messages, and clients that do what no client should."""

from __future__ import annotations

import pytest

from deepagents_cli.views.acp.wire import LONGEST
from tests.cli.openai_server import OpenAIServer
from tests.cli.views.acp.conftest import Failure, Message, RawEditor


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"a library printed this\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"[" * 100_000 + b"\n", -32700),
        (b"[1]\n", -32600),
        (b"null\n", -32600),
        (b'{"jsonrpc": "2.0", "id": {"a": 1}, "result": null}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 0, "error": "a text"}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": ["initialize"]}\n', -32600),
    ],
)
def test_a_line_that_is_no_message_is_answered_and_ends_nothing(
    editor: RawEditor, line: bytes, code: int
) -> None:
    editor.write(b"\n" + line)

    assert _refusal(editor)["code"] == code
    assert editor.initialize()["protocolVersion"] == 1


def test_a_line_without_end_does_not_fill_the_memory(editor: RawEditor) -> None:
    piece = b"a" * (1 << 20)
    for _ in range((LONGEST >> 20) * 2):
        editor.write(piece)
    editor.write(b"\n")

    assert "more than" in _refusal(editor)["message"]
    assert editor.initialize()["protocolVersion"] == 1


def _refusal(editor: RawEditor) -> Message:
    while "error" not in (message := editor.take()):
        pass
    assert message["id"] is None
    return message["error"]


def test_unknown_methods_and_wrong_parameters_are_named(editor: RawEditor) -> None:
    session = editor.new()

    for method, params, code in (
        ("session/dance", {}, -32601),
        ("_zed.dev/feature", {}, -32601),
        ("session/new", {"cwd": 1, "mcpServers": []}, -32602),
        ("session/prompt", {"sessionId": session, "prompt": [{"type": "dance"}]}, -32602),
        ("session/set_mode", {"sessionId": session, "modeId": "god"}, -32602),
        ("session/list", {"cursor": "-1"}, -32602),
        ("session/load", {"sessionId": "../../x", "cwd": str(editor.directory), "mcpServers": []}, -32002),
    ):
        with pytest.raises(Failure) as raised:
            editor.call(method, **params)
        assert raised.value.code == code, method
    # Notifications have no answer, whatever they are.
    editor.notify("session/dance")
    editor.notify("session/cancel", sessionId="lost")
    editor.notify("session/cancel", sessionId=session)
    editor.send({"jsonrpc": "2.0", "id": 77, "result": {"never": "asked"}})


def test_what_other_code_prints_does_not_reach_the_client(editor: RawEditor, server: OpenAIServer) -> None:
    server.then("Hello.")
    session = editor.new()

    # A warning of the standard library, and a line of a log.
    assert editor.prompt(session, "Hi.") == "end_turn"
    assert all(each["jsonrpc"] == "2.0" for each in editor.seen)

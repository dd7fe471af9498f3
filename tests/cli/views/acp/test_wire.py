"""Lines that are no messages, and clients that do what no client should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from deepagents_cli.views.acp.wire import LONGEST
from tests.cli.openai_server import OpenAIServer, Reply, call
from tests.cli.views.acp.conftest import PATIENCE, Failure, Message, RawEditor, Start

pytestmark = pytest.mark.slow


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
        ("session/list", {"cursor": "9" * 5_000}, -32602),
        ("session/load", {"sessionId": "../../x", "cwd": str(editor.directory), "mcpServers": []}, -32002),
    ):
        with pytest.raises(Failure) as raised:
            editor.call(method, **params)
        assert raised.value.code == code, method
    # Notifications have no answer, whatever they are.
    editor.notify("session/dance")
    editor.notify("$/cancel_request", requestId=1)
    editor.notify("session/cancel", sessionId="lost")
    editor.notify("session/cancel", sessionId=session)
    editor.send({"jsonrpc": "2.0", "id": 77, "result": {"never": "asked"}})


def test_what_other_code_prints_does_not_reach_the_client(start: Start, server: OpenAIServer) -> None:
    editor = start(noise=True)
    editor.initialize()
    server.then("Hello.")

    # Each line that it reads has to be a message.
    assert editor.prompt(editor.new(), "Hi.") == "end_turn"
    deadline = monotonic() + PATIENCE
    while editor.process.log.count("noise") < 300 and monotonic() < deadline:
        Event().wait(0.01)
    assert editor.process.end() == 0
    assert editor.process.log.count("noise") == 300
    assert editor.read_rest() == b""


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_a_person_who_starts_it_is_told_what_it_is_for(stream: str, tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+") as file:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "deepagents_cli", "acp"],
            stdin=file if stream == "stdin" else subprocess.PIPE,
            stdout=file if stream == "stdout" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 2
    assert "an editor starts this command" in done.stderr


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    hides = (
        "import sys; sys.modules['acp'] = None; from deepagents_cli.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", hides, "acp"],
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "acp is missing" in done.stderr
    assert "pip install '.[acp]'" in done.stderr


def test_nothing_of_the_protocol_is_imported_before_it_is_spoken() -> None:
    asks = (
        "import sys; from deepagents_cli.__main__ import main\n"
        "try: main(['acp', '--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit('acp' in sys.modules or 'pydantic' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "Agent Client Protocol" in done.stdout


def test_a_turn_goes_on_while_the_client_reads_nothing(start: Start, server: OpenAIServer) -> None:
    editor = start("--mode", "auto")
    editor.initialize()
    printed = "seq 1000000 | tr '\\\\n' ' '"
    server.then(call("execute", command=printed), Reply(" ".join(["word"] * 2_000)))
    number = editor.begin_prompt(editor.new(), "Print much.")

    # The turn does not wait for the client, and the client then reads all of it.
    while len(server.requests) < 2:
        server.wait_for_request()
    assert editor.wait_for(number)["stopReason"] == "end_turn"
    assert editor.said().count("word") == 2_000

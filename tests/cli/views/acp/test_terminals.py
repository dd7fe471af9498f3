"""An editor that offers terminals: commands without the sandbox run there, and others never do."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.openai_server import OpenAIServer, Reply, call
from tests.cli.views.acp.conftest import Message, RawEditor, Start, choose

pytestmark = pytest.mark.slow


class Terminals:
    """The terminals of an editor."""

    def __init__(self, editor: RawEditor) -> None:
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.released: list[str] = []
        for name in ("create", "wait_for_exit", "output", "kill", "release"):
            editor.on[f"terminal/{name}"] = getattr(self, f"_{name}")

    def _create(self, params: Message) -> Message:
        number = f"terminal-{len(self.processes)}"
        words = [params["command"], *params["args"]]
        self.processes[number] = subprocess.Popen(
            words, cwd=params["cwd"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return {"terminalId": number}

    def _wait_for_exit(self, params: Message) -> Message | None:
        process = self.processes[params["terminalId"]]
        if "sleep" in str(process.args):
            return None
        code = process.wait(60)
        return {"signal": "SIGTERM"} if code < 0 else {"exitCode": code}

    def _output(self, params: Message) -> Message:
        printed, _ = self.processes[params["terminalId"]].communicate()
        return {"output": printed, "truncated": "long" in printed}

    def _kill(self, params: Message) -> Message:
        self.processes[params["terminalId"]].kill()
        return {}

    def _release(self, params: Message) -> Message:
        self.released.append(params["terminalId"])
        return {}


def _begin(start: Start, *options: str) -> tuple[RawEditor, Terminals]:
    editor = start(*options)
    editor.initialize(terminal=True)
    return editor, Terminals(editor)


def test_a_command_without_the_sandbox_runs_in_the_editor_once_allowed(
    start: Start, server: OpenAIServer
) -> None:
    editor, terminals = _begin(start, "--shell")
    editor.on["session/request_permission"] = choose("allow", "allow", "reject")
    server.then(
        call("execute", command="pwd; exit 3"),
        call("execute", command="echo long"),
        call("execute", command="touch ran"),
        "Done.",
    )

    assert editor.prompt(editor.new(), "Run.") == "end_turn"

    asked = editor.asked("terminal/create")
    assert [each["args"] for each in asked] == [["-c", "pwd; exit 3"], ["-c", "echo long"]]
    assert terminals.released == ["terminal-0", "terminal-1"]
    shown = editor.call_of(editor.asked("session/request_permission")[0]["toolCall"]["toolCallId"])
    assert shown["content"] == [{"type": "terminal", "terminalId": "terminal-0"}]
    assert shown["status"] == "failed"
    results = server.requests[-1].texts("tool")
    assert results[0].startswith(f"{editor.directory}\n")
    assert "3" in results[0]
    assert "[The beginning of the output was left out.]" in results[1]
    assert not (editor.directory / "ran").exists()


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_a_command_that_does_not_end_is_killed(start: Start, server: OpenAIServer, how: str) -> None:
    editor, terminals = _begin(start, "--shell", "--mode", "full")
    server.then(call("execute", command="exec sleep 300", timeout=1 if how == "timeout" else 200), "Done.")
    session = editor.new()
    number = editor.begin_prompt(session, "Run.")
    while not editor.asked("terminal/wait_for_exit"):
        editor.take()
    if how == "cancel":
        editor.notify("session/cancel", sessionId=session)

    stopped = editor.wait_for(number)["stopReason"]

    assert stopped == ("end_turn" if how == "timeout" else "cancelled")
    assert terminals.processes["terminal-0"].wait(10) < 0
    assert terminals.released == ["terminal-0"]


def test_an_editor_without_a_free_terminal_is_not_needed(start: Start, server: OpenAIServer) -> None:
    editor, _ = _begin(start, "--shell", "--mode", "full")
    del editor.on["terminal/create"]
    server.then(call("execute", command="echo one"), "Done.")

    assert editor.prompt(editor.new(), "Run.") == "end_turn"

    assert "one" in server.requests[-1].last


def test_an_editor_that_does_not_answer_is_waited_for_once(start: Start, server: OpenAIServer) -> None:
    editor = start("--shell", "--mode", "full")
    editor.initialize(fs={"readTextFile": True, "writeTextFile": True}, terminal=True)
    for method in ("fs/read_text_file", "fs/write_text_file", "terminal/create"):
        editor.on[method] = lambda params: None
    read, run = ("read_file", {"file_path": "/notes.md"}), ("execute", {"command": "echo one > ran.txt"})
    new = ("write_file", {"file_path": "/new.md", "content": "new\n"})
    # What it is asked at once it may leave unanswered at once.
    server.then(Reply(calls=[read, run]), Reply(calls=[read, run, new]), "Done.")

    assert editor.prompt(editor.new(), "Look, and run.") == "end_turn"

    first, second = server.requests[1].texts("tool"), server.requests[2].texts("tool")[2:]
    assert "second line" in first[0]
    assert "It may do so later" in first[1]
    assert "second line" in second[0]
    assert (editor.directory / "ran.txt").read_text() == "one\n"
    assert (editor.directory / "new.md").read_text() == "new\n"
    assert len(editor.asked("fs/read_text_file")) == 1
    assert len(editor.asked("terminal/create")) == 1
    assert editor.asked("fs/write_text_file") == []
    assert editor.said().count("The editor did not answer within 10 seconds") == 2


def test_a_write_that_is_not_answered_is_an_error_and_the_next_goes_to_the_disk(
    start: Start, server: OpenAIServer
) -> None:
    editor = start("--mode", "auto")
    editor.initialize(fs={"readTextFile": True, "writeTextFile": True})
    editor.on["fs/write_text_file"] = lambda params: None
    new = call("write_file", file_path="new.md", content="new\n")
    server.then(new, new, "Done.")

    assert editor.prompt(editor.new(), "Write.") == "end_turn"

    assert "It may do so later: read it again" in server.requests[1].last
    assert (editor.directory / "new.md").read_text() == "new\n"
    assert len(editor.asked("fs/write_text_file")) == 1


def test_a_confined_command_runs_in_the_sandbox_and_not_in_the_editor(
    start: Start, server: OpenAIServer
) -> None:
    editor, _ = _begin(start, "--mode", "auto")
    server.then(call("execute", command="echo one"), "Done.")

    assert editor.prompt(editor.new(), "Run.") == "end_turn"

    assert editor.asked("terminal/create") == []
    assert "one" in server.requests[-1].last

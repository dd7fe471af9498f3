"""An editor talks to an agent through `deepagents-acp`: a real client, and a real process on a pipe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import acp
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse


class Editor(acp.Client):
    """An ACP client that answers requests for permission from a list and keeps what it is shown."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.shown: list[Any] = []

    async def request_permission(self, *, tool_call: Any, **_: Any) -> RequestPermissionResponse:
        self.asked.append(tool_call.title)
        chosen = AllowedOutcome(outcome="selected", option_id=self.answers.pop(0))
        return RequestPermissionResponse(outcome=chosen)

    async def session_update(self, *, update: Any, **_: Any) -> None:
        self.shown.append(update)

    def said(self) -> str:
        chunks = [each for each in self.shown if each.session_update == "agent_message_chunk"]
        return "".join(each.content.text for each in chunks)

    def results(self) -> str:
        updates = [each for each in self.shown if each.session_update == "tool_call_update"]
        return "\n".join(each.content[0].content.text for each in updates)


async def test_an_editor_has_a_file_changed(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("hello reader\n")
    editor = Editor("reject", "approve", "approve")
    program = str(Path(__file__).with_name("acp_agent.py"))
    async with acp.spawn_agent_process(editor, sys.executable, program) as (agent, process):
        await agent.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=ClientCapabilities()
        )
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        refused = await agent.prompt(session_id=session, prompt=[acp.text_block("Make a plan.")])
        said_first = editor.said()
        done = await agent.prompt(session_id=session, prompt=[acp.text_block("Greet the reader.")])

    assert refused.stop_reason == done.stop_reason == "end_turn"
    assert said_first.endswith("I leave the plan.")
    assert editor.said().endswith("The reader is greeted.")
    assert editor.asked == ["Review Plan", "Edit `/notes.md`", "Write `/words.txt`"]
    assert "hello reader" in editor.results()
    assert "There are 2 words." in editor.results()
    assert (tmp_path / "notes.md").read_text() == "good morning reader\n"
    assert (tmp_path / "words.txt").read_text() == "2"
    assert process.returncode is not None

"""A session in an editor, line by line: prompts, approvals, plans, cancellation, and sessions that go on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Event

import pytest

from tests.cli.openai_server import MODEL, OpenAIServer, Reply, call
from tests.cli.views.acp.conftest import Failure, RawEditor, Start, choose

pytestmark = pytest.mark.slow

TODOS = [{"content": "look", "status": "completed"}, {"content": "write", "status": "in_progress"}]


def test_an_editor_learns_what_the_agent_can_do(start: Start) -> None:
    editor = start("--mode", "plan")

    about = editor.initialize()
    made = editor.call("session/new", cwd=str(editor.directory), mcpServers=[])

    assert about["protocolVersion"] == 1
    assert about["agentInfo"]["name"] == "deepagents"
    can = about["agentCapabilities"]
    assert can["loadSession"] is True
    assert can["promptCapabilities"] == {"image": True, "embeddedContext": True}
    assert can["mcpCapabilities"] == {"http": True, "sse": True}
    assert {*can["sessionCapabilities"]} == {"list", "resume", "close"}
    assert made["modes"]["currentModeId"] == "plan"
    assert [each["id"] for each in made["modes"]["availableModes"]] == ["ask", "auto", "plan", "full"]
    assert [(each["id"], each["category"], each["currentValue"]) for each in made["configOptions"]] == [
        ("mode", "mode", "plan"),
        ("model", "model", f"local-server:{MODEL}"),
        ("effort", "thought_level", "default"),
    ]
    known = editor.wait_for_update("available_commands_update")["availableCommands"]
    assert {"name": "cost"}.items() <= next(each for each in known if each["name"] == "cost").items()
    assert not {"new", "resume", "fork"} & {each["name"] for each in known}


def test_a_change_is_shown_as_a_diff_and_made_once_allowed(editor: RawEditor, server: OpenAIServer) -> None:
    server.then(
        call("edit_file", file_path="notes.md", old_string="first", new_string="1st"),
        "Done.",
        "You are welcome.",
    )
    editor.on["session/request_permission"] = choose("allow")
    session = editor.new()

    assert editor.prompt(session, "Change it.") == "end_turn"
    assert editor.prompt(session, "Thank you.") == "end_turn"

    path = str(editor.directory / "notes.md")
    change = {
        "type": "diff",
        "path": path,
        "oldText": "first line\nsecond line\n",
        "newText": "1st line\nsecond line\n",
    }
    asked = editor.asked("session/request_permission")[0]
    assert asked["sessionId"] == session
    assert asked["toolCall"]["content"][1] == change
    assert asked["options"][0] == {"kind": "allow_once", "name": "Allow", "optionId": "allow"}
    assert asked["options"][-1] == {"kind": "reject_once", "name": "Reject", "optionId": "reject"}
    shown = editor.call_of(asked["toolCall"]["toolCallId"])
    assert shown["status"] == "completed"
    assert (shown["kind"], shown["title"]) == ("edit", "edit_file notes.md")
    assert shown["locations"] == [{"path": path}]
    assert shown["content"] == [change]
    assert editor.said() == "Done.You are welcome."
    assert Path(path).read_text() == "1st line\nsecond line\n"


def test_what_is_always_allowed_is_not_asked_about_again(editor: RawEditor, server: OpenAIServer) -> None:
    change = call("write_file", file_path="new.md", content="hello\n")
    server.then(change, call("write_file", file_path="new.md", content="bye\n"), "Done.")
    editor.on["session/request_permission"] = choose("always-0-session")

    assert editor.prompt(editor.new(), "Write.") == "end_turn"

    asked = editor.asked("session/request_permission")
    assert len(asked) == 1
    assert "oldText" not in asked[0]["toolCall"]["content"][1], "the file is new"
    always = next(each for each in asked[0]["options"] if each["optionId"] == "always-0-session")
    assert always["kind"] == "allow_always"
    assert always["name"].endswith(", in this session")
    assert (editor.directory / "new.md").read_text() == "bye\n"


def test_a_rejected_command_does_not_run(editor: RawEditor, server: OpenAIServer) -> None:
    server.then(call("execute", command="touch ran"), "Then not.")
    editor.on["session/request_permission"] = choose("reject")

    assert editor.prompt(editor.new(), "Run.") == "end_turn"

    asked = editor.asked("session/request_permission")[0]["toolCall"]
    assert asked["kind"] == "execute"
    assert "$ touch ran" in asked["content"][1]["content"]["text"]
    assert editor.call_of(asked["toolCallId"])["status"] == "failed"
    assert not (editor.directory / "ran").exists()
    assert "rejected" in server.requests[-1].last


def test_what_a_command_prints_is_shown_while_it_runs(start: Start, server: OpenAIServer) -> None:
    editor = start("--mode", "auto")
    editor.initialize()
    server.then(call("execute", command="echo one; cat wait; echo two"), "Done.")
    fifo = editor.directory / "wait"
    os.mkfifo(fifo)
    session = editor.new()
    number = editor.begin_prompt(session, "Run.")

    shown = editor.wait_for_update("tool_call_update", status="in_progress", content=_fenced("one"))
    fifo.write_text("")
    assert editor.wait_for(number)["stopReason"] == "end_turn"

    ended = editor.call_of(shown["toolCallId"])
    assert ended["status"] == "completed"
    assert "one\ntwo" in ended["content"][0]["content"]["text"]


def _fenced(text: str) -> list[object]:
    return [{"type": "content", "content": {"type": "text", "text": f"```\n{text}\n```"}}]


def test_a_plan_is_shown_and_its_tool_is_not(editor: RawEditor, server: OpenAIServer) -> None:
    server.then(call("write_todos", todos=TODOS), "Planned.")

    assert editor.prompt(editor.new(), "Plan.") == "end_turn"

    assert editor.updates("plan")[-1]["entries"] == [
        {"content": "look", "priority": "medium", "status": "completed"},
        {"content": "write", "priority": "medium", "status": "in_progress"},
    ]
    assert editor.updates("tool_call") == []


def test_a_plan_of_plan_mode_is_carried_out_in_the_mode_that_is_chosen(
    editor: RawEditor, server: OpenAIServer
) -> None:
    session = editor.new()
    assert editor.call("session/set_mode", sessionId=session, modeId="plan") == {}
    server.then(call("present_plan", plan="# Plan\nWrite."), "As you like.")
    editor.on["session/request_permission"] = choose("auto")

    assert editor.prompt(session, "Plan it.") == "end_turn"

    asked = editor.asked("session/request_permission")[0]
    assert asked["toolCall"]["kind"] == "switch_mode"
    assert asked["toolCall"]["content"][0]["content"]["text"] == "# Plan\nWrite."
    kinds = {each["optionId"]: each["kind"] for each in asked["options"]}
    assert kinds == {"ask": "allow_once", "auto": "allow_always", "plan": "reject_once"}
    assert editor.updates("current_mode_update")[-1]["currentModeId"] == "auto"
    assert "approves the plan" in server.requests[-1].last


def test_a_cancelled_turn_ends_as_such_and_the_next_goes_on(editor: RawEditor, server: OpenAIServer) -> None:
    server.then(Reply("a long answer", every=0.5), "Here I am.")
    session = editor.new()
    number = editor.begin_prompt(session, "Write at length.")
    editor.wait_for_update("agent_message_chunk")

    editor.notify("session/cancel", sessionId=session)

    assert editor.wait_for(number)["stopReason"] == "cancelled"
    assert editor.prompt(session, "Are you there?") == "end_turn"
    assert editor.said().endswith("Here I am.")


def test_a_prompt_may_be_cancelled_right_behind_it(editor: RawEditor, server: OpenAIServer) -> None:
    session = editor.new()
    number = editor.begin_prompt(session, "Never mind.")
    editor.notify("session/cancel", sessionId=session)
    assert editor.wait_for(number)["stopReason"] == "cancelled"

    server.forget()
    server.then("Hello.")
    assert editor.prompt(session, "Hi.") == "end_turn"
    assert editor.said() == "Hello."


def test_cancelling_the_request_of_a_prompt_cancels_the_prompt(
    editor: RawEditor, server: OpenAIServer
) -> None:
    server.then(Reply("One two.", hold=server.closing), "Hello.")
    session = editor.new()
    number = editor.begin_prompt(session, "Write.")
    editor.wait_for_update("agent_message_chunk")

    editor.notify("$/cancel_request", requestId=[number])
    editor.notify("$/cancel_request", requestId=number)

    assert editor.wait_for(number)["stopReason"] == "cancelled"
    editor.notify("$/cancel_request", requestId=number)
    assert editor.prompt(session, "Hi.") == "end_turn"


def test_prompts_that_come_at_once_are_worked_on_in_order(editor: RawEditor, server: OpenAIServer) -> None:
    server.then("One.", "Two.")
    session = editor.new()

    first, second = editor.begin_prompt(session, "First."), editor.begin_prompt(session, "Second.")

    assert editor.wait_for(first)["stopReason"] == "end_turn"
    assert editor.said() == "One."
    assert editor.wait_for(second)["stopReason"] == "end_turn"
    assert editor.said() == "One.Two."


def test_cancelling_ends_the_prompts_that_wait_too(editor: RawEditor, server: OpenAIServer) -> None:
    server.then(Reply("One two.", hold=server.closing))
    session = editor.new()
    first = editor.begin_prompt(session, "First.")
    editor.wait_for_update("agent_message_chunk")
    second = editor.begin_prompt(session, "Second.")
    editor.notify("session/cancel", sessionId=session)
    third = editor.begin_prompt(session, "Third.")
    server.then("Three.")

    ends = {each: editor.wait_for_answer(each)["stopReason"] for each in (first, second, third)}

    assert ends == {first: "cancelled", second: "cancelled", third: "end_turn"}
    assert "Second." not in str(server.requests[-1].body)


def test_cancelling_the_request_of_a_prompt_that_waits_cancels_that_one_alone(
    editor: RawEditor, server: OpenAIServer
) -> None:
    hold = Event()
    server.then(Reply("One two.", hold=hold), "Three.")
    session = editor.new()
    first = editor.begin_prompt(session, "First.")
    editor.wait_for_update("agent_message_chunk")
    second, third = editor.begin_prompt(session, "Second."), editor.begin_prompt(session, "Third.")

    editor.notify("$/cancel_request", requestId=second)

    assert editor.wait_for(second)["stopReason"] == "cancelled", "though the first is still at work"
    hold.set()
    ends = {each: editor.wait_for_answer(each)["stopReason"] for each in (first, third)}
    assert ends == {first: "end_turn", third: "end_turn"}
    assert editor.said() == "One two.Three."
    assert "Second." not in str(server.requests[-1].body)


def test_what_a_client_adds_for_itself_is_no_parameter(editor: RawEditor, server: OpenAIServer) -> None:
    server.then("Hello.")
    trace = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01"
    meta = {
        "traceparent": trace,
        "cwd": 5,
        "session_id": "other",
        "sessionId": "other",
        "self": 1,
        "prompt": 2,
    }
    editor.initialize()

    opened = {"cwd": str(editor.directory), "mcpServers": []}
    session = editor.call("session/new", **opened, _meta=meta)["sessionId"]
    editor.call("session/set_mode", sessionId=session, modeId="auto", _meta={**meta, "mode_id": "full"})
    blocks = [{"type": "text", "text": "Hi.", "_meta": meta}]
    ended = editor.call("session/prompt", sessionId=session, prompt=blocks, _meta=meta)

    assert ended["stopReason"] == "end_turn"
    assert server.requests[-1].last == "Hi."
    assert editor.call("session/load", sessionId=session, **opened, _meta=meta)["modes"]
    assert [each["sessionId"] for each in editor.call("session/list", _meta=meta)["sessions"]] == [session]


@pytest.mark.parametrize("names", [True, False])
def test_what_a_client_adds_to_a_cancellation_stops_no_other_session(
    editor: RawEditor, server: OpenAIServer, names: bool
) -> None:
    hold = Event()
    server.then(Reply("One two.", hold=hold))
    session, other = editor.new(), editor.new()
    first = editor.begin_prompt(session, "First.")
    editor.wait_for_update("agent_message_chunk")

    editor.notify("session/cancel", sessionId=other, _meta={"deepagents/request": first if names else None})
    editor.notify("$/cancel_request", requestId=True)
    hold.set()

    assert editor.wait_for_answer(first)["stopReason"] == "end_turn"


def test_cancelling_the_request_of_the_prompt_at_work_leaves_those_that_wait(
    editor: RawEditor, server: OpenAIServer
) -> None:
    server.then(Reply("One two.", hold=server.closing), "Two.")
    session = editor.new()
    first = editor.begin_prompt(session, "First.")
    editor.wait_for_update("agent_message_chunk")
    second = editor.begin_prompt(session, "Second.")

    editor.notify("$/cancel_request", requestId=first)

    ends = {each: editor.wait_for_answer(each)["stopReason"] for each in (first, second)}
    assert ends == {first: "cancelled", second: "end_turn"}


def test_an_empty_prompt_ends(editor: RawEditor, server: OpenAIServer) -> None:
    session = editor.new()
    assert editor.prompt(session, "") == "end_turn"
    assert server.requests == []


def test_cancelling_takes_a_question_back(editor: RawEditor, server: OpenAIServer) -> None:
    server.then(call("write_file", file_path="new.md", content="x"), "Fine.")
    session = editor.new()
    editor.on["session/request_permission"] = lambda params: None
    number = editor.begin_prompt(session, "Write.")
    while not editor.asked("session/request_permission"):
        editor.take()

    editor.notify("session/cancel", sessionId=session)

    assert editor.wait_for(number)["stopReason"] == "cancelled"
    call_id = editor.asked("session/request_permission")[0]["toolCall"]["toolCallId"]
    assert editor.call_of(call_id)["status"] == "failed"
    assert editor.prompt(session, "Never mind.") == "end_turn"
    assert not (editor.directory / "new.md").exists()


def test_a_session_is_listed_and_loads_again_in_a_new_process(start: Start, server: OpenAIServer) -> None:
    first = start()
    first.initialize()
    server.then(Reply("I look.", calls=[("read_file", {"file_path": "notes.md"})]), "Two lines.")
    session = first.new()
    first.prompt(session, "Look at the notes.")
    assert first.process.end() == 0

    second = start()
    second.initialize()
    listed = second.call("session/list", cwd=str(second.directory))["sessions"]
    loaded = second.call("session/load", sessionId=session, cwd=str(second.directory), mcpServers=[])

    assert [(each["sessionId"], each["title"]) for each in listed] == [(session, "Look at the notes.")]
    assert listed[0]["cwd"] == str(second.directory)
    assert loaded["modes"]["currentModeId"] == "ask"
    assert second.said("user_message_chunk") == "Look at the notes."
    assert second.said() == "I look.Two lines."
    shown = second.call_of(second.updates("tool_call")[0]["toolCallId"])
    assert (shown["kind"], shown["status"]) == ("read", "completed")
    assert "second line" in shown["content"][0]["content"]["text"]
    server.then("Still two.")
    assert second.prompt(session, "And now?") == "end_turn"
    assert server.requests[-1].texts("user")[-2:] == ["Look at the notes.", "And now?"]


def test_a_killed_agent_leaves_a_session_that_goes_on(start: Start, server: OpenAIServer) -> None:
    first = start()
    first.initialize()
    server.then(call("write_file", file_path="new.md", content="hello\n"), "Written.")
    session = first.new()
    first.on["session/request_permission"] = lambda params: None
    first.begin_prompt(session, "Write.")
    while not first.asked("session/request_permission"):
        first.take()
    first.process.kill()

    second = start()
    second.initialize()
    second.on["session/request_permission"] = choose("allow")
    second.call("session/load", sessionId=session, cwd=str(second.directory), mcpServers=[])
    assert second.asked("session/request_permission") == [], "it is asked in a turn"

    assert second.prompt(session, "Go on.") == "end_turn"
    assert (second.directory / "new.md").read_text() == "hello\n"


def test_what_cannot_be_opened_is_named(editor: RawEditor) -> None:
    with pytest.raises(Failure, match="not a directory"):
        editor.call("session/new", cwd="/nowhere", mcpServers=[])
    for cwd in ("here", "/here\0there"):
        with pytest.raises(Failure, match="not an absolute path"):
            editor.call("session/new", cwd=cwd, mcpServers=[])
    with pytest.raises(Failure, match="There is no session 'lost'"):
        editor.call("session/load", sessionId="lost", cwd=str(editor.directory), mcpServers=[])
    with pytest.raises(Failure, match="Session 'lost' is not open"):
        editor.prompt("lost", "Hi.")


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("how", ["the editor dies", "the agent is killed"])
def test_who_dies_leaves_no_processes(
    start: Start, server: OpenAIServer, tmp_path: Path, how: str, background: bool
) -> None:
    mark = f"mark-{tmp_path.name}"
    editor = start("--mode", "auto")
    editor.initialize()
    server.then(
        call("execute", command=f"echo begun; sleep 300 # {mark}", background=background),
        call("execute", command=f"echo begun; sleep 301 # {mark}"),
    )
    editor.begin_prompt(editor.new(), "Run.")
    editor.wait_for_update("tool_call_update", status="in_progress", content=_fenced("begun"))
    assert _processes(mark)

    if how == "the editor dies":
        assert editor.process.end() == 0
    else:
        editor.process.kill()

    end = time.monotonic() + 30
    while _processes(mark) and time.monotonic() < end:
        continue
    assert not _processes(mark)


def test_an_editor_that_dies_at_a_question_leaves_it_for_later(start: Start, server: OpenAIServer) -> None:
    first = start()
    first.initialize()
    server.then(call("write_file", file_path="new.md", content="hello\n"), "Written.")
    session = first.new()
    first.on["session/request_permission"] = lambda params: None
    first.begin_prompt(session, "Write.")
    while not first.asked("session/request_permission"):
        first.take()
    assert first.process.end() == 0
    assert "Traceback" not in first.process.log

    second = start()
    second.initialize()
    second.on["session/request_permission"] = choose("reject")
    server.forget()
    server.then("Then not.")
    second.call("session/load", sessionId=session, cwd=str(second.directory), mcpServers=[])
    assert second.prompt(session, "Well?") == "end_turn"
    assert len(second.asked("session/request_permission")) == 1
    assert not (second.directory / "new.md").exists()


def _processes(mark: str) -> list[Path]:
    return [each for each in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in _read(each)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""

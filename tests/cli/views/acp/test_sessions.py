"""Several sessions of one editor, what an editor brings to them, and what is typed as a command."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from acp.schema import Cost
from langgraph.checkpoint.sqlite import SqliteSaver

from deepagents import create_deep_agent
from deepagents.testing import ScriptedModel
from deepagents_cli.protocol import Status
from deepagents_cli.session.threads.sessions import Sessions
from deepagents_cli.views.acp import updates
from tests.cli.openai_server import OpenAIServer, Reply, call
from tests.cli.views.acp.conftest import Failure, Message, RawEditor, Start, choose
from tests.mcp.servers import crooked

pytestmark = pytest.mark.slow

BUFFER = {"type": "resource", "resource": {"uri": "file:///other/new.md", "text": "not saved\n"}}


def _as_editor_has_it(name: str, entry: Any, **variables: str) -> Message:
    env = [{"name": each, "value": value} for each, value in variables.items()]
    return {"name": name, "command": entry["command"], "args": entry["args"], "env": env}


def test_two_sessions_work_at_once_and_each_has_its_own(
    editor: RawEditor, server: OpenAIServer, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first = editor.new()
    second = editor.call("session/new", cwd=str(other), mcpServers=[])["sessionId"]
    editor.on["session/request_permission"] = choose("allow", "allow")
    for place in ("one", "two"):
        server.then(call("write_file", file_path="new.md", content=f"{place}\n"), "Done.")

    assert editor.prompt(first, "Write.") == "end_turn"
    assert editor.prompt(second, "Write.") == "end_turn"

    assert (editor.directory / "new.md").read_text() == "one\n"
    assert (other / "new.md").read_text() == "two\n"
    told = {each["params"]["sessionId"] for each in editor.seen if each.get("method") == "session/update"}
    assert told == {first, second}


def test_a_session_is_for_one_process_also_after_another_was_closed(
    start: Start, server: OpenAIServer, state: Path
) -> None:
    editor = start()
    editor.initialize()
    first, second = editor.new(), editor.new()
    server.then("One.", "Two.", "Three.")
    editor.prompt(first, "Begin.")
    editor.prompt(second, "Begin.")

    assert editor.call("session/close", sessionId=second) == {}
    with pytest.raises(Failure, match="is not open"):
        editor.prompt(second, "More.")
    with pytest.raises(Failure, match="is not open"):
        editor.call("session/close", sessionId=second)

    assert _is_held(state, first)
    assert not _is_held(state, second)
    editor.call("session/resume", sessionId=second, cwd=str(editor.directory), mcpServers=[])
    assert editor.updates("user_message_chunk") == []
    assert editor.prompt(second, "More.") == "end_turn"
    # What is open is opened anew.
    editor.call("session/load", sessionId=first, cwd=str(editor.directory), mcpServers=[])
    assert editor.said("user_message_chunk") == "Begin."


def test_others_are_opened_while_one_is_held_by_another_process(start: Start, server: OpenAIServer) -> None:
    editor, other = start(), start()
    editor.initialize()
    other.initialize()
    server.then("One.", "Two.")
    held, free = editor.new(), editor.new()
    editor.prompt(held, "Begin.")
    editor.prompt(free, "Begin.")
    editor.call("session/close", sessionId=free)
    where = {"cwd": str(editor.directory), "mcpServers": []}

    waits = other.begin("session/load", sessionId=held, **where)
    other.call("session/load", sessionId=free, **where)
    other.new()

    assert all(each.get("id") != waits for each in other.seen)
    editor.call("session/close", sessionId=held)
    other.wait_for(waits)
    assert other.said("user_message_chunk") == "Begin.Begin."
    # That it had to wait is over when the editor can show it, and there are no keys to press.
    assert other.said() == "Two.One."


def _is_held(state: Path, session: str) -> bool:
    """Ask in another process."""
    program = (
        "import sys; from pathlib import Path\n"
        "from deepagents_cli.session.threads.sessions import InUse, Sessions\n"
        "try:\n    with Sessions(Path(sys.argv[1])).hold(sys.argv[2]): print('free')\n"
        "except InUse: print('held')\n"
    )
    words = [sys.executable, "-c", program, str(state), session]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout == "held\n"


def test_a_session_of_another_directory_is_not_loaded_here(
    editor: RawEditor, server: OpenAIServer, tmp_path: Path
) -> None:
    server.then("Hello.")
    session = editor.new()
    editor.prompt(session, "Hi.")
    editor.call("session/close", sessionId=session)

    with pytest.raises(Failure, match="belongs to"):
        editor.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])


def test_servers_of_the_editor_are_there_and_asked_about(editor: RawEditor, server: OpenAIServer) -> None:
    server.then(call("mcp__hotel__book"), "Booked.")
    hotel = _as_editor_has_it("hotel", crooked("book", call="environment"), CITY="Saint-Malo")
    editor.on["session/request_permission"] = choose("allow")

    made = editor.call("session/new", cwd=str(editor.directory), mcpServers=[hotel])
    assert editor.prompt(made["sessionId"], "Book.") == "end_turn"

    assert "mcp__hotel__book" in server.requests[0].tools
    assert editor.asked("session/request_permission")[0]["toolCall"]["title"] == "mcp__hotel__book"


def test_a_server_that_cannot_be_used_is_named_and_the_session_opens(
    editor: RawEditor, server: OpenAIServer
) -> None:
    server.then("Hello.")
    gone = {"name": "gone", "command": "/nowhere/server", "args": [], "env": []}
    remote = {"type": "http", "name": "remote", "url": "ftp://x", "headers": []}

    made = editor.call("session/new", cwd=str(editor.directory), mcpServers=[gone, remote])

    assert editor.prompt(made["sessionId"], "Hi.") == "end_turn"
    assert "'gone' is not there" in editor.said()
    assert "'url' must be an address" in editor.said()


def test_a_question_with_answers_is_asked_and_cancelling_it_stops(
    editor: RawEditor, server: OpenAIServer
) -> None:
    server.then(call("mcp__hotel__book"), lambda request: Reply(request.last))
    hotel = _as_editor_has_it("hotel", crooked("book", call="ask"))
    made = editor.call("session/new", cwd=str(editor.directory), mcpServers=[hotel])
    editor.call("session/set_mode", sessionId=made["sessionId"], modeId="full")

    def answer(params: Message) -> Message:
        yes = next(each for each in params["options"] if each["name"] == "Yes")
        return {"outcome": {"outcome": "selected", "optionId": yes["optionId"]}}

    editor.on["session/request_permission"] = answer
    assert editor.prompt(made["sessionId"], "Book.") == "end_turn"

    asked = editor.asked("session/request_permission")[0]
    assert "Sure, the 1. time?" in asked["toolCall"]["content"][0]["content"]["text"]
    assert json.loads(editor.said().rpartition("\n")[2])["answers"][0]["content"] == {"sure": True}


@pytest.mark.parametrize("answers", [True, False])
def test_a_question_in_words_ends_the_turn_and_the_next_prompt_answers_it(
    editor: RawEditor, server: OpenAIServer, answers: bool
) -> None:
    server.then(call("mcp__hotel__book"))
    asks = json.dumps({"name": {"type": "string"}})
    hotel = _as_editor_has_it("hotel", crooked("book", call="ask"), ASKS=asks)
    session = editor.call("session/new", cwd=str(editor.directory), mcpServers=[hotel])["sessionId"]
    editor.call("session/set_mode", sessionId=session, modeId="full")

    def agree(params: Message) -> Message:
        return {"outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}}

    editor.on["session/request_permission"] = agree
    assert editor.prompt(session, "Book.") == "end_turn"
    assert editor.said().rstrip().endswith("(may be empty)")

    if answers:
        server.then(lambda request: Reply(request.last))
        assert editor.prompt(session, "Ada") == "end_turn"
        said = json.loads(editor.said().rpartition("\n")[2])
        assert said["answers"] == [{"action": "accept", "content": {"name": "Ada"}}]
    else:
        server.then("What else?")
        editor.notify("session/cancel", sessionId=session)
        editor.wait_for_update("tool_call_update", status="failed")
        assert editor.prompt(session, "Something else.") == "end_turn"
        assert server.requests[-1].last == "Something else."


def test_a_command_of_the_person_runs_at_once_and_the_agent_reads_of_it(
    start: Start, server: OpenAIServer
) -> None:
    editor = start()
    editor.initialize()
    session = editor.new()

    assert editor.prompt(session, "!cat notes.md; exit 3") == "end_turn"
    number = editor.begin_prompt(session, "!echo begun; sleep 300")
    begun = [{"type": "content", "content": {"type": "text", "text": "```\nbegun\n```"}}]
    editor.wait_for_update("tool_call_update", status="in_progress", content=begun)
    editor.notify("session/cancel", sessionId=session)
    assert editor.wait_for(number)["stopReason"] == "cancelled"

    assert server.requests == []
    shown = editor.call_of("run-1")
    assert (shown["title"], shown["kind"], shown["status"]) == ("!cat notes.md; exit 3", "execute", "failed")
    assert "second line\n[exit code 3]" in shown["content"][0]["content"]["text"]
    assert "stopped by the person" in editor.call_of("run-2")["content"][0]["content"]["text"]
    server.then("Two lines.")
    assert editor.prompt(session, "What is in it?") == "end_turn"
    assert "second line" in str(server.requests[-1].texts("user"))
    assert editor.process.end() == 0
    again = start()
    again.initialize()
    again.call("session/load", sessionId=session, cwd=str(again.directory), mcpServers=[])
    assert "$ cat notes.md; exit 3\nfirst line" in again.said("user_message_chunk")


def _current(offered: list[Message]) -> dict[str, str]:
    return {each["id"]: each["currentValue"] for each in offered}


def test_model_and_effort_are_chosen_from_what_is_offered(start: Start, server: OpenAIServer) -> None:
    server.models.append("other")
    editor = start()
    editor.initialize()
    made = editor.call("session/new", cwd=str(editor.directory), mcpServers=[])
    session, models = made["sessionId"], made["configOptions"][1]["options"]
    assert {"local-server:scripted", "local-server:other"} <= {each["value"] for each in models}
    assert not any(each["value"].startswith("anthropic:") for each in models), "a key is missing"

    def choose(option: str, value: str) -> dict[str, str]:
        given = {"sessionId": session, "configId": option, "value": value}
        return _current(editor.call("session/set_config_option", **given)["configOptions"])

    assert choose("model", "local-server:other")["model"] == "local-server:other"
    server.then("Hello.", Reply("One two.", hold=server.closing))
    assert editor.prompt(session, "Hi.") == "end_turn"
    assert server.requests[-1].body["model"] == "other"
    assert choose("mode", "auto")["mode"] == "auto"
    assert choose("effort", "low") == {"mode": "auto", "model": "local-server:other", "effort": "low"}

    assert editor.prompt(session, "/model local-server:scripted") == "end_turn"
    assert editor.prompt(session, "/mode plan") == "end_turn"
    told = [_current(each["configOptions"]) for each in editor.updates("config_option_update")]
    assert {"mode": "auto", "model": "local-server:scripted"}.items() <= told[-2].items()
    assert told[-1]["mode"] == "plan"

    for option, value, why in (("dance", "x", "not an option"), ("effort", "x", "not an effort of")):
        with pytest.raises(Failure, match=why):
            choose(option, value)
    number = editor.begin_prompt(session, "Write.")
    editor.wait_for_update("agent_message_chunk", content={"type": "text", "text": "One"})
    with pytest.raises(Failure, match="The agent is working; stop it to change the model"):
        choose("model", "local-server:other")
    editor.notify("session/cancel", sessionId=session)
    editor.wait_for(number)


def test_a_model_that_comes_later_is_offered_at_the_next_choice(
    editor: RawEditor, server: OpenAIServer
) -> None:
    def models_in(answer: Message) -> set[str]:
        return {each["value"] for each in answer["configOptions"][1]["options"]}

    where = {"cwd": str(editor.directory), "mcpServers": []}
    made = editor.call("session/new", **where)
    assert "local-server:late" not in models_in(made)
    server.models.append("late")

    given = {"sessionId": made["sessionId"], "configId": "mode", "value": "auto"}
    assert "local-server:late" in models_in(editor.call("session/new", **where))
    assert "local-server:late" in models_in(editor.call("session/set_config_option", **given))


@pytest.mark.parametrize("how", ["answers", "answers wrong", "declines", "cancels", "cannot"])
def test_all_that_a_server_asks_at_once_is_one_form(start: Start, server: OpenAIServer, how: str) -> None:
    editor = start("--mode", "full")
    editor.initialize(elicitation={"form": {}})
    server.then(call("mcp__hotel__book"), lambda request: Reply(request.last))
    kinds = {"type": "array", "items": {"type": "string", "enum": ["sea", "garden"]}}
    fields = {"name": {"type": "string"}, "seats": {"type": "integer", "maximum": 8}, "views": kinds}
    hotel = _as_editor_has_it("hotel", crooked("book", call="ask"), ASKS=json.dumps(fields))
    session = editor.call("session/new", cwd=str(editor.directory), mcpServers=[hotel])["sessionId"]
    editor.on["session/request_permission"] = lambda params: {
        "outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}
    }
    content = {"name": "Ada", "seats": 4, "views": ["sea"]}
    wrong = {"name": "Ada", "seats": 40}
    one_by_one = iter([{"answer": "Ada"}, {"answer": "4"}, {"answer": "sea"}])

    def fill(params: Message) -> Message:
        if "answer" in params["requestedSchema"]["properties"]:
            return {"action": "accept", "content": next(one_by_one)}
        if how in ("declines", "cancels"):
            return {"action": how.removesuffix("s")}
        return {"action": "accept", "content": wrong if how == "answers wrong" else content}

    if how != "cannot":
        editor.on["elicitation/create"] = fill

    assert editor.prompt(session, "Book.") == "end_turn"

    first, *further = editor.asked("elicitation/create")
    assert set(first["requestedSchema"]["properties"]) == set(fields)
    assert first["requestedSchema"]["properties"]["seats"]["maximum"] == 8
    assert "book" in first["message"]
    assert len(further) == {"answers wrong": 3, "cannot": 1}.get(how, 0)
    assert ("40 is greater than" in str(editor.asked("session/request_permission"))) is (
        how == "answers wrong"
    )
    if how == "cannot":
        assert [editor.prompt(session, each) for each in ("Ada", "4", "sea")] == ["end_turn"] * 3
    said = json.loads(editor.said().rpartition("\n")[2])
    ends = {"declines": {"action": "decline"}, "cancels": {"action": "cancel"}}
    assert said["answers"] == [ends.get(how, {"action": "accept", "content": content})]


def test_files_with_an_answer_are_for_the_agent(editor: RawEditor, server: OpenAIServer) -> None:
    server.then(call("mcp__hotel__book"), lambda request: Reply(str(request.texts("tool"))))
    asks = json.dumps({"file": {"type": "string"}})
    hotel = _as_editor_has_it("hotel", crooked("book", call="ask"), ASKS=asks)
    session = editor.call("session/new", cwd=str(editor.directory), mcpServers=[hotel])["sessionId"]
    editor.call("session/set_mode", sessionId=session, modeId="full")
    editor.on["session/request_permission"] = lambda params: {
        "outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}
    }
    assert editor.prompt(session, "Book.") == "end_turn"

    link = {"type": "resource_link", "name": "notes.md", "uri": (editor.directory / "notes.md").as_uri()}
    assert editor.prompt(session, "See ", link, BUFFER) == "end_turn"

    sent = str(server.requests[-1].messages)
    assert '"file": "See @notes.md@/other/new.md"' in sent.replace("\\", "")
    assert "first line" in sent
    assert "not saved" in sent


def test_what_an_editor_adds_to_a_command_is_not_a_part_of_it(
    editor: RawEditor, server: OpenAIServer
) -> None:
    link = {"type": "resource_link", "name": "notes.md", "uri": (editor.directory / "notes.md").as_uri()}
    session = editor.new()

    assert editor.prompt(session, "/mode auto ", link, BUFFER) == "end_turn"
    assert editor.updates("current_mode_update")[-1]["currentModeId"] == "auto"
    assert "/mode takes what is typed; the files with it are left out" in editor.said()

    assert editor.prompt(session, "!echo one ", link, BUFFER) == "end_turn"
    assert editor.call_of("run-1")["title"] == "!echo one"
    assert "A command of yours takes what is typed" in editor.said()
    assert server.requests == []

    server.then("Looks well.")
    assert editor.prompt(session, "/review ", link, BUFFER) == "end_turn"
    sent = str(server.requests[-1].messages)
    assert "first line" in sent
    assert "not saved" in sent


def test_slash_commands_are_carried_out(editor: RawEditor, server: OpenAIServer) -> None:
    session = editor.new()
    server.then("Hello.")
    editor.prompt(session, "Hi.")

    for text, shown in (
        ("/rename A better name", "This session is now called A better name."),
        ("/mode", "- `/mode auto` edits and confined commands go through"),
        ("/mode auto", "Mode auto: "),
        ("/mode godly", "> 'godly' is not a mode"),
        ("/cost", "| main | scripted |"),
    ):
        before = len(editor.said())
        assert editor.prompt(session, text) == "end_turn"
        assert shown in editor.said()[before:], text
    assert editor.updates("current_mode_update")[-1]["currentModeId"] == "auto"
    assert len(server.requests) == 1, "no model was asked"
    assert [each["title"] for each in editor.updates("session_info_update")] == ["Hi."]
    assert editor.prompt(session, "/new") == "end_turn"
    assert "/new is for the terminal" in editor.said()
    # What is no command is a text, as a path may be.
    server.then("A directory.")
    assert editor.prompt(session, "/usr is what?") == "end_turn"
    assert server.requests[-1].last == "/usr is what?"


def test_a_file_that_a_command_proposes_is_written_once_allowed(
    editor: RawEditor, server: OpenAIServer
) -> None:
    session = editor.new()
    server.then("Hello.")
    editor.prompt(session, "Hi.")
    editor.on["session/request_permission"] = choose("reject", "allow")

    assert editor.prompt(session, "/export talk.md") == "end_turn"
    assert "It was not written." in editor.said()
    assert not (editor.directory / "talk.md").exists()
    assert editor.prompt(session, "/export talk.md") == "end_turn"

    change = editor.asked("session/request_permission")[1]["toolCall"]["content"][1]
    assert change["path"] == str(editor.directory / "talk.md")
    assert "Hello." in (editor.directory / "talk.md").read_text()


def test_a_session_that_cannot_be_shown_says_so_and_goes_on(
    editor: RawEditor, server: OpenAIServer, state: Path
) -> None:
    server.then("Hello.", "Yes.")
    session = editor.new()
    editor.prompt(session, "Hi.")
    editor.call("session/close", sessionId=session)
    with SqliteSaver.from_conn_string(str(Sessions(state).path)) as saver:
        agent = create_deep_agent(ScriptedModel(), checkpointer=saver)
        agent.update_state({"configurable": {"thread_id": session}}, {"todos": [{}]})

    with pytest.raises(Failure, match="The session is open, and cannot be shown"):
        editor.call("session/load", sessionId=session, cwd=str(editor.directory), mcpServers=[])

    assert editor.prompt(session, "Are you there?") == "end_turn"


def test_a_command_from_a_file_becomes_a_prompt(start: Start, server: OpenAIServer, tmp_path: Path) -> None:
    editor = start()
    commands = tmp_path / "home" / ".deepagents" / "commands"
    commands.mkdir(parents=True)
    (commands / "greet.md").write_text("---\ndescription: greet somebody\n---\nGreet $ARGUMENTS.\n")
    editor.initialize()
    session = editor.new()
    server.then("Hello, Ada.", "Hello, notes.")

    assert editor.prompt(session, "/greet Ada") == "end_turn"
    assert server.requests[-1].last.strip() == "Greet Ada."
    link = {"type": "resource_link", "name": "notes.md", "uri": (editor.directory / "notes.md").as_uri()}
    assert editor.prompt(session, "/greet ", link) == "end_turn"
    assert server.requests[-1].last.startswith("Greet @notes.md.")
    assert "first line" in server.requests[-1].last


@pytest.mark.parametrize(
    ("options", "reason"),
    [(("--max-model-calls", "1"), "max_turn_requests"), (("--max-tokens", "10"), "max_tokens")],
)
def test_a_turn_that_ends_at_a_limit_says_so(
    start: Start, server: OpenAIServer, options: tuple[str, ...], reason: str
) -> None:
    editor = start(*options)
    editor.initialize()
    server.then(call("read_file", file_path="notes.md"), "More.")

    assert editor.prompt(editor.new(), "Read.") == reason
    assert "is reached" in editor.said()


def test_an_answer_that_breaks_off_is_not_a_whole_one(editor: RawEditor, server: OpenAIServer) -> None:
    server.then(Reply("Half an ans", finish="length"))

    assert editor.prompt(editor.new(), "Write.") == "max_tokens"


def test_a_model_that_fails_is_an_error_with_its_reason_and_the_next_prompt_works(
    editor: RawEditor, server: OpenAIServer
) -> None:
    server.then(Reply("The model has gone fishing.", status=400), "Back again.")
    session = editor.new()

    with pytest.raises(Failure, match="gone fishing"):
        editor.prompt(session, "Hi.")
    assert editor.prompt(session, "Hi again.") == "end_turn"


def test_how_full_the_window_is_and_what_it_cost_is_shown_where_it_is_known() -> None:
    known = Status("m", "ask", context=0.25, in_context=50_000, cost=0.5)

    shown = updates.usage(known)
    assert shown is not None
    assert (shown.used, shown.size, shown.cost) == (50_000, 200_000, Cost(amount=0.5, currency="USD"))
    assert updates.usage(replace(known, context=None)) is None


def test_what_a_directory_brings_is_left_out_and_named(editor: RawEditor, server: OpenAIServer) -> None:
    (editor.directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"hotel": crooked("book")}}))
    server.then("Hello.")

    assert editor.prompt(editor.new(), "Hi.") == "end_turn"

    assert "not used until you trust this directory" in editor.said()
    assert "mcp__hotel__book" not in server.requests[-1].tools

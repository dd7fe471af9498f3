"""An editor that offers files: what it shows is read, and what the agent writes goes through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.openai_server import OpenAIServer, Reply, Request, call
from tests.cli.views.acp.conftest import Message, RawEditor, Start, choose

pytestmark = pytest.mark.slow


class Buffers:
    """The files of an editor: some hold what is not saved."""

    def __init__(self, editor: RawEditor, *, saves: bool = True) -> None:
        self.unsaved: dict[str, str] = {}
        self._saves = saves
        editor.on["fs/read_text_file"] = self._read
        editor.on["fs/write_text_file"] = self._write

    def _read(self, params: Message) -> Message:
        path = params["path"]
        return {"content": self.unsaved.get(path) or Path(path).read_text()}

    def _write(self, params: Message) -> Message:
        if self._saves:
            Path(params["path"]).write_text(params["content"])
            self.unsaved.pop(params["path"], None)
        else:
            self.unsaved[params["path"]] = params["content"]
        return {}


@pytest.fixture
def editor(start: Start) -> RawEditor:
    """An editor that offers files, and allows what it is asked about."""
    started = start("--mode", "auto")
    started.initialize(fs={"readTextFile": True, "writeTextFile": True})
    return started


def _results(server: OpenAIServer) -> list[str]:
    return server.requests[-1].texts("tool")


@pytest.mark.parametrize("saves", [True, False])
def test_what_is_not_saved_is_read_and_edited(editor: RawEditor, server: OpenAIServer, saves: bool) -> None:
    buffers, path = Buffers(editor, saves=saves), editor.directory / "notes.md"
    buffers.unsaved[str(path)] = "first line\nnew, and not saved\n"
    server.then(
        call("read_file", file_path=str(path)),
        call("edit_file", file_path=str(path), old_string="new, and", new_string="new, still"),
        call("edit_file", file_path=str(path), old_string="first", new_string="1st"),
        call("write_file", file_path=str(path), content="all anew\n"),
        "Done.",
    )

    assert editor.prompt(editor.new(), "Edit it.") == "end_turn"

    results = _results(server)
    assert "new, and not saved" in results[0]
    assert results[1:3] == [f"Successfully replaced 1 instance(s) of the string in '{path}'"] * 2
    written = [each["content"] for each in editor.asked("fs/write_text_file")]
    assert written == [
        "first line\nnew, still not saved\n",
        "1st line\nnew, still not saved\n",
        "all anew\n",
    ]
    assert (path.read_text() == "all anew\n") is saves
    assert (buffers.unsaved.get(str(path)) == "all anew\n") is not saves


def test_the_question_about_an_edit_shows_it_in_the_buffer(start: Start, server: OpenAIServer) -> None:
    editor = start()
    editor.initialize(fs={"readTextFile": True, "writeTextFile": True})
    buffers, path = Buffers(editor), editor.directory / "notes.md"
    buffers.unsaved[str(path)] = "not saved\n"
    editor.on["session/request_permission"] = choose("allow")
    server.then(
        call("read_file", file_path=str(path)),
        call("edit_file", file_path=str(path), old_string="not saved", new_string="saved"),
        "Done.",
    )

    assert editor.prompt(editor.new(), "Edit it.") == "end_turn"

    change = editor.asked("session/request_permission")[0]["toolCall"]["content"][1]
    assert (change["oldText"], change["newText"]) == ("not saved\n", "saved\n")
    assert path.read_text() == "saved\n"


def test_what_the_person_types_meanwhile_is_not_overwritten(editor: RawEditor, server: OpenAIServer) -> None:
    buffers, path = Buffers(editor), editor.directory / "notes.md"

    def type_meanwhile(request: Request) -> Reply:
        buffers.unsaved[str(path)] = "what the person types\n"
        return call("write_file", file_path=str(path), content="all anew\n")

    server.then(call("read_file", file_path=str(path)), type_meanwhile, "Oh.")

    assert editor.prompt(editor.new(), "Write it.") == "end_turn"

    assert "changed" in _results(server)[-1]
    assert editor.asked("fs/write_text_file") == []
    assert buffers.unsaved[str(path)] == "what the person types\n"


def test_a_new_file_is_made_through_the_editor_and_one_in_a_new_directory_without_it(
    editor: RawEditor, server: OpenAIServer
) -> None:
    Buffers(editor)
    new, below = editor.directory / "new.md", editor.directory / "a" / "b.md"
    server.then(
        call("write_file", file_path=str(new), content="one\n"),
        call("write_file", file_path=str(below), content="two\n"),
        "Done.",
    )

    assert editor.prompt(editor.new(), "Write them.") == "end_turn"

    assert [each["path"] for each in editor.asked("fs/write_text_file")] == [str(new)]
    assert (new.read_text(), below.read_text()) == ("one\n", "two\n")


def test_an_editor_that_cannot_write_is_an_error_for_the_model(
    editor: RawEditor, server: OpenAIServer
) -> None:
    Buffers(editor)
    del editor.on["fs/write_text_file"]
    path = editor.directory / "notes.md"
    server.then(call("edit_file", file_path=str(path), old_string="first", new_string="1st"), "Oh.")

    assert editor.prompt(editor.new(), "Edit it.") == "end_turn"

    assert "The editor did not write" in _results(server)[-1]
    assert path.read_text() == "first line\nsecond line\n"


def test_a_write_that_the_editor_did_not_keep_is_an_error(editor: RawEditor, server: OpenAIServer) -> None:
    Buffers(editor)
    editor.on["fs/write_text_file"] = lambda params: {}
    path = editor.directory / "notes.md"
    server.then(call("edit_file", file_path=str(path), old_string="first", new_string="1st"), "Oh.")

    assert editor.prompt(editor.new(), "Edit it.") == "end_turn"

    assert "was to be written by an editor, which did not" in _results(server)[-1]
    assert editor.call_of(editor.updates("tool_call")[0]["toolCallId"])["status"] == "failed"


def test_an_editor_that_formats_what_it_saves_is_named(editor: RawEditor, server: OpenAIServer) -> None:
    Buffers(editor)
    path = editor.directory / "notes.md"

    def format_and_save(params: Message) -> Message:
        Path(params["path"]).write_text(params["content"].upper())
        return {}

    editor.on["fs/write_text_file"] = format_and_save
    server.then(call("edit_file", file_path=str(path), old_string="first", new_string="1st"), "Oh.")

    assert editor.prompt(editor.new(), "Edit it.") == "end_turn"

    assert "What is there now is another text" in _results(server)[-1]
    assert editor.call_of(editor.updates("tool_call")[0]["toolCallId"])["status"] == "completed"


def test_what_an_editor_does_not_show_is_read_from_the_disk(editor: RawEditor, server: OpenAIServer) -> None:
    path = editor.directory / "notes.md"
    server.then(call("read_file", file_path=str(path)), "Read.")

    assert editor.prompt(editor.new(), "Read it.") == "end_turn"

    assert editor.asked("fs/read_text_file")
    assert "second line" in _results(server)[-1]


def test_the_editor_is_not_asked_for_what_is_out_of_bounds(
    editor: RawEditor, server: OpenAIServer, tmp_path: Path
) -> None:
    Buffers(editor)
    outside = tmp_path / "outside.md"
    outside.write_text("not for the agent\n")
    (editor.directory / "link.md").symlink_to(outside)
    (editor.directory / ".env").write_text("KEY=hidden\n")
    editor.on["session/request_permission"] = choose("reject")
    server.then(
        call("read_file", file_path=str(outside)),
        call("read_file", file_path=str(editor.directory / "link.md")),
        call("write_file", file_path=str(editor.directory / "link.md"), content="changed\n"),
        call("read_file", file_path=str(editor.directory / ".env")),
        "Oh.",
    )

    assert editor.prompt(editor.new(), "Read them.") == "end_turn"

    assert editor.asked("fs/read_text_file") == []
    assert editor.asked("fs/write_text_file") == []
    assert outside.read_text() == "not for the agent\n"
    assert not any("not for the agent" in each or "hidden" in each for each in _results(server))


def test_while_a_command_runs_the_editor_opens_nothing(editor: RawEditor, server: OpenAIServer) -> None:
    buffers, path = Buffers(editor), editor.directory / "notes.md"
    buffers.unsaved[str(path)] = "not saved\n"
    server.then(
        call("execute", command="sleep 300", background=True),
        # It could put a link in the place of a directory that was checked.
        call("read_file", file_path=str(path)),
        "Done.",
    )

    assert editor.prompt(editor.new(), "Read it.") == "end_turn"

    assert editor.asked("fs/read_text_file") == []
    assert "second line" in _results(server)[1]
    # It may be one of another session in the same directory.
    server.then(call("read_file", file_path=str(path)), "Done.")
    assert editor.prompt(editor.new(), "Read it.") == "end_turn"
    assert editor.asked("fs/read_text_file") == []


def test_without_the_sandbox_the_editor_reads_the_paths_of_this_machine(
    start: Start, server: OpenAIServer
) -> None:
    editor = start("--shell")
    editor.initialize(fs={"readTextFile": True, "writeTextFile": True})
    buffers, path = Buffers(editor), editor.directory / "notes.md"
    buffers.unsaved[str(path)] = "not saved\n"
    editor.on["session/request_permission"] = choose("allow")
    server.then(
        call("read_file", file_path="/notes.md"),
        call("edit_file", file_path="/notes.md", old_string="not saved", new_string="saved"),
        "Done.",
    )

    assert editor.prompt(editor.new(), "Edit it.") == "end_turn"

    assert {each["path"] for each in editor.asked("fs/read_text_file")} == {str(path)}
    change = editor.asked("session/request_permission")[0]["toolCall"]
    assert change["content"][1]["path"] == str(path)
    assert editor.call_of(change["toolCallId"])["locations"] == [{"path": str(path)}]
    assert path.read_text() == "saved\n"


def test_what_was_written_through_the_editor_is_taken_back(editor: RawEditor, server: OpenAIServer) -> None:
    Buffers(editor)
    path = editor.directory / "notes.md"
    server.then(
        call("edit_file", file_path=str(path), old_string="first", new_string="1st"),
        call("execute", command="echo made > made.txt"),
        "Done.",
    )
    session = editor.new()
    assert editor.prompt(session, "Change both.") == "end_turn"
    assert path.read_text() == "1st line\nsecond line\n"

    before = len(editor.said())
    assert editor.prompt(session, "/undo") == "end_turn"
    shown = editor.said()[before:]
    assert "notes.md" in shown
    assert "made.txt" in shown
    agreed = next(each for each in shown.split("`") if each.endswith(" yes"))
    assert editor.prompt(session, agreed) == "end_turn"

    assert path.read_text() == "first line\nsecond line\n"
    assert not (editor.directory / "made.txt").exists()

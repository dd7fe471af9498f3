"""A person talks with the agent at a terminal, and sees what it does."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.scenarios import SENTENCES
from tests.cli.tmux import Tmux, needs_tmux
from tests.cli.views.chat.conftest import SOURCES, Start

pytestmark = pytest.mark.slow

READY = r"test:model"
COLOURS = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|4[0-7])m")


def test_the_screen_imports_nothing_of_the_agent() -> None:
    program = (
        "import pkgutil, sys\n"
        "from importlib import import_module\n"
        "import deepagents_cli.__main__, deepagents_cli.commands.chat, deepagents_cli.views.chat as chat\n"
        "def loaded(*names): return [name for name in names if name in sys.modules]\n"
        "print(loaded('asyncio', 'subprocess', 'prompt_toolkit', 'rich', 'pydantic', 'langchain_core'))\n"
        "[import_module(each.name) for each in pkgutil.walk_packages(chat.__path__, f'{chat.__name__}.')]\n"
        "print(loaded('langchain', 'langchain_core', 'langgraph', 'langsmith', 'pydantic', 'anthropic'))"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (ended.stdout, ended.stderr) == ("[]\n[]\n", "")


@needs_tmux
def test_an_answer_is_shown_as_markdown(talk: Tmux) -> None:
    talk.type(r"say # Title\n\nSome **bold** text.\n\n```python\nx = 1\n```\n")
    talk.keys("Enter")

    shown = talk.wait_for(r"^  x = 1")

    assert "\nTitle\n\nSome bold text.\n" in shown


@needs_tmux
def test_what_is_typed_before_the_prompt_is_ready_is_kept(start: Start) -> None:
    with start() as terminal:
        terminal.wait_for("deepagents")
        terminal.type("say early bird")
        terminal.keys("Enter")

        terminal.wait_for("^early bird")
        assert terminal.screen().count("say early bird") == 1


@needs_tmux
def test_enter_before_the_program_runs_sends_what_was_typed(directory: Path, state: Path) -> None:
    fifo = directory.parent / "start"
    os.mkfifo(fifo)
    environment = {"PYTHONPATH": str(SOURCES), "DEEPAGENTS_STATE": str(state), "HOME": str(state)}
    program = shlex.join([sys.executable, str(Path(__file__).parent / "start.py")])
    script = f"echo waiting; read line <{fifo}; exec {program}"
    with Tmux(["sh", "-c", script], directory=directory, environment=environment) as terminal:
        terminal.wait_for("^waiting")
        terminal.type("say earliest bird")
        terminal.keys("Enter")
        terminal.type("say second")
        terminal.wait_for("^say second")
        fifo.write_text("go\n")

        terminal.wait_for("^earliest bird")
        terminal.wait_for("^› say second$")


@needs_tmux
def test_what_the_person_has_set_counts(start: Start, state: Path) -> None:
    state.mkdir(exist_ok=True)
    settings = state / "settings.toml"
    settings.write_text("theme = 'none'\neditor = 'sed -i s/new/of_settings/'\n")
    log = state / "logs" / "worker-1.log"
    log.parent.mkdir()
    log.touch()
    os.utime(log, (0, 0))
    with start(rows=40, NO_COLOR="", DEEPAGENTS_SETTINGS=str(settings)) as terminal:
        terminal.wait_for(READY)
        terminal.type("ask")
        terminal.keys("Enter")
        terminal.wait_for(r"\[e\]dit")
        terminal.type("e")
        terminal.keys("Enter")
        terminal.wait_for(r"^  \+of_settings")
        assert not COLOURS.search(terminal.screen(colours=True))
        assert not log.exists(), "the log of a worker that died long ago"
    settings.write_text("plain = true\n")
    with start(DEEPAGENTS_SETTINGS=str(settings)) as terminal:
        terminal.wait_for("^Ready.")
        assert "\x1b[" not in terminal.screen(colours=True)


@needs_tmux
def test_bytes_that_are_no_characters_do_not_get_far(start: Start) -> None:
    with start() as terminal:
        terminal.wait_for(READY)
        terminal.type("say caf")
        terminal.keys("-H", "e9")
        terminal.type(" open")
        terminal.keys("Enter")

        terminal.wait_for("^caf\ufffd open")


@needs_tmux
def test_steps_are_shown_in_a_line_each(start: Start) -> None:
    with start(columns=60) as terminal:
        terminal.wait_for(READY)
        terminal.type("tools")
        terminal.keys("Enter")

        shown = terminal.wait_for("Finished.")
        terminal.wait_for(r"\[>\] mend")

    assert "✓ read_file a.py  12 lines" in shown
    assert "✗ execute make  exit code 2\n    building\n      linking       a.o\n" in shown
    assert "✓ reviewer look twice  all is well" in shown


@needs_tmux
def test_what_is_typed_while_the_agent_works_waits_and_can_be_taken_back(talk: Tmux) -> None:
    talk.type("slow")
    talk.keys("Enter")
    talk.wait_for("helper .*: dig")
    talk.type("and then this")
    talk.keys("Enter")
    talk.wait_for("queued: and then this")
    talk.keys("Up")
    talk.wait_until_gone("queued:")
    talk.wait_for("^› and then this")
    talk.keys("Escape")

    shown = talk.wait_for("Stopped. What is done is kept.")

    assert "› and then this" in shown


@needs_tmux
def test_a_change_is_approved_after_it_was_edited_in_place(talk: Tmux) -> None:
    talk.type("ask")
    talk.keys("Enter")
    talk.wait_for(r"wants to edit src/a.py\n  @@ -1 \+1 @@\n  -old\\x1b\[2J\n  \+new")
    talk.wait_for(r"\[y\]es \[n\]o \[e\]dit \[r\]eply \[a\]lways")
    talk.type("e")
    talk.keys("Enter")
    talk.wait_for("Ctrl-S")
    talk.keys("Enter")
    talk.type("second line")
    talk.keys("C-s")
    talk.wait_for(r"^  \+second line")
    talk.wait_for(r"\[y\]es")
    talk.type("y")
    talk.keys("Enter")

    talk.wait_for('"decision": "approve"')


@needs_tmux
def test_a_key_typed_before_the_question_does_not_answer_it(talk: Tmux) -> None:
    talk.type("ask")
    talk.keys("Enter", "y", "e", "s")

    talk.wait_for("^› yes")
    talk.wait_for("^Send or clear the line; then this can be answered.$")
    # The rest of a word that was begun before is not an answer either, and neither are the next ones at once.
    talk.keys("Enter", "y", "Enter", "y", "Enter")
    talk.wait_for("typed before the question could be read")
    talk.wait_for(r"\[y\]es")
    talk.type("n")
    talk.keys("Enter")
    talk.wait_for("Why")
    talk.type("not like this")
    talk.keys("Enter")

    talk.wait_for('"message": "not like this"')
    talk.wait_for("Refused: not like this")


@needs_tmux
def test_a_sentence_is_for_the_agent_and_answers_nothing(talk: Tmux) -> None:
    talk.type("ask")
    talk.keys("Enter")
    talk.wait_for(r"^\[y\]es .* and Enter$")
    # As slowly as one may type: what has been drawn has stood there for longer than any pause.
    for end in range(1, len(SENTENCES[0]) + 1):
        talk.type(SENTENCES[0][end - 1])
        talk.wait_for(rf"^› {re.escape(SENTENCES[0][:end].rstrip())} *$")
    talk.keys("Enter", "Enter")
    for sentence in SENTENCES[1:]:
        talk.type(sentence)
        talk.keys("Enter", "Enter")
        talk.wait_for(rf"queued: {re.escape(sentence)}$")
    talk.wait_for(r"^\[y\]es")
    talk.type("NO")
    talk.keys("Enter")
    talk.wait_for("^Why")
    talk.keys("Enter")

    talk.wait_for('"decision": "reject"')


@needs_tmux
def test_lines_that_were_not_shown_cannot_be_agreed_to(talk: Tmux) -> None:
    talk.type("ask 600")
    talk.keys("Enter")
    talk.wait_for(r"103 more lines; view them to agree")
    talk.wait_for(r"^\[v\]iew \[n\]o \[r\]eply")
    talk.type("yes")
    talk.keys("Enter")
    talk.wait_for("that is not an answer to this question")
    talk.type("view")
    talk.keys("Enter")
    talk.wait_for(r"\[y\]es")
    talk.type("y")
    talk.keys("Enter")

    talk.wait_for('"decision": "approve"')


@needs_tmux
def test_the_next_text_takes_the_place_of_a_mistyped_command(talk: Tmux) -> None:
    for typed in ("/undo", "/rewind"):
        talk.type(typed)
        talk.keys("Enter")
        talk.wait_for(f"There is no command {typed}")
        talk.wait_for(f"^› {typed}$")
    talk.type("say on")
    talk.keys("Enter")
    talk.wait_for("^on")
    talk.type("/undo")
    talk.keys("Enter")
    talk.wait_for("(?s)^on$.*There is no command /undo.*^› /undo$")
    talk.keys("Home", "Delete")
    talk.type("say ")

    talk.wait_for("^› say undo$")
    talk.keys("C-u", "C-k", "Up", "Up", "Up")
    talk.wait_for("^› /rewind$")


@needs_tmux
def test_always_is_chosen_with_its_scope(talk: Tmux) -> None:
    talk.type("ask")
    talk.keys("Enter")
    talk.wait_for(r"\[a\]lways")
    talk.type("a")
    talk.keys("Enter")
    talk.wait_for("edits of src/a.py")
    talk.type("below")
    talk.wait_until_gone("edits of src/a.py")
    talk.keys("Enter")
    talk.wait_for("in this directory")
    talk.keys("Down", "Enter")

    talk.wait_for(r'"rule": "edit_file src/",\s+"scope":\s+"directory"')


@needs_tmux
def test_what_cannot_be_used_is_not_picked(talk: Tmux) -> None:
    talk.type("/model")
    talk.keys("Enter")
    talk.wait_for("b:two  ONE_API_KEY is not set")
    talk.keys("Down", "Enter")

    talk.wait_for("did model c:three")


@needs_tmux
def test_commands_and_files_are_completed(talk: Tmux) -> None:
    talk.type("/rem")
    talk.wait_for("/remember  write to memory")
    talk.keys("C-u")
    talk.type("say @not")
    talk.wait_for(r"^  notes\.md")
    assert "notes.log" not in talk.screen()
    # The only one that is left is taken at once, so that Enter sends.
    talk.keys("Tab", "Enter")

    talk.wait_for("attached: notes.md")


@needs_tmux
def test_a_file_in_a_directory_is_completed_step_by_step(talk: Tmux) -> None:
    talk.type("say @two")
    talk.wait_for("^  two words/$")
    talk.keys("Tab", "Enter")
    talk.wait_for(r'^› say @"two words/$')
    talk.keys("BSpace")
    talk.type("/")
    talk.wait_for("^  two words/pans.md$")
    assert not re.search("^  two words/$", talk.screen(), re.MULTILINE), "what is typed is offered"
    talk.keys("Tab", "Enter")

    talk.wait_for("attached: pans.md")


@needs_tmux
def test_a_long_paste_is_folded_and_sent_whole(talk: Tmux) -> None:
    talk.type("say ")
    talk.paste("\n\n".join(f"paragraph {number}" for number in range(20)))
    talk.wait_for(r"say \[pasted 39 lines #1\]")
    talk.keys("Enter")

    talk.wait_for("^paragraph 19")


@needs_tmux
def test_a_proposed_file_is_shown_before_it_is_written(talk: Tmux) -> None:
    talk.type("/remember tabs, not spaces")
    talk.keys("Enter")
    talk.wait_for(r"Write AGENTS.md\?\n- tabs, not spaces")
    talk.wait_for(r"\[y\]es")
    talk.type("y")
    talk.keys("Enter")

    talk.wait_for("saved '- tabs, not spaces")


@needs_tmux
def test_trust_is_asked_before_anything_is_sent(start: Start, directory: Path) -> None:
    (directory / "trust-me").touch()
    with start() as terminal:
        terminal.wait_for(r"hook evil\\x1b\[2J: rm -rf ~")
        terminal.wait_for(r"\[y\]es \[n\]o")
        terminal.type("n")
        terminal.keys("Enter")

        terminal.wait_for("trusted: no")


@needs_tmux
def test_a_sentence_trusts_nothing_and_is_kept_for_later(start: Start, directory: Path) -> None:
    (directory / "trust-me").touch()
    with start() as terminal:
        terminal.wait_for(r"^\[y\]es \[n\]o")
        for sentence in ("/history", "say please, tell me why"):
            terminal.type(sentence)
            terminal.keys("Enter")
        terminal.wait_for("queued: say please, tell me why")
        terminal.wait_for(r"^\[y\]es \[n\]o")
        terminal.type("n")
        terminal.keys("Enter")
        terminal.wait_for("trusted: no")

        terminal.wait_for("^please, tell me why")
        terminal.wait_for("^› /history$")
        terminal.type("say on")
        terminal.wait_for("^› say on$")


@needs_tmux
def test_ctrl_c_twice_leaves_with_the_line_that_goes_on(start: Start) -> None:
    with start() as terminal:
        terminal.wait_for(READY)
        terminal.type("say hello")
        terminal.keys("Enter")
        terminal.wait_for("^hello")
        terminal.keys("C-c")
        terminal.wait_for("Ctrl-C again leaves")
        # Who goes on typing does not want to leave.
        terminal.type("more")
        terminal.keys("C-c")
        terminal.wait_until_gone("more")
        terminal.keys("C-c")

        assert terminal.wait_for_end() == 0
        assert "Go on with: deepagents --continue" in terminal.screen()


@needs_tmux
def test_a_worker_that_dies_is_explained_and_started_again(start: Start) -> None:
    with start() as terminal:
        terminal.wait_for(READY)
        terminal.type("die")
        terminal.keys("Enter")
        terminal.wait_for("The agent's process has ended with code 3.")
        terminal.wait_for("Traceback: out of luck")
        terminal.wait_for("Or go on later with: deepagents --continue")
        terminal.type("say again")
        terminal.keys("Enter")

        terminal.wait_for("^again")


@needs_tmux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(start: Start, number: int) -> None:
    with start() as terminal:
        terminal.wait_for(READY)
        os.kill(terminal.pid, number)

        assert terminal.wait_for_end() == 130


@needs_tmux
def test_plain_mode_writes_and_asks_in_lines(start: Start) -> None:
    with start(TERM="dumb") as terminal:
        terminal.wait_for("^Ready.")
        terminal.type("ask")
        terminal.keys("Enter")
        terminal.wait_for(r"yes \(y\), no \(n\)")
        terminal.type("n")
        terminal.keys("Enter")
        terminal.wait_for(r"Why")
        terminal.type("too early")
        terminal.keys("Enter")
        terminal.wait_for('"message": "too early"')
        terminal.keys("C-d")

        assert terminal.wait_for_end() == 0
        assert "\x1b[" not in terminal.screen(colours=True)


@needs_tmux
def test_hostile_text_moves_nothing(talk: Tmux) -> None:
    talk.type("hostile")
    talk.keys("Enter")

    # The branch of the scripted worker stands in the status line, which is drawn last.
    shown = talk.wait_for(r"(?s)^the end.*main\\x1b\[31m")

    assert r"[a\x1b[2J](http://x\x1b]0;t\x07)" in shown
    assert "&#27;[2J &#x202e;evil" in shown, "the name of a character is not a character"
    assert r"\x9b2J" in shown
    assert "› hostile" in shown, "the screen was cleared"


@needs_tmux
def test_narrow_and_resized_terminals(start: Start) -> None:
    with start(columns=20, rows=8) as terminal:
        terminal.wait_for("^›")
        terminal.type("tools")
        terminal.keys("Enter")
        terminal.wait_for("Finished.")
        terminal.resize(60, 20)
        terminal.type("ask")
        terminal.keys("Enter")
        terminal.wait_for(r"\[y\]es \[n\]o \[e\]dit \[r\]eply \[a\]lways")
        terminal.resize(20, 12)
        terminal.wait_for(r"^\[y\]es \[n\]o \[e\]dit\n\[r\]eply \[a\]lways\n\[\?\] and Enter$")
        terminal.resize(20, 6)
        terminal.type("y")
        terminal.keys("Enter")
        terminal.wait_for("approve")
        terminal.resize(100, 30)
        terminal.type("say wide again")
        terminal.keys("Enter")

        terminal.wait_for("^wide again")


@needs_tmux
def test_what_is_typed_is_drawn_again_when_the_window_was_dragged(start: Start) -> None:
    typed = " ".join(f"word{number}" for number in range(30))
    with start(columns=110, rows=20) as terminal:
        terminal.wait_for(READY)
        terminal.type(f"say {typed}")
        terminal.wait_for("word29")
        for columns in range(100, 80, -1):
            terminal.resize(columns, 20)
            if "word29" not in terminal.screen():
                break
        else:
            pytest.fail("rows of it are drawn at each width, and a terminal keeps copies of them")
        terminal.wait_for("word29")
        terminal.keys("Enter")

        terminal.wait_for(r"^word0 (.|\n)*word29\n")


@needs_tmux
def test_no_color_leaves_colours_out(start: Start) -> None:
    with start(NO_COLOR="1") as terminal:
        terminal.wait_for(READY)
        terminal.type("tools")
        terminal.keys("Enter")
        terminal.wait_for("Finished.")
        shown = terminal.screen(colours=True)

    assert not COLOURS.search(shown)


@needs_tmux
@pytest.mark.parametrize("variable", ["LANG", "LC_ALL"])
def test_a_locale_without_further_characters_gets_none(start: Start, variable: str) -> None:
    with start(forked=False, **{"LANG": "", "LC_ALL": "", "LC_CTYPE": "", variable: "C"}) as terminal:
        terminal.wait_for(READY)
        for text in ("tools", r"say - one\n\n> two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"):
            terminal.type(text)
            terminal.keys("Enter")
        terminal.wait_for(r"^\|1 +\|2")

        assert terminal.screen().isascii()


@needs_tmux
def test_a_change_is_edited_in_the_editor(start: Start, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho 'of my own' >> \"$1\"\n")
    editor.chmod(0o700)
    with start(EDITOR=str(editor), rows=40) as terminal:
        terminal.wait_for(READY)
        terminal.type("ask")
        terminal.keys("Enter")
        terminal.wait_for(r"\[e\]dit")
        terminal.type("e")
        terminal.keys("Enter")
        terminal.wait_for(r"^  \+newof my own")
        terminal.wait_for(r"\[e\]dit")
        terminal.type("y")
        terminal.keys("Enter")

        terminal.wait_for("approve")


@needs_tmux
def test_a_late_answer_about_the_background_is_no_input(talk: Tmux) -> None:
    talk.type("say one")
    # At once, as terminals send it: what follows Escape later is typed by a person.
    talk.type("\x1b]11;rgb:ffff/ffff/ffff\x07")
    talk.type(" two")
    talk.keys("Enter")

    talk.wait_for("^one two$")


@needs_tmux
def test_a_question_of_a_tool_is_answered_by_a_text(talk: Tmux) -> None:
    talk.type("question")
    talk.keys("Enter")
    talk.wait_for("Answer:")
    talk.type("the left one")
    talk.keys("Enter")

    talk.wait_for("You said the left one.")


@needs_tmux
def test_history_is_private_and_lasts(start: Start, state: Path) -> None:
    with start() as terminal:
        terminal.wait_for(READY)
        terminal.type("say remembered")
        terminal.keys("Enter")
        terminal.wait_for("^remembered")
        terminal.type("say ")
        terminal.paste("\n".join(f"line {number}" for number in range(9)))
        terminal.keys("Enter")
        terminal.wait_for("^line 0")
        terminal.keys("C-d")
        terminal.wait_for_end()
    with start("--continue") as terminal:
        terminal.wait_for(READY)
        terminal.wait_for("earlier question")
        terminal.keys("Up")
        terminal.wait_for("^› say line 0\n  line 1\n")
        terminal.keys("C-u", "C-r")
        terminal.wait_for("^> say line 0 line 1")
        terminal.type("remem")
        terminal.wait_for("^> say remembered")
        terminal.keys("Enter")
        terminal.wait_for("^› say remembered$")

    assert (state / "history").stat().st_mode & 0o777 == 0o600


@needs_tmux
def test_several_lines_are_written_and_sent(talk: Tmux) -> None:
    talk.type("say one\\")
    talk.keys("Enter")
    talk.type("two")
    talk.keys("M-Enter")
    talk.type("three")
    talk.keys("C-j")
    talk.type("four")
    talk.keys("Enter")

    talk.wait_for("^one two three four")


@needs_tmux
def test_more_files_are_offered_once_the_directory_is_read(start: Start, directory: Path) -> None:
    for number in range(3_000):
        (directory / f"part{number % 7}" / f"part{number % 11}").mkdir(parents=True, exist_ok=True)
        (directory / f"part{number % 7}" / f"part{number % 11}" / f"file{number}.txt").touch()
    with start() as terminal:
        terminal.wait_for(READY)
        terminal.type("say @pt5fl2777")

        terminal.wait_for("^  part5/part5/file2777.txt")
        terminal.keys("Tab")
        terminal.wait_for(r"^› say @part5/part5/file2777.txt")

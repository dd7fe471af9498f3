"""Answers are cut into blocks while they stream; files are listed within bounds; the status line fits."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.input import DummyInput, create_pipe_input
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.output import DummyOutput

from deepagents import events
from deepagents_cli import protocol
from deepagents_cli.views.chat.input.completion import ChatCompleter
from deepagents_cli.views.chat.input.composer import Composer
from deepagents_cli.views.chat.input.files import FileIndex, walk
from deepagents_cli.views.chat.input.keyboard import HeldOutput
from deepagents_cli.views.chat.input.line import InputLine
from deepagents_cli.views.chat.screen.drawing import Drawing
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.conversation.status import status_line, status_parts
from deepagents_cli.views.conversation.streaming import MarkdownStream, Piece
from deepagents_cli.views.conversation.transcript import Block, Transcript
from deepagents_cli.views.rendering.live import draw_live
from deepagents_cli.views.rendering.render import Renderer
from deepagents_cli.views.terminal.theme import find_look, take_answer

ANSWER = """Intro
goes on.

1. one

   ```sh
   make
   ```
2. two

# Title
```python
x = 1

y = 2
```
End."""


@given(st.lists(st.integers(1, 30), max_size=20), st.sampled_from(["\n", "\r\n"]))
def test_blocks_do_not_depend_on_how_the_text_arrives(sizes: list[int], newline: str) -> None:
    stream, rest, pieces = MarkdownStream(), ANSWER.replace("\n", newline), list[Piece]()
    for size in sizes:
        pieces += stream.feed(rest[:size])
        rest = rest[size:]
    pieces += [*stream.feed(rest), *stream.finish()]

    assert pieces == [
        Piece("Intro\ngoes on."),
        Piece("1. one\n\n   ```sh\n   make\n   ```\n2. two"),
        Piece("# Title"),
        Piece("x = 1\n\ny = 2", "python"),
        Piece("End."),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Use List<String>; put <name> in. <!-- not seen --> <b>x</b>",
            "Use List<String>; put <name> in. <!-- not seen --> <b>x</b>",
        ),
        ("<details>\nInside\n</details>", "<details> Inside </details>"),
        ("1. fix\n\n<!-- and push -->\n", " 1 fix\n<!-- and push -->"),
        ("[//]: # (push it)\n\n[a]: http://x.y 'more'", "[//]: # (push it)\n[a]: http://x.y 'more'"),
        ("[^1]: a note", "[^1]: a note"),
        ('[a](http://x.y/ü "title")', 'a (http://x.y/ü "title")'),
        ("![alt](http://x.y/z.png 'title')", '!alt (http://x.y/z.png "title")'),
        ("```sh curl x | sh\nls\n```", "  sh curl x | sh\n  ls"),
        ("```push-it\n```", "  push-it"),
        ("- x\n  ```sh curl x\n  ls\n  ```", " • x\n     sh curl x\n     ls"),
        ("```ls -la``` lists", "ls -la lists"),
        ("| a | b |\n|---|---|\n| 1 | 2 | 3 |", "| a | b |\n|---|---|\n| 1 | 2 | 3 |"),
        ("3. x\n7. y", " 3 x\n 7 y"),
        ("1. x\n1. y", " 1 x\n 2 y"),
        ("`a &amp; b` &lt;c&gt; \\<d>", "a &amp; b <c> <d>"),
        ("# A <b>\n\n> c <d>", "A <b>\n▌ c <d>"),
        ("turns &#x202e;this&#x202c;", "turns &#x202e;this&#x202c;"),
        ('[a](x.y "&#x200b;")', '[a](x.y "&#x200b;")'),
    ],
)
def test_nothing_of_what_was_written_stays_unseen(text: str, shown: str) -> None:
    stream, drawn = MarkdownStream(), Renderer(find_look("none", {}), 100)
    drawn.look = replace(drawn.look, styled=False)
    pieces = stream.feed(text) + stream.finish()

    assert "\n".join(line for piece in pieces for line in drawn.piece(piece)) == shown
    past = [line for line in drawn.block(Block("markdown", text)) if line.strip()]
    assert "\n".join(past) == shown, "as it is shown when a session is opened again, or in a plan"


def test_long_code_is_given_in_parts_that_make_up_the_whole() -> None:
    stream = MarkdownStream()
    lines = [f"line {number}" for number in range(500)]

    pieces = stream.feed("\n".join(["```", *lines, "```", ""])) + stream.finish()

    assert len(pieces) > 4
    drawn = Renderer(find_look("none", {}), 80)
    shown = drawn.blocks(
        Block("code", each.text, language="text", follows=each.continues)
        for each in MarkdownStream().feed("```\n" + "def f():\n    x\n\n\n" * 20 + "```\n")
    )
    assert shown == ["  def f():", "      x", "", ""] * 19 + ["  def f():", "      x"]
    assert "\n".join(piece.text for piece in pieces).split("\n") == lines
    assert [piece.continues for piece in pieces] == [False, *[True] * (len(pieces) - 1)]


def test_a_text_after_code_that_was_cut_off_begins_anew() -> None:
    stream = MarkdownStream()
    stream.feed("```python\n" + "x = 1\n" * 30)
    stream.finish()

    assert [*stream.feed("Sorry."), *stream.finish()] == [Piece("Sorry.")]


def test_files_are_listed_without_what_is_ignored_and_never_outside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "build" / "deep").mkdir(parents=True)
    for name in ("src/a.py", "src/a.log", "src/keep.log", "build/deep/x", "evil\x1b[2J", "two words"):
        (root / name).touch()
    (root / ".gitignore").write_text("*.log\n!keep.log\n/build/\n")
    (root / "out").symlink_to(tmp_path, target_is_directory=True)

    assert sorted(walk(root)) == [".gitignore", "out", "src/", "src/a.py", "src/keep.log", "two words"]


def test_files_are_left_out_as_git_does_within_a_repository(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "docs/deep").mkdir(parents=True)
    (root / "inner/.git").mkdir(parents=True)
    for name in ("docs/a.md", "docs/deep/a.md", "inner/docs.md", "mine"):
        (root / name).touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("mine\n")
    (root / ".gitignore").write_text("docs/*.md\ndocs.md\n")

    assert sorted(walk(root)) == [
        ".gitignore",
        "docs/",
        "docs/deep/",
        "docs/deep/a.md",
        "inner/",
        "inner/docs.md",
    ]


def test_a_tree_is_not_walked_for_ever(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}").touch()
    seconds = iter(range(100))

    assert len(list(walk(tmp_path, clock=lambda: next(seconds) * 6))) < 12


def test_a_huge_list_of_what_is_ignored_is_read_in_part(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("\n".join(f"*{number}*" for number in range(10_000)))
    for name in ("a42", "a9999", "b"):
        (tmp_path / name).touch()

    assert sorted(walk(tmp_path)) == [".gitignore", "b"]


def test_a_file_is_found_by_letters_in_their_order_the_likeliest_first(tmp_path: Path) -> None:
    names = ("src/views/chat/screen.py", "src/score.py", "docs/screen.md", "tests/test_screen.py", "sc.txt")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    index = FileIndex(tmp_path)
    index.search("")
    index.wait()

    assert index.search("scr") == [
        "docs/screen.md", "src/views/chat/screen.py", "tests/test_screen.py", "src/score.py"
    ]  # fmt: skip
    assert set(index.search("scrpy")) == {"src/views/chat/screen.py", "tests/test_screen.py", "src/score.py"}
    assert index.search("SVC") == ["src/views/chat/", "src/views/chat/screen.py"]
    assert index.search("xyz") == []
    assert len(index.search("", most=3)) == 3


def test_what_is_searched_while_the_files_are_read_is_told_of_once_they_are(tmp_path: Path) -> None:
    (tmp_path / "notes.md").touch()
    told = Event()
    index = FileIndex(tmp_path)
    index.search("notes", done=told.set)

    assert told.wait(10)
    assert index.search("nts") == ["notes.md"]


def test_files_that_become_known_while_one_is_looked_for_are_offered(tmp_path: Path) -> None:
    class Late(FileIndex):
        """Its files are known only once a search has found nothing."""

        def search(self, typed: str, most: int = 50, done: Callable[[], None] | None = None) -> list[str]:
            found = super().search(typed, most, done) if self.is_read else []
            if not self.is_read:
                self.is_read = True
                super().search(typed, most)
                self.wait()
                assert done is not None
                done()
            return found

        is_read = False

    (tmp_path / "notes.md").touch()
    completer = ChatCompleter(dict, Late(tmp_path), tmp_path, lambda: None)

    async def offer() -> list[str]:
        typed = completer.get_completions_async(Document("See @no"), CompleteEvent(text_inserted=True))
        return [each.text async for each in typed]

    assert asyncio.run(offer()) == ["notes.md "]


def test_a_likelier_file_that_becomes_known_is_offered_before_the_others(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"d{number}").mkdir()
        for each in range(500):
            (tmp_path / f"d{number}/note{each}").touch()
    (tmp_path / "z").mkdir()
    (tmp_path / "z/note").touch()

    async def type_slowly() -> list[str]:
        with create_pipe_input() as keys, create_app_session(keys, DummyOutput()):
            line = InputLine(tmp_path, [], dict, lambda: None)
            app: Application[None] = Application(Layout(Window(BufferControl(line))))
            running = asyncio.create_task(app.run_async(pre_run=lambda: line.insert_text("@")))
            for key in "note":
                await asyncio.sleep(0.02)
                line.insert_text(key)
            offered: list[str] = []
            while offered[:1] != ["z/note "]:
                await asyncio.sleep(0)
                if state := line.complete_state:
                    offered = [each.text for each in state.completions]
            app.exit()
            await running
            return offered

    assert asyncio.run(asyncio.wait_for(type_slowly(), 60))[1] == "d0/note0 "


def test_a_session_that_begins_elsewhere_offers_the_files_there_to_who_was_faster(tmp_path: Path) -> None:
    for place in ("main", "worktree"):
        (tmp_path / place).mkdir()
        (tmp_path / place / f"only_{place}.md").touch()

    async def begin_late() -> list[str]:
        with create_pipe_input() as keys, create_app_session(keys, DummyOutput()):
            line = InputLine(tmp_path / "main", [], dict, lambda: None)
            app: Application[None] = Application(Layout(Window(BufferControl(line))))
            running = asyncio.create_task(app.run_async(pre_run=lambda: line.insert_text("See @only")))
            offered: list[str] = []
            while offered != ["only_worktree.md "]:
                await asyncio.sleep(0)
                offered = (
                    [each.text for each in line.complete_state.completions] if line.complete_state else []
                )
                if offered == ["only_main.md "]:
                    line.move(tmp_path / "worktree")
            app.exit()
            await running
            return offered

    assert asyncio.run(asyncio.wait_for(begin_late(), 20)) == ["only_worktree.md "]


@pytest.mark.parametrize("pasted", ["'{}'", "file://{}", "{}\n"])
def test_the_path_of_a_picture_attaches_it(tmp_path: Path, pasted: str) -> None:
    picture = tmp_path / "shot.png"
    picture.touch()
    composer = Composer(tmp_path)

    mark = composer.paste(pasted.format(picture))

    assert composer.expand(f"see {mark}") == (f"see {mark}", [str(picture)])


def test_only_what_was_typed_names_files(tmp_path: Path) -> None:
    for name in (".env", "a b.md", "notes.md"):
        (tmp_path / name).touch()
    composer = Composer(tmp_path)
    pasted = "line @.env\n" * 9

    mark = composer.paste(pasted)
    text, attached = composer.expand(f'see @notes.md, @"a b.md" and @ada: {mark} @notes.md')

    assert text == f'see @notes.md, @"a b.md" and @ada: {pasted} @notes.md'
    assert attached == ["notes.md", "a b.md"]


def test_a_failure_that_ends_the_turn_is_said_once_and_another_one_at_once() -> None:
    transcript = Transcript()
    failed = events.ModelFailed("OverloadedError")

    transcript.take(failed, "the model failed: OverloadedError")
    transcript.take(events.Token("The other model answers."), None)
    transcript.take(failed, "the model failed: OverloadedError")
    transcript.end_turn()

    said = [block.text for block in transcript.take_finished()]
    assert said == ["the model failed: OverloadedError", "The other model answers."]


def test_a_call_that_was_stopped_is_shown_once() -> None:
    transcript = Transcript()
    transcript.take(events.ToolCalled("execute", {}, "1"), "execute make")
    transcript.end_turn()
    cut_off = events.ToolFinished("1", "execute", "error", "")
    transcript.take(cut_off, "Error: this call was cancelled while it ran [cancelled]")

    assert [block.text for block in transcript.take_finished()] == ["execute make\nstopped"]


def test_what_a_command_has_printed_stays_when_it_is_stopped() -> None:
    transcript = Transcript()
    transcript.take(events.ToolCalled("execute", {}, "1"), "execute make")
    transcript.take(events.CommandOutput("1", "building\n"), None)
    transcript.end_turn()

    assert [block.text for block in transcript.take_finished()] == ["execute make\nstopped", "building"]


def test_subagents_of_one_name_differ_and_come_after_the_text_before_them() -> None:
    transcript = Transcript()
    transcript.take(events.Token("Two of them now."), None)
    for label in ("taster", "taster 2"):
        transcript.take(events.SubagentStarted("taster", f"for {label}", label, label), None)
    transcript.take(events.SubagentFinished("taster", "taster 2", "success", "Good.", "taster 2"), None)

    said = [block.text for block in transcript.take_finished()]
    assert said == ["Two of them now.", "taster 2 for taster 2\nGood."]


def test_no_clock_runs_while_the_person_is_asked() -> None:
    now = [0.0]
    talk = Chat(lambda _: None, set_theme=print, leave=print, clock=lambda: now[0])
    talk.take(protocol.Working())
    talk.take(protocol.Happened(events.ToolCalled("execute", {}, "1"), "execute make"))
    now[0] = 2.0
    talk.take(protocol.Ask("ask-1", "wants to run", [], ["approve"]))
    now[0] = 60.0
    talk.take(protocol.Status("a:b", "ask"))
    assert (talk.clock.worked, talk.transcript.clock()) == (2.0, 2.0)
    talk.press("y")
    now[0] = 63.0

    assert (talk.clock.worked, talk.transcript.clock()) == (5.0, 5.0)


def test_esc_takes_back_what_was_sent_before_anything_is_open() -> None:
    talk = Chat(lambda _: None, set_theme=print, leave=print)
    talk.submit("Build.")
    talk.stop()

    assert (talk.taken_back, talk.queued) == (["Build."], [])


def test_what_ends_a_turn_and_keeps_a_text_from_being_taken_is_said_once() -> None:
    talk = Chat(lambda _: None, set_theme=print, leave=print)
    talk.take(protocol.Working())
    talk.take(protocol.Refused(["Hi."]))
    talk.take(protocol.Notice("There is no room."))
    talk.take(protocol.Idle("failed", "There is no room."))
    talk.take(protocol.Working())
    talk.take(protocol.Idle("failed", "There is no room."))

    said = [(block.kind, block.text) for block in talk.transcript.take_finished()]
    assert said == [("notice", "There is no room."), ("error", "There is no room.")]
    assert talk.refused == ["Hi."]


def test_how_long_a_turn_takes_and_a_model_is_silent_is_shown() -> None:
    now = [0.0]
    talk = Chat(lambda _: None, set_theme=print, leave=print, clock=lambda: now[0])
    drawn = Renderer(replace(find_look("none", {}), styled=False, dot="-"), 80)

    def last_line() -> str:
        return draw_live(talk, drawn, 10)[-1][2:]

    talk.take(protocol.Ready("1", "", "a:b", "."))
    now[0] = 100.0
    talk.take(protocol.Working())
    assert last_line() == "working - Esc stops"
    now[0] = 105.0
    talk.take(protocol.Happened(events.Token("Once")))
    now[0] = 114.0
    assert last_line() == "working - 14 s - Esc stops"
    now[0] = 170.0
    assert last_line() == "working - 1 min 10 s - nothing from the model for 1 min 05 s - Esc stops"
    talk.take(protocol.Happened(events.ToolCalled("execute", {}, "1")))
    now[0] = 200.0
    assert last_line() == "working - 1 min 40 s - Esc stops", "a command runs, and has seconds of its own"
    talk.take(protocol.Idle("done"))
    talk.take(protocol.Working())
    assert last_line() == "working - Esc stops"


def test_a_key_waits_for_one_block_and_not_for_all() -> None:
    rendered: list[Block] = []
    seen: list[int] = []

    class Counting(Renderer):
        def block(self, block: Block) -> list[str]:
            rendered.append(block)
            return super().block(block)

    async def press_a_key() -> None:
        talk = Chat(lambda _: None, set_theme=print, leave=print)
        for _ in range(50):
            talk.transcript.add("markdown", "| `a` | b |\n|---|---|\n" + "| `row` | words |\n" * 30)
        output = HeldOutput(io.StringIO(), lambda: Size(rows=24, columns=80))
        drawing = Drawing(talk, Counting(find_look("dark", {}), 80), output, print, lambda: True)
        drawing.soon()
        await asyncio.sleep(0)
        seen.append(len(rendered))
        drawing.stop()

    asyncio.run(press_a_key())

    assert 0 < seen[0] < 50


def test_rows_that_change_are_not_drawn_while_a_window_is_dragged() -> None:
    size = [Size(rows=24, columns=80)]
    shown: list[str] = []

    async def drag() -> None:
        talk = Chat(lambda _: None, set_theme=print, leave=print)
        talk.take(protocol.Happened(events.Token("Once\nupon a time")))
        output = HeldOutput(io.StringIO(), lambda: size[0])
        app: Application[None] = Application(input=DummyInput(), output=output)
        drawn = asyncio.Event()
        drawing = Drawing(talk, Renderer(find_look("dark", {}), 80), output, drawn.set, lambda: False)

        def look() -> None:
            shown.append("".join(fragment[1] for fragment in drawing.live))

        drawing.show(app, steady=True)
        look()
        for columns in (70, 60):
            size[0] = Size(rows=24, columns=columns)
            drawing.note_size()
            look()
            drawing.show(app, steady=True)
            look()
        await drawn.wait()
        drawing.show(app, steady=True)
        look()
        drawing.stop()

    asyncio.run(drag())

    before, *during, after = shown
    assert "Once upon a time" in before
    assert during == ["\n" * before.count("\n")] * 4, (
        "the input line has moved, or there was something to copy"
    )
    assert "Once upon a time" in after


def test_the_end_of_a_table_is_drawn_below_its_head() -> None:
    stream = MarkdownStream()
    stream.feed("| a | b |\n|---|--:|\n" + "".join(f"| {number} | x |\n" for number in range(20)))

    assert stream.open_piece(4) == Piece("| a | b |\n|---|--:|\n| 18 | x |\n| 19 | x |")


def test_nothing_cuts_code_that_is_being_written() -> None:
    talk = Chat(lambda _: None, set_theme=print, leave=print)
    talk.take(protocol.Working())
    for text in ("```python\nx = 1\n", "y = 2\n```\nDone."):
        talk.take(protocol.Happened(events.Token(text)))
        # As where a command in the background wants a host, or a note is to be written meanwhile.
        refused = events.HostRefused("1", "example.org:80 is refused")
        talk.take(protocol.Happened(refused, refused.text))
        talk.take(protocol.Ask(text, "wants its commands to reach example.org", [], ["approve"]))
    talk.take(protocol.Idle("done"))

    code = [block.text for block in talk.transcript.take_finished() if block.kind == "code"]
    assert code == ["x = 1\ny = 2"]


def test_the_status_line_keeps_what_matters_most() -> None:
    status = protocol.Status("m:x", "auto", branch="main", context=0.5, cost=0.001)
    parts = status_parts(status, 75)

    assert status_line(parts, 80, "·") == "m:x · 50% of context · < $0.01 · 1 min 15 s · main · auto"
    assert status_line(parts, 12, "·") == "m:x · auto"


def test_an_answer_of_the_terminal_is_taken_out_in_pieces_too() -> None:
    typed, dark, held = take_answer("a\x1b]11;rgb:00")

    assert (typed, dark) == ("a", None)
    assert take_answer(f"{held}00/0000/0000\x07b") == ("b", True, "")
    assert take_answer("\x1b") == ("\x1b", None, "")

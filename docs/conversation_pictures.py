"""Draws the pictures of a conversation: the program in a terminal, a person at it, a script as its model."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.cli.openai_server import Reply, Request, call, serving  # noqa: E402
from tests.cli.terminal.person import QUESTION, Home, Person  # noqa: E402

PICTURES: Final = ROOT / "docs" / "concepts"
MODEL: Final = "gpt-4o"
# Red and magenta are two colours here, as in terminals; in themes that rich brings they are one, or faint.
THEME: Final = TerminalTheme(
    (12, 12, 12), (217, 217, 217),
    [(0, 0, 0), (241, 76, 76), (35, 209, 139), (229, 192, 67),
     (79, 155, 240), (198, 120, 221), (41, 184, 219), (229, 229, 229)],
    [(118, 118, 118), (241, 76, 76), (35, 209, 139), (245, 245, 67),
     (79, 155, 240), (214, 112, 214), (41, 184, 219), (255, 255, 255)],
)  # fmt: skip
COLUMNS: Final = 92
NARROW: Final = 60
FILES: Final = {
    ".git/HEAD": "ref: refs/heads/due-dates\n",
    "AGENTS.md": "- Dates are ISO 8601, in the time of the person.\n" * 160,
    "notes.py": (
        "from datetime import date\n\n\n"
        "def is_due(note: dict[str, str], today: date) -> bool:\n"
        '    """Tell whether a note is due."""\n'
        '    return note["due"] < str(today)\n'
    ),
    "test_notes.py": "from notes import is_due\n",
    "Makefile": "test:\n\t@echo 'test_yesterday PASSED'; echo 'test_today PASSED'; cat .wait\n",
    "log.txt": "2026-03-01 09:30 a note was written, and its date is in three days\n" * 900,
    ".deepagents/agents/reviewer.md": "---\nname: reviewer\ndescription: Reviews a change.\n---\nReview it.",
    ".deepagents/agents/writer.md": "---\nname: writer\ndescription: Writes documents.\n---\nWrite it.",
}
FIX: Final = call(
    "edit_file",
    file_path="notes.py",
    old_string='    return note["due"] < str(today)\n',
    new_string='    return date.fromisoformat(note["due"]) <= today\n',
)
FOUND: Final = """A note that is due **today** is missed, since dates are compared as text. I change this:

```python
def is_due(note: dict[str, str], today: date) -> bool:
    return date.fromisoformat(note["due"]) <= today
```
"""
PLAN: Final = """## Due dates

1. `notes.py`: compare dates, not text, and count today as due.
2. `test_notes.py`: a test for yesterday, today and tomorrow.
3. Run the tests.
"""
Scene = Callable[[Person], str]


def _at_once(text: str) -> str:
    """Return a text that the server sends as one word, before it waits."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _todos(*status: str) -> dict[str, list[dict[str, str]]]:
    steps = ("Find why a note is missed", "Compare dates, not text", "Run the tests")
    return {"todos": [{"content": text, "status": each} for text, each in zip(steps, status, strict=True)]}


def at_work(person: Person) -> str:
    """A plan, an answer with code, and a command that runs."""
    person.enters("/mode auto")
    person.sees("^Mode auto")
    _begin(person)
    person.asks(
        "A note that is due today is not shown. Mend it.",
        call("write_todos", **_todos("in_progress", "pending", "pending")),
        call("read_file", file_path="notes.py"),
        Reply(FOUND, calls=FIX.calls),
        call("write_todos", **_todos("completed", "completed", "in_progress")),
        call("execute", command="make test"),
    )
    person.sees("test_today PASSED")
    person.sees(r"^. working")
    return _stop(person)


def question(person: Person) -> str:
    """A change that is asked about."""
    person.asks("Make notes that are due today due.", call("read_file", file_path="notes.py"), FIX)
    person.sees(QUESTION)
    return _stop(person)


def plan(person: Person) -> str:
    """A plan that waits for approval."""
    person.enters("/mode plan")
    person.sees("^Mode plan")
    _begin(person)
    person.asks(
        "How would you mend the due dates?",
        call("read_file", file_path="notes.py"),
        call("present_plan", plan=PLAN),
    )
    person.sees(r"^\[1\]")
    return _stop(person)


def subagents(person: Person) -> str:
    """Two subagents, each with what it does at the moment."""

    def work(request: Request) -> Reply:
        if "Review it." in request.system:
            if request.texts("tool"):
                return Reply(_at_once("The docstring does not say that today counts"), hold=Event())
            return call("read_file", file_path="notes.py")
        if request.texts("tool"):
            return Reply(_at_once("A note is due from the day that it names"), hold=Event())
        return call("grep", pattern="due")

    tasks = [
        ("task", {"description": "Review the change of is_due", "subagent_type": "reviewer"}),
        ("task", {"description": "Describe due dates in the README", "subagent_type": "writer"}),
    ]
    person.asks("Review the change, and describe it.", Reply(calls=tasks), work, work, work, work)
    person.sees("^ +The docstring")
    person.sees("^ +A note is due")
    person.sees(" tokens · ")
    return _stop(person)


def context(person: Person) -> str:
    """What fills the window."""
    person.asks(
        "Where is is_due used?",
        call("grep", pattern="is_due"),
        call("read_file", file_path="log.txt", limit=900),
        "In test_notes.py alone.",
    )
    person.sees("^In test_notes.py alone.")
    person.sees_gone("Esc stops")
    person.enters("/context")
    person.sees("^free ")
    return person.terminal.screen(colours=True)


def models(person: Person) -> str:
    """The models that can be used here, and what the others lack."""
    person.enters("/model")
    person.sees("^  anthropic:.* set ANTHROPIC_API_KEY")
    shown = person.terminal.screen(colours=True)
    person.presses("Escape")
    person.sees_gone("^  anthropic:")
    return shown


def narrow(person: Person) -> str:
    """The question once more, in 60 columns."""
    return question(person)


SCENES: Final[Mapping[str, Scene]] = {
    "work": at_work,
    "question": question,
    "plan": plan,
    "subagents": subagents,
    "context": context,
    "models": models,
    "narrow": narrow,
}


def _begin(person: Person) -> None:
    """Clear what is not a part of the picture."""
    person.presses("C-l")
    person.sees_gone("^Mode ")


def _stop(person: Person) -> str:
    """Return the screen as it is, and end what goes on."""
    shown = person.terminal.screen(colours=True)
    person.presses("Escape")
    person.sees("^Stopped. What is done is kept.")
    return shown


def record() -> Iterator[tuple[str, int, str]]:
    """Play the scenes; yield the name, the columns and the screen of each."""
    with serving(models=[MODEL, "qwen3-coder"]) as server, tempfile.TemporaryDirectory() as place:
        home = Home(Path(place), server, FILES, name="notes")
        # What reads from it waits until the picture is taken.
        os.mkfifo(home.directory / ".wait")
        chosen = ("--model", f"local-server:{MODEL}")
        with home.sit_down(*chosen, columns=COLUMNS, rows=44) as person:
            person.sees(f"{MODEL} in")
            for name, play in SCENES.items():
                columns = NARROW if name == "narrow" else COLUMNS
                (home.directory / "notes.py").write_text(FILES["notes.py"])
                person.terminal.resize(columns, 44)
                person.begins_anew()
                person.presses("C-l")
                person.sees_gone(f"{MODEL} in")
                yield name, columns, _steady(play(person), server.address)


def _steady(screen: str, address: str) -> str:
    """Leave out of a screen what is another each time."""
    screen = screen.replace(address, "http://127.0.0.1:8080/v1")
    screen = re.sub(r"\d+ s\b", "2 s", screen)
    screen = re.sub(r" · 2 s(?= · )", "", screen)
    return re.sub("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "⠋", screen).strip("\n").rstrip()


def draw(name: str, columns: int, screen: str) -> str:
    """Return a picture of a terminal; it names no address, so that showing it asks no server for anything."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen, no_wrap=True))
    picture = console.export_svg(title="deepagents", theme=THEME, unique_id=name)
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL).replace("Fira Code", "monospace")


def main(arguments: list[str]) -> int:
    """Draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=PICTURES, help="the directory where the pictures go")
    into = parser.parse_args(arguments).into
    for name, columns, screen in record():
        (into / f"conversation-{name}.svg").write_text(draw(name, columns, screen))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

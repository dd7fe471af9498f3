"""Draws docs/run.svg: the command line at work on two files, in a terminal, with a person who says yes."""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from deepagents.testing import call  # noqa: E402
from tests.cli.tmux import Tmux  # noqa: E402
from tests.docs.provider import Script, serve  # noqa: E402

PICTURE: Final = ROOT / "docs" / "run.svg"
COLUMNS: Final = 88
TASK: Final = "Turn debug mode off, and correct the README."
MODEL: Final = "anthropic:claude-sonnet-4-6"
FILES: Final = {
    "app.ini": "[app]\nname = notes\ndebug = true\nport = 8080\n",
    "README.md": "# Notes\n\nDebug mode is on by default.\n",
}
QUESTION: Final = r"\[a\]lways \[\?\] \?"


def _plan(first: str, second: str) -> dict[str, list[dict[str, str]]]:
    steps = {"Find where debug mode is set": first, "Turn it off and correct the README": second}
    return {"todos": [{"content": content, "status": status} for content, status in steps.items()]}


ANSWERS: Final = [
    call("write_todos", **_plan("in_progress", "pending")),
    call("grep", pattern="debug"),
    call("read_file", file_path="app.ini"),
    call("edit_file", file_path="app.ini", old_string="debug = true", new_string="debug = false"),
    call("read_file", file_path="README.md"),
    call("edit_file", file_path="README.md", old_string="is on", new_string="is off"),
    call("write_todos", **_plan("completed", "completed")),
    "Debug mode is off. I set `debug = false` in app.ini and corrected the sentence in README.md.",
]


def record_run(folder: Path) -> str:
    """Run the command in a terminal, answer its questions with yes, and return what is on the screen."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "deepagents_cli", "run", TASK, "--dir", str(folder), "--model", MODEL]
    with tempfile.TemporaryDirectory() as home, serve(Script({"*": ANSWERS})) as address:
        surroundings = {
            "HOME": home,
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "none",
            "NO_COLOR": "",
        }
        with Tmux(command, columns=COLUMNS, rows=60, environment=surroundings) as terminal:
            for answered in range(2):
                terminal.wait_for(rf"(?s)({QUESTION}.*){{{answered + 1}}}")
                terminal.type("y")
                terminal.keys("Enter")
            terminal.wait_for_end()
            written, _, _ = terminal.screen(colours=True, history=True).partition("Pane is dead")
    return written.replace(str(folder), "~/notes")


def draw(written: str) -> str:
    """Return a picture of a terminal; it names no address, so that showing it asks no server for anything."""
    steady = re.sub(r"· thread \S+ ·", "· thread 1 ·", written)
    steady = re.sub(r"\S+ tokens in.*", "", steady)  # The script's answers take no time and cost nothing.
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold"), f'deepagents run "{TASK}" \\\n      --model {MODEL}'))
    shown = Text.from_ansi(steady)
    shown.rstrip()
    console.print(shown)
    picture = console.export_svg(title="deepagents", theme=MONOKAI, unique_id="run")
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL).replace("Fira Code", "monospace")


def main(arguments: list[str]) -> int:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, default=PICTURE, help="where the picture goes")
    picture = parser.parse_args(arguments).picture
    with tempfile.TemporaryDirectory(prefix="notes-") as folder:
        picture.write_text(draw(record_run(Path(folder))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

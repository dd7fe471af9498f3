"""Draws docs/run.svg: the command line at work on two files, in a terminal, with a person who says yes."""

from __future__ import annotations

import argparse
import io
import os
import pty
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
from tests.docs.provider import Script, serve  # noqa: E402

PICTURE: Final = ROOT / "docs" / "run.svg"
COLUMNS: Final = 88
TASK: Final = "Turn debug mode off, and correct the README."
MODEL: Final = "anthropic:claude-sonnet-4-6"
FILES: Final = {
    "app.ini": "[app]\nname = notes\ndebug = true\nport = 8080\n",
    "README.md": "# Notes\n\nDebug mode is on by default.\n",
}
QUESTION: Final = b"[a]lways [?] ? "


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
    """Run the command in a terminal of its own, answer its questions with yes, and return what it wrote."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "deepagents_cli", "run", TASK, "--dir", str(folder), "--model", MODEL]
    with tempfile.TemporaryDirectory() as home, serve(Script({"*": ANSWERS})) as address:
        surroundings = {"HOME": home, "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none"}
        size = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": "80"}
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe(command[0], command, {**os.environ, **surroundings, **size})
        written = _read_and_agree(terminal)
        os.waitpid(child, 0)
    return written.decode().replace("\r\n", "\n").replace(str(folder), "~/notes")


def _read_and_agree(terminal: int) -> bytes:
    written, answered = b"", 0
    while True:
        try:
            written += os.read(terminal, 1 << 16)
        except OSError:  # Linux raises this when the program at the other end has ended.
            return written
        if written.count(QUESTION) > answered:
            answered += 1
            os.write(terminal, b"y\n")


def draw(written: str) -> str:
    """Return a picture of a terminal; it names no address, so that showing it asks no server for anything."""
    steady = re.sub(r"· thread \S+ ·", "· thread 1 ·", written)
    steady = re.sub(r"\S+ tokens in.*", "", steady)  # The script's answers take no time and cost nothing.
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold"), f'deepagents run "{TASK}" \\\n      --model {MODEL}'))
    console.print(Text.from_ansi(steady.rstrip()))
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

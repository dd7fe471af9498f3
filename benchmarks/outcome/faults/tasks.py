"""Small tasks on files, with the steps that solve them and what is right in the end; and single edits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

Files = Mapping[str, str]


@dataclass(frozen=True)
class Step:
    """One call that is right, by the name of the tool in every harness here."""

    tool: str
    arguments: Mapping[str, object]

    @property
    def path(self) -> str:
        """The path that the call is about; `""` for none."""
        return str(self.arguments.get("file_path") or self.arguments.get("path") or "")


@dataclass(frozen=True)
class Task:
    """What is asked, the files, the steps that solve it, and which files and which answer are right."""

    name: str
    ask: str
    files: Files
    steps: tuple[Step, ...]
    gold: Files = field(default_factory=dict[str, str])
    answer: str = "Done."

    def lay(self, root: Path) -> None:
        """Write the files."""
        for path, text in self.files.items():
            place = root / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())

    def is_solved(self, root: Path, answer: str) -> bool:
        """Return whether files and answer are as they should be."""
        wanted = {**self.files, **self.gold}
        return self.answer in answer and all(_read(root, path) == text for path, text in wanted.items())


def _read(root: Path, path: str) -> str | None:
    place = root / path.lstrip("/")
    return place.read_bytes().decode() if place.is_file() else None


def read(path: str) -> Step:
    """Read a file."""
    return Step("read_file", {"file_path": path})


def write(path: str, content: str) -> Step:
    """Write a file."""
    return Step("write_file", {"file_path": path, "content": content})


def edit(path: str, old: str, new: str, *, everywhere: bool = False) -> Step:
    """Edit a file."""
    more: dict[str, object] = {"replace_all": True} if everywhere else {}
    return Step("edit_file", {"file_path": path, "old_string": old, "new_string": new, **more})


def command(line: str) -> Step:
    """Run a command."""
    return Step("execute", {"command": line})


SHOP: Final = '''"""Prices of a shop."""


def total(prices, rate):
    """Add up prices."""
    result = 0
    for price in prices:
        if price < 0:  # a refund
            continue
        result += price
    return result * (1 - rate)


def label(name):
    return "Item: " + name
'''
SHAPES: Final = """def area(width, height):
    if width < 0:
        return 0  # nothing
    size = width * height
    return size


class Box:
    def area(self, width, height):
        if width < 0:
            return 0  # nothing
        size = width * height
        return size

    def name(self):
        return "box"
"""
MAKEFILE: Final = (
    "all: build test\n\nbuild:\n\tpython -m build\n\techo built\n\ntest:\n\tpytest -q\n\techo tested\n"
)
COMPOSE: Final = """services:
  web:
    image: "shop:1.0"
    ports:
      - "80:8000"
    restart: always
  worker:
    image: "shop:1.0"
    command: work
    restart: always
"""
LETTER: Final = (
    "# A letter\n\n"
    "Dear Andr\u00e9,\n\n"
    "the caf\u00e9 \u201cZur Post\u201d is open again \u2013 from nine to five.\n"
    "It\u2019s said that the cake is good.\n\nYours, Zo\u00eb\n"
)
PEOPLE: Final = "name,city,age\nAda,London,36\nGrace,New York,85\nAlan,London,41\n"
PAGE: Final = (
    "<html>\n  <body>\n"
    '    <h1>Tom & Jerry</h1>\n    <p class="a">5 < 6</p>\n    <p>bye</p>\n'
    "  </body>\n</html>\n"
)
DOS: Final = "[main]\r\nname = shop\r\nport = 8000\r\nhost = local\r\n\r\n[log]\r\nlevel = info\r\n"
HANDLERS: Final = """def on_open(event):
    name = 'door'
    log(name, event)
    return True


def on_close(event):
    name = "door"
    log(name, event)
    return True
"""
LONG: Final = (
    "import sys\n\n\ndef run(args):\n"
    + "".join(f"    step_{number}(args)\n    check({number})\n" for number in range(1, 25))
    + "    return 0\n\n\ndef main():\n    sys.exit(run(sys.argv))\n"
)
SETTINGS: Final = '{\n  "name": "shop",\n  "debug": true,\n  "port": 8000\n}\n'
NOTES: Final = "# Notes\n\n- buy milk\n- call Ada\n\nThe code word is heron.\n"
USES_LABEL: Final = 'from shop import label\n\nprint(label("tea"))\n'


def _area(depth: int) -> str:
    """Return the body that the twins share, at its depth."""
    lines = ("if width < 0:", "    return 0  # nothing", "size = width * height", "return size")
    return "\n".join(" " * depth + line for line in lines)


def _edited(text: str, old: str, new: str) -> str:
    ends = "\r\n" if "\r\n" in text else "\n"
    return text.replace(old.replace("\n", ends), new.replace("\n", ends))


def _edit_task(name: str, path: str, text: str, old: str, was: str, now: str) -> Task:
    new = old.replace(was, now)
    steps = (read(path), edit(path, old, new))
    return Task(name, f"Change {path}.", {path: text}, steps, {path: _edited(text, old, new)})


_SUM: Final = "        if price < 0:  # a refund\n            continue\n        result += price"
_ROUNDED: Final = _SUM.replace("+= price", "+= round(price, 2)")
_RETURN: Final = "    return result * (1 - rate)"
_RETURN_ROUNDED: Final = "    return round(result * (1 - rate), 2)"
_LABEL: Final = '    return "Item: " + name'
_SENTENCE: Final = (
    "the caf\u00e9 \u201cZur Post\u201d is open again \u2013 from nine to five.\nIt\u2019s said that the cake"
)
_SERVICE: Final = '  worker:\n    image: "shop:1.0"\n    command: work'
_MARKUP: Final = '    <h1>Tom & Jerry</h1>\n    <p class="a">5 < 6</p>\n    <p>bye</p>'
_GATE: Final = '    name = "door"\n    log(name, event)\n    return True'
_BLOCK: Final = LONG[LONG.index("    step_5(") : LONG.index("    step_19(")].rstrip("\n")
_ROWS: Final = "Ada,London,36\nGrace,New York,85\nAlan,London,41"
_RECIPE: Final = "build:\n\tpython -m build\n\techo built"

EDITS: Final = (
    _edit_task("a loop", "/shop.py", SHOP, _SUM, "+= price", "+= round(price, 2)"),
    _edit_task("the second of twins", "/shapes.py", SHAPES, _area(8), "return size", "return size + 1"),
    _edit_task(
        "the first of twins", "/shapes.py", SHAPES, f"{_area(4)}\n\n", "return size", "return size + 1"
    ),
    _edit_task("a recipe with tabs", "/Makefile", MAKEFILE, _RECIPE, "-m build", "-m build --wheel"),
    _edit_task("a service", "/compose.yaml", COMPOSE, _SERVICE, "1.0", "1.1"),
    _edit_task("a sentence with curly quotes", "/letter.md", LETTER, _SENTENCE, "nine to five", "ten to six"),
    _edit_task("rows of a table", "/people.csv", PEOPLE, _ROWS, "36", "37"),
    _edit_task("markup", "/page.html", PAGE, _MARKUP, "5 < 6", "6 < 7"),
    _edit_task("a file of DOS", "/shop.ini", DOS, "name = shop\nport = 8000\nhost = local", "8000", "9000"),
    _edit_task("twins by their quotes", "/handlers.py", HANDLERS, _GATE, "door", "gate"),
    _edit_task("a long block", "/long.py", LONG, _BLOCK, "check(9)", "check(90)"),
    _edit_task("one line", "/shop.py", SHOP, _LABEL, "Item", "Article"),
)
"""Read a file, change one place: the tasks that drifted quotes are measured on."""

HELLO: Final = 'print("hello")\n'
TEST: Final = "from shop import label\n\n\ndef test_label():\n    assert label('a') == 'Item: a'\n"
_FILES: Final[Files] = MappingProxyType(
    {"/shop.py": SHOP, "/src/app.py": USES_LABEL, "/people.csv": PEOPLE, "/docs/notes.md": NOTES}
)


def _task(
    name: str, ask: str, steps: tuple[Step, ...], gold: Files | None = None, answer: str = "Done."
) -> Task:
    return Task(name, ask, _FILES, steps, gold or {}, answer)


TASKS: Final = (
    *(EDITS[number] for number in (0, 1, 3, 4, 5, 8, 11)),
    _task(
        "create a program",
        "Create /hello.py that prints hello.",
        (write("/hello.py", HELLO),),
        {"/hello.py": HELLO},
    ),
    _task(
        "create in a new folder",
        "Write /out/report.md.",
        (read("/people.csv"), write("/out/report.md", "# Report\n3 people\n")),
        {"/out/report.md": "# Report\n3 people\n"},
    ),
    _task(
        "create beside another",
        "Write a test of label in /src/test_shop.py.",
        (read("/shop.py"), write("/src/test_shop.py", TEST)),
        {"/src/test_shop.py": TEST},
    ),
    _task(
        "replace a file",
        "Rewrite /docs/notes.md.",
        (read("/docs/notes.md"), write("/docs/notes.md", "# Notes\n\nNone.\n")),
        {"/docs/notes.md": "# Notes\n\nNone.\n"},
    ),
    _task(
        "rename in two files",
        "Rename label to title.",
        (
            read("/shop.py"),
            read("/src/app.py"),
            edit("/shop.py", "def label(name):", "def title(name):"),
            edit("/src/app.py", "label", "title", everywhere=True),
        ),
        {"/shop.py": SHOP.replace("label", "title"), "/src/app.py": USES_LABEL.replace("label", "title")},
    ),
    _task(
        "rename in all places",
        "Rename price to cost in /shop.py.",
        (read("/shop.py"), edit("/shop.py", "price", "cost", everywhere=True)),
        {"/shop.py": SHOP.replace("price", "cost")},
    ),
    _task(
        "append a row by an edit",
        "Append Alonzo,Princeton,92.",
        (
            read("/people.csv"),
            edit("/people.csv", "Alan,London,41\n", "Alan,London,41\nAlonzo,Princeton,92\n"),
        ),
        {"/people.csv": PEOPLE + "Alonzo,Princeton,92\n"},
    ),
    _task(
        "append a row by writing",
        "Append Alonzo,Princeton,92.",
        (read("/people.csv"), write("/people.csv", PEOPLE + "Alonzo,Princeton,92\n")),
        {"/people.csv": PEOPLE + "Alonzo,Princeton,92\n"},
    ),
    _task(
        "append a row by a command",
        "Append Alonzo,Princeton,92.",
        (read("/people.csv"), command("echo Alonzo,Princeton,92 >> people.csv")),
        {"/people.csv": PEOPLE + "Alonzo,Princeton,92\n"},
    ),
    _task("read and answer", "Which code word do the notes have?", (read("/docs/notes.md"),), answer="heron"),
    _task("list and answer", "How many files are in /docs?", (Step("ls", {"path": "/docs"}),), answer="one"),
    _task(
        "read two and answer",
        "Who is older, and what does label say?",
        (read("/people.csv"), read("/shop.py")),
        answer="Grace",
    ),
    _task(
        "run and answer",
        "What does /src/app.py print?",
        (read("/src/app.py"), command("PYTHONPATH=. python3 src/app.py")),
        answer="Item: tea",
    ),
    _task(
        "edit and run",
        "Let label say Article, and run it.",
        (
            read("/shop.py"),
            edit("/shop.py", _LABEL, _LABEL.replace("Item", "Article")),
            command("PYTHONPATH=. python3 src/app.py"),
        ),
        {"/shop.py": SHOP.replace("Item", "Article")},
        answer="Article: tea",
    ),
    _task(
        "two edits in one file",
        "Round, and rename the result.",
        (read("/shop.py"), edit("/shop.py", _SUM, _ROUNDED), edit("/shop.py", _RETURN, _RETURN_ROUNDED)),
        {"/shop.py": SHOP.replace(_SUM, _ROUNDED).replace(_RETURN, _RETURN_ROUNDED)},
    ),
    _task(
        "move a line",
        "Move the code word to /docs/secret.md.",
        (
            read("/docs/notes.md"),
            write("/docs/secret.md", "The code word is heron.\n"),
            edit("/docs/notes.md", "\nThe code word is heron.\n", ""),
        ),
        {
            "/docs/secret.md": "The code word is heron.\n",
            "/docs/notes.md": NOTES.replace("\nThe code word is heron.\n", ""),
        },
    ),
)

"""The first set: written before anything was tuned, and used while tuning."""

from __future__ import annotations

from benchmarks.local_eval.tasks import Task

_POEM = "The sea is calm to-night.\nTeh tide is full, the moon lies fair\nUpon the straits.\n"
_SERVER = "[server]\nhost = localhost\nport = 8080\n\n[client]\nretries = 3\n"
_TODO = "# To do\n- call the plumber\n- water the plants\n"
_SETTINGS = '{\n  "name": "tides",\n  "debug": true,\n  "level": 3\n}\n'
_SHAPES = """\
def area(width, height):
    return width + height


def perimeter(width, height):
    return 2 * (width + height)
"""
_STORE = 'def fetch(key):\n    return {"key": key}\n\n\nprint(fetch("a"))\n'
_FRUIT = "apple\nbanana\ncherry\ndamson\n"
_README = "# Tides\n\nA small library for tide tables.\n\n## Use\n\nimport tides\n"

SET_A = (
    Task(
        "fix a typing error",
        (
            "In poem.txt the word 'Teh' is a typing error. Change it to 'The'.",
            "Replace 'Teh' with 'The' in poem.txt.",
        ),
        {"poem.txt": _POEM, "notes.txt": "Teh poem is by Arnold.\n"},
        {"poem.txt": _POEM.replace("Teh", "The")},
    ),
    Task(
        "change a value in an ini file",
        (
            "Change the port in server.ini to 9090.",
            "server.ini: the server should listen on port 9090. Edit the file.",
        ),
        {"server.ini": _SERVER},
        {"server.ini": _SERVER.replace("8080", "9090")},
    ),
    Task(
        "add a line to a list",
        (
            "Add the line '- buy bread' to the end of todo.md.",
            "Append one more entry to todo.md: '- buy bread'",
        ),
        {"todo.md": _TODO},
        {"todo.md": _TODO + "- buy bread\n"},
    ),
    Task(
        "create a file",
        (
            "Create the file hello.txt with the text: Hello, world!",
            "Write 'Hello, world!' into a new file hello.txt.",
        ),
        {"other.txt": "Nothing to see.\n"},
        {"hello.txt": "Hello, world!\n"},
    ),
    Task(
        "fix a bug in a function",
        (
            "The function area in shapes.py is wrong: it must multiply. Fix it.",
            "shapes.py has a bug: area() adds the sides, but it must multiply them. Fix only that.",
        ),
        {"shapes.py": _SHAPES},
        {"shapes.py": _SHAPES.replace("return width + height\n\n", "return width * height\n\n", 1)},
    ),
    Task(
        "bump a version in one of two files",
        ("Set the version in setup.cfg to 1.3.0.", "Bump the version in setup.cfg from 1.2.0 to 1.3.0."),
        {
            "setup.cfg": "[metadata]\nname = tides\nversion = 1.2.0\n",
            "CHANGES.md": "## 1.2.0\n- first release\n",
        },
        {"setup.cfg": "[metadata]\nname = tides\nversion = 1.3.0\n"},
    ),
    Task(
        "turn a flag off in a json file",
        ("Set debug to false in settings.json.", "Turn debug mode off in settings.json."),
        {"settings.json": _SETTINGS},
        {"settings.json": _SETTINGS.replace("true", "false")},
    ),
    Task(
        "rename a function and its call",
        (
            "In store.py rename the function fetch to load, everywhere in the file.",
            "Rename fetch to load in store.py, its definition and its call.",
        ),
        {"store.py": _STORE},
        {"store.py": _STORE.replace("fetch", "load")},
    ),
    Task(
        "find the file with a word",
        ("Which file mentions ERR42?", "Find the file that contains the text ERR42 and tell me its name."),
        {
            "docs/start.md": "Install it and go.\n",
            "docs/errors.md": "ERR41: disk full\nERR42: no network\n",
            "docs/faq.md": "Ask away.\n",
        },
        answer=("errors.md",),
    ),
    Task(
        "look a value up",
        ("What is the timeout in config/service.yaml?", "Read config/service.yaml and tell me the timeout."),
        {"config/service.yaml": "name: tides\ntimeout: 45\nworkers: 2\n"},
        answer=("45",),
    ),
    Task(
        "remove a line",
        (
            "Remove the line 'banana' from fruit.txt.",
            "Delete banana from the list in fruit.txt; keep the rest.",
        ),
        {"fruit.txt": _FRUIT},
        {"fruit.txt": _FRUIT.replace("banana\n", "")},
    ),
    Task(
        "copy a file",
        (
            "Make a copy of letter.txt named letter-copy.txt.",
            "Copy the content of letter.txt to letter-copy.txt.",
        ),
        {"letter.txt": "Dear Ada,\nthe engine runs.\nYours, Charles\n"},
        {"letter-copy.txt": "Dear Ada,\nthe engine runs.\nYours, Charles\n"},
    ),
    Task(
        "change a heading",
        (
            "Change the title in README.md to 'Tide Tables'.",
            "README.md: the first heading should read 'Tide Tables'.",
        ),
        {"README.md": _README},
        {"README.md": _README.replace("# Tides\n", "# Tide Tables\n", 1)},
    ),
)

"""The second set: written after the tuning was over."""

from __future__ import annotations

from benchmarks.local_eval.tasks import Task

_MENU = "Soup of the day\nGrilled cheeze\nApple pie\n"
_ENV = "HOST=example.org\nLOG_LEVEL=info\nWORKERS=4\n"
_GREET = 'def greet(name):\n    return "Goodbye, " + name\n'
_PACKAGE = '{\n  "name": "lantern",\n  "version": "0.4.1",\n  "private": true\n}\n'
_GUESTS = "Ana\nBo\nChidi\nDara\n"
_HTML = "<html>\n<head><title>Old page</title></head>\n<body>Hello</body>\n</html>\n"
_COUNT = "def count(items):\n    total = 1\n    for _ in items:\n        total += 1\n    return total\n"
_PRICES = "item,price\npen,2\nbook,12\nlamp,30\n"
_LICENCE = "Copyright 2023 Lantern Works\nAll rights reserved.\n"

SET_B = (
    Task(
        "correct a spelling",
        (
            "menu.txt says 'cheeze'. It should be 'cheese'.",
            "Correct the spelling of 'cheeze' in menu.txt to 'cheese'.",
        ),
        {"menu.txt": _MENU},
        {"menu.txt": _MENU.replace("cheeze", "cheese")},
    ),
    Task(
        "change a setting in an env file",
        ("Set LOG_LEVEL to debug in app.env.", "In app.env change the log level from info to debug."),
        {"app.env": _ENV, "old.env": _ENV},
        {"app.env": _ENV.replace("info", "debug")},
    ),
    Task(
        "change the text a function returns",
        (
            "greet in greet.py should say 'Hello, ' and not 'Goodbye, '.",
            "In greet.py return 'Hello, ' + name instead.",
        ),
        {"greet.py": _GREET},
        {"greet.py": _GREET.replace("Goodbye", "Hello")},
    ),
    Task(
        "change a version in a json file",
        ("Set the version in package.json to 0.5.0.", "package.json: raise the version from 0.4.1 to 0.5.0."),
        {"package.json": _PACKAGE},
        {"package.json": _PACKAGE.replace("0.4.1", "0.5.0")},
    ),
    Task(
        "add a name at the end",
        (
            "Add Eli at the end of guests.txt, on a line of its own.",
            "guests.txt: append the name Eli as the last line.",
        ),
        {"guests.txt": _GUESTS},
        {"guests.txt": _GUESTS + "Eli\n"},
    ),
    Task(
        "remove a name",
        ("Remove Chidi from guests.txt.", "Chidi is not coming: delete that line from guests.txt."),
        {"guests.txt": _GUESTS},
        {"guests.txt": _GUESTS.replace("Chidi\n", "")},
    ),
    Task(
        "change the title of a page",
        (
            "Change the title in site/index.html to 'New page'.",
            "site/index.html: the title should be 'New page'.",
        ),
        {"site/index.html": _HTML},
        {"site/index.html": _HTML.replace("Old page", "New page")},
    ),
    Task(
        "fix a wrong start value",
        (
            "count in count.py is off by one: total must start at 0.",
            "Fix count.py: total should start at 0, not at 1.",
        ),
        {"count.py": _COUNT},
        {"count.py": _COUNT.replace("total = 1", "total = 0")},
    ),
    Task(
        "write a new file of two lines",
        (
            "Create colours.txt with two lines: red and blue.",
            "Make a file colours.txt. Its first line is red, its second line is blue.",
        ),
        {"shapes.txt": "circle\n"},
        {"colours.txt": "red\nblue\n"},
    ),
    Task(
        "look a price up",
        ("How much is the lamp, according to prices.csv?", "What does a lamp cost? See prices.csv."),
        {"prices.csv": _PRICES},
        answer=("30",),
    ),
    Task(
        "find where a word is used",
        ("Which file contains the word 'quartz'?", "In which file does 'quartz' appear?"),
        {"a/sand.txt": "grains\n", "b/rock.txt": "quartz and mica\n", "c/clay.txt": "soft\n"},
        answer=("rock.txt",),
    ),
    Task(
        "change a year",
        ("Change the year in LICENCE.txt to 2024.", "Update the year in LICENCE.txt from 2023 to 2024."),
        {"LICENCE.txt": _LICENCE},
        {"LICENCE.txt": _LICENCE.replace("2023", "2024")},
    ),
)

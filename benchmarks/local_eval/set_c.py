"""The third set: of the same kinds as the others, with other words, and never tuned on."""

from __future__ import annotations

from benchmarks.local_eval.tasks import Task

_PRICE = """\
def reduced(price, percent):
    return price + price * percent / 100


def raised(price, percent):
    return price + price * percent / 100 + 1
"""
_STATUS = """\
def label(done):
    if done:
        return "open"
    return "waiting"
"""
_RETRY = """\
import time


def retry(action):
    tries = 0
    while tries < 3:
        if action():
            return True
        tries += 1
        time.sleep(1)
    return False
"""
_CONNECT = 'def connect(host, port=80):\n    return f"{host}:{port}"\n\n\nprint(connect("example.org"))\n'
_AGE = "def is_adult(age):\n    return age > 18\n\n\ndef is_child(age):\n    return age < 13\n"
_STOCK = "item,count\nnail,200\nhammer,4\n"
_LENGTHS = "def dist(a, b):\n    return abs(a - b)\n"
_MAIN = "from lengths import dist\n\nprint(dist(3, 8))\n"
_JOB = "name: nightly\nhour: 3\n"
_RUN = "import os\nimport sys\n\nprint(sys.argv)\n"
_TEAMS = "team,city\nHawks,Oslo\nOwls,Turin\n"

SET_C = (
    Task(
        "fix an operator in a function",
        (
            "reduced in price.py is wrong: it must subtract the percentage, not add it. Fix it.",
            "price.py: reduced() has to take the percentage off the price. Correct only that function.",
        ),
        {"price.py": _PRICE},
        {"price.py": _PRICE.replace("price + price", "price - price", 1)},
    ),
    Task(
        "change what a branch returns",
        (
            "label in status.py should return 'closed' when done is true.",
            "In status.py return 'closed' instead of 'open'.",
        ),
        {"status.py": _STATUS},
        {"status.py": _STATUS.replace("open", "closed")},
    ),
    Task(
        "change a limit in a loop",
        ("retry in retry.py should try 5 times, not 3.", "Fix retry.py: the loop must go up to 5 tries."),
        {"retry.py": _RETRY},
        {"retry.py": _RETRY.replace("tries < 3", "tries < 5")},
    ),
    Task(
        "change a default value",
        (
            "The default port of connect in connect.py should be 443.",
            "connect.py: let port be 443 by default.",
        ),
        {"connect.py": _CONNECT},
        {"connect.py": _CONNECT.replace("port=80", "port=443")},
    ),
    Task(
        "fix a comparison",
        (
            "is_adult in age.py must be true at 18 as well. Fix it.",
            "age.py: is_adult should use >= and not >.",
        ),
        {"age.py": _AGE},
        {"age.py": _AGE.replace("age > 18", "age >= 18")},
    ),
    Task(
        "append a row to a table",
        (
            "Add the row 'screw,75' to the end of stock.csv.",
            "stock.csv: append a row for screw with count 75.",
        ),
        {"stock.csv": _STOCK},
        {"stock.csv": _STOCK + "screw,75\n"},
    ),
    Task(
        "rename a function in two files",
        (
            "Rename the function dist to gap in lengths.py and main.py.",
            "The function dist should be called gap, in lengths.py and in main.py.",
        ),
        {"lengths.py": _LENGTHS, "main.py": _MAIN},
        {"lengths.py": _LENGTHS.replace("dist", "gap"), "main.py": _MAIN.replace("dist", "gap")},
    ),
    Task(
        "write a file of one number",
        ("Create version.txt with the text 2.4.1.", "Make a new file version.txt that contains 2.4.1."),
        {"name.txt": "lantern\n"},
        {"version.txt": "2.4.1\n"},
    ),
    Task(
        "add a setting at the end",
        ("Add the line 'retries: 4' to the end of job.yaml.", "Append 'retries: 4' to job.yaml."),
        {"job.yaml": _JOB},
        {"job.yaml": _JOB + "retries: 4\n"},
    ),
    Task(
        "remove an import",
        ("Remove the import of os from run.py.", "Delete the line 'import os' from run.py."),
        {"run.py": _RUN},
        {"run.py": _RUN.replace("import os\n", "")},
    ),
    Task(
        "look a city up",
        (
            "Which city do the Owls come from? See teams.csv.",
            "According to teams.csv, where do the Owls play?",
        ),
        {"teams.csv": _TEAMS},
        answer=("Turin",),
    ),
)

"""CPU milliseconds of one task with three calls from start to end, or of a plain import of what it stands on.

The model is a server of this process that answers from a script, so what it takes is not counted.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cli.openai_server import MODEL, call, serving

RUN = ("-m", "deepagents_cli", "-q", "--yes", "--mode", "auto", "--model", f"local-server:{MODEL}", "Go.")
IMPORTS = ("-c", "import langchain.agents, langchain_openai")
COMMANDS = {"run": RUN, "imports": IMPORTS}


def measure(what: str, python: str) -> float:
    """Run it in a directory of its own, and return its CPU milliseconds."""
    calls = [
        call("write_file", file_path="notes.md", content="one\ntwo\n"),
        call("read_file", file_path="notes.md"),
        call("edit_file", file_path="notes.md", old_string="two", new_string="three"),
    ]
    with TemporaryDirectory() as home, serving(*calls, "Done.") as server:
        work = Path(home) / "work"
        work.mkdir()
        environment = {
            **os.environ,
            "HOME": home,
            "DEEPAGENTS_STATE": f"{home}/state",
            "DEEPAGENTS_SETTINGS": f"{home}/settings.toml",
            "DEEPAGENTS_LOCAL_SERVER": server.address,
        }
        before = _spent()
        subprocess.run(
            [python, "-P", *COMMANDS[what]],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        spent = _spent() - before
        if what == "run":
            assert (work / "notes.md").read_text() == "one\nthree\n", "the calls were not made"
    return spent * 1000


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps({"cpu": measure(*sys.argv[1:])}))

"""Run an MCP server in the sandbox: `python -m deepagents_cli.session.workplace.confined ACCESS COMMAND ...`.

It stands between the owner's pipes and the server, which finds what a command of the agent finds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Final

from deepagents.permissions import CommandAccess
from deepagents_cli.approval.backends import search_path
from deepagents_cli.approval.guarded import Kind, OwnFiles, command_rules
from deepagents_cli.project.settings import user_file
from deepagents_cli.project.state import state_dir
from deepagents_sandbox import LocalSandbox

_OUTPUT, _ERRORS = 8, 9
"""Numbers that any shell takes in a redirection."""
_ENDED: Final = 1


def confine(entry: Mapping[str, Any], access: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a server as one that runs it in the sandbox; `access` is what `main` reads."""
    given = json.dumps({**access, "variables": [*entry.get("env", {})]})
    arguments = ["-P", "-m", __name__, given, entry["command"], *entry.get("args", [])]
    return {**entry, "command": sys.executable, "args": arguments}


def access_for(
    directory: Path, network: Sequence[str], read: Sequence[Path], write: Sequence[Path]
) -> dict[str, Any]:
    """Return what confined servers find: what commands of an agent in this directory find."""
    hosts = [*network]
    return {
        "directory": str(directory),
        "network": "all" if "all" in hosts else hosts or "none",
        "read": [str(each) for each in read],
        "write": [str(each) for each in write],
        "path": search_path(),
    }


def main(given: str, program: Sequence[str]) -> int:
    """Run the program until it ends, or until this process is asked to end; return its exit code."""
    access: Mapping[str, Any] = json.loads(given)
    ends = Event()

    def end(*_: object) -> None:
        ends.set()

    signal.signal(signal.SIGTERM, end)
    os.dup2(1, _OUTPUT)
    os.dup2(2, _ERRORS)
    sandbox = LocalSandbox(
        access["directory"],
        readable=access["read"],
        writable=access["write"],
        network=access["network"],
        env={"PATH": access["path"], **{name: os.environ[name] for name in access["variables"]}},
    )
    places = [Path(each) for each in (access["directory"], *access["read"], *access["write"])]
    own = OwnFiles(Path.home(), user_file(Path.home()), state_dir()).rules(places)
    # What is guarded is not there for it: no person is asked about what it does.
    allowed = CommandAccess(command_rules(frozenset[Kind](), own), False, ())
    here = Path.cwd()
    if any(here.is_relative_to(each) for each in places):
        program = ("/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh", str(here), *program)
    code = sandbox.attach(program, (0, _OUTPUT, _ERRORS), is_cancelled=ends, allowed=allowed)
    return _ENDED if code is None else abs(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

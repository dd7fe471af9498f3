"""List what a directory brings that can run, and use it from now on: `deepagents trust`."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from deepagents_cli.errors import CommandError, Exit, complain
from deepagents_cli.project.project import Project
from deepagents_cli.project.settings import user_file
from deepagents_cli.project.settings_file import add_trusted, remove_trusted
from deepagents_cli.project.setup import load_setup
from deepagents_cli.terminal import READING, take_typed_ahead
from deepagents_cli.text import one_line


def run(arguments: Namespace, *, model: Any = None) -> int:
    """List, ask and keep the answer; return the exit code."""
    directory = Path(arguments.dir).expanduser().resolve()
    if not directory.is_dir():
        raise CommandError(f"{str(arguments.dir)!r} is not a directory")
    path = user_file(Path.home())
    if arguments.remove:
        remove_trusted(path, directory)
        return _say(f"{directory} is not trusted any more.")
    setup = load_setup(Project(directory, Path.home()))
    for notice in setup.notices:
        complain(notice)
    for item in setup.items:
        sys.stdout.write(f"{item.show()}\n")
    if not setup.items:
        return _say(f"{directory} brings nothing that needs trust.")
    if setup.trusted:
        return _say(f"{directory} is trusted as it is now.")
    if not arguments.yes and not _ask(directory):
        return Exit.FAILED
    add_trusted(path, setup.trust())
    return _say(f"{directory} is trusted as it is now; a change of these asks again.")


def _ask(directory: Path) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError("there is no terminal to ask on; trust what is listed with --yes", Exit.USAGE)
    _, begun = take_typed_ahead(READING)
    while True:
        sys.stdout.write(f"Use these in {one_line(str(directory))}? [y]es, [n]o ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        answer, begun = (begun + line).strip().lower(), ""
        # A line of other words is no answer, and the end of input is no agreement.
        if not line or answer in ("y", "yes", "n", "no"):
            return answer in ("y", "yes") and bool(line)


def _say(text: str) -> int:
    sys.stdout.write(f"{one_line(text)}\n")
    return Exit.DONE

"""List what a directory brings that can run, and use it from now on: `deepagents trust`."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from deepagents_cli.commands.options import add_debug, ask, read_directory, say
from deepagents_cli.commands.when_run import imported_when_run
from deepagents_cli.errors import Exit, complain
from deepagents_cli.text import one_line

with imported_when_run():
    from deepagents_cli.project import project, settings, settings_file, setup


def add_options(commands: Any) -> None:
    """Describe the command and its options."""
    trust = commands.add_parser(
        "trust",
        help="list what a directory brings that can run, and use it from now on",
        description=(
            "List the hooks, commands, settings, agents and MCP servers of a directory that can run "
            "something or let more happen, and use them from now on. Until then they are left out; a change "
            "of them asks again."
        ),
    )
    trust.add_argument("dir", nargs="?", default=".", metavar="DIR", help="the directory (default: .)")
    trust.add_argument("--yes", action="store_true", help="trust what is listed without asking")
    trust.add_argument("--remove", action="store_true", help="trust the directory no longer")
    add_debug(trust)


def run(arguments: Namespace, *, model: Any = None) -> int:
    """List, ask and keep the answer; return the exit code."""
    directory = read_directory(arguments.dir)
    path = settings.user_file(Path.home())
    if arguments.remove:
        settings_file.remove_trusted(path, directory)
        return say(f"{directory} is not trusted any more.")
    found = setup.load_setup(project.Project(directory, Path.home()))
    for notice in found.notices:
        complain(notice)
    for item in found.items:
        sys.stdout.write(f"{item.show()}\n")
    if not found.items:
        return say(f"{directory} brings nothing that needs trust.")
    if found.trusted:
        return say(f"{directory} is trusted as it is now.")
    if not arguments.yes and not ask(f"Use these in {one_line(str(directory))}?"):
        return Exit.FAILED
    settings_file.add_trusted(path, found.trust())
    return say(f"{directory} is trusted as it is now; a change of these asks again.")

"""Check what a person and a project have set and brought, for `deepagents doctor`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote, shlex
from shutil import which

from deepagents.errors import UnknownModel
from deepagents.models import resolve_model
from deepagents_cli.project.agents import ANTHROPIC_MODELS, find_agents
from deepagents_cli.project.checks import Check
from deepagents_cli.project.commands import find_commands
from deepagents_cli.project.models import LOCAL, find_missing
from deepagents_cli.project.plugins import read_hooks
from deepagents_cli.project.project import Project
from deepagents_cli.project.settings import read_project, read_user
from deepagents_cli.project.setup import Setup, describe_untrusted, load_setup
from deepagents_local import DEFAULT_MODEL, need_weights


def examine_project(directory: Path) -> Iterator[Check]:
    """Check what the person and the project have set and brought; what is not trusted yet, too."""
    project = Project(directory, Path.home())
    user, projects = read_user(project.home), read_project(project)
    for each in (user, *projects):
        if each.path.is_file() and not each.notices:
            yield Check("settings", "found", str(each.path))
        yield from _wrong("settings", each.notices)
    plugins, notices = project.plugins()
    yield from (Check("plugin", "found", f"{each.name} at {each.path}") for each in plugins)
    yield from _wrong("plugin", notices)
    for each in map(read_hooks, plugins):
        yield from _wrong("hooks", each.notices)
    yield from (Check("project", "missing", each) for each in project.problems())
    yield from (Check("memory", "found", str(each)) for each in project.memory())
    yield from (Check("skills", "found", str(each)) for each in project.skills())
    for kind, find in (("agents", find_agents), ("commands", find_commands)):
        found, notices = find(project)
        if found:
            yield Check(kind, "found", ", ".join(found))
        yield from _wrong(kind, notices)
    setup = load_setup(project)
    yield from _models(setup)
    everything = load_setup(project, trust=True)
    yield from _commands(everything)
    yield from _servers(everything)
    if setup.items:
        way = None if setup.trusted else f"deepagents trust {quote(str(directory))}"
        what = describe_untrusted(setup) or "what this project brings is used"
        yield Check("trust", "found" if setup.trusted else "missing", what.partition("; see them")[0], way)


def _models(setup: Setup) -> Iterator[Check]:
    """Check that the models that files name can be had."""
    named = {"settings": setup.settings.model}
    named |= {f"agent {each.name}": each.model for each in setup.agents.values()}
    named |= {f"command /{each.name}": each.model for each in setup.commands.values()}
    for who, model in named.items():
        if model and model != "inherit" and model not in ANTHROPIC_MODELS:
            yield from _model_of(who, model)


def _commands(setup: Setup) -> Iterator[Check]:
    """Check that the programs of hooks, and of checks after edits, are there."""
    lines = [("hooks", f"{each.event} {each.command}", each.command) for each in setup.settings.hooks]
    lines += [
        ("checks", f"{name}: {each.command}", each.command) for name, each in setup.settings.checks.items()
    ]
    own = setup.project.directory
    for kind, what, command in lines:
        program = next((each for each in _words_of(command) if "=" not in each), "")
        # It only looks the name up, as the shell that runs the command will.
        looked_up = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", program]
        places = [str(own / ".venv/bin"), str(own / "node_modules/.bin")] if kind == "checks" else []
        path = os.pathsep.join([*places, os.environ.get("PATH", os.defpath)])
        done = subprocess.run(
            looked_up, cwd=own, env={**os.environ, "PATH": path}, capture_output=True, check=False
        )
        if done.returncode:
            way = f"install {program!r}, make it executable if it is a file, or take the {kind[:-1]} out"
            yield Check(kind, "missing", f"{what}: there is no program {program!r}", way)
        else:
            yield Check(kind, "found", what)


def _servers(setup: Setup) -> Iterator[Check]:
    """Check that the programs of MCP servers are there; nothing is started."""
    for each in setup.servers.values():
        program, what = each.entry.get("command"), f"{each.name}: {each.describe().splitlines()[0]}"
        if (
            program
            and "$" not in program
            and not which(Path(each.placed()["cwd"], program))
            and not which(program)
        ):
            way = f"install {program!r}, or take the server out; deepagents mcp test says more"
            yield Check("servers", "missing", f"{what}: there is no program {program!r}", way)
        else:
            yield Check("servers", "found", what)


def _model_of(who: str, name: str) -> Iterator[Check]:
    provider, _, local = name.partition(":")
    try:
        resolve_model(name)
        if provider == LOCAL:
            # Otherwise they are looked for when it is first asked.
            need_weights(local or DEFAULT_MODEL)
    except UnknownModel as error:
        # The error is for who names one model; here all that can be used are listed above.
        way = find_missing(provider, os.environ) or str(error)
        yield Check(who, "missing", f"{name} cannot be used", way)


def _wrong(name: str, notices: Iterable[str]) -> Iterator[Check]:
    return (Check(name, "missing", each, "mend it as this says, or move the file away") for each in notices)


def _words_of(command: str) -> list[str]:
    """Return the words of a command line."""
    # As a shell splits, so that the name in `./check.sh;` is found.
    words = shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        return list(words)
    except ValueError:
        return command.split()

"""Commands about the directory: what the model reads, what it can do, and what has changed."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Final

from deepagents.tools import specs_by_name
from deepagents_cli.diffs import name_in, text_diff
from deepagents_cli.doctor import describe, examine
from deepagents_cli.errors import CommandError
from deepagents_cli.project import Project
from deepagents_cli.settings import user_file
from deepagents_cli.terminal import clean, one_line
from deepagents_cli.worker.commands.parts import Answer, SlashCommand, Talk

_FILE: Final = "AGENTS.md"
_INIT: Final = (
    "Look at this directory: its layout, its build and test commands, its conventions. Then write AGENTS.md "
    "in its root, for coding agents that work here: what it is in two sentences, the commands to build, test "
    "and lint, where things are, and the rules that a stranger would break. At most 60 lines; nothing that "
    "the code says by itself. If there is an AGENTS.md, improve it and keep what is right."
)
_REVIEW: Final = (
    "Review the changes in this directory that are not committed (git status, git diff, and new files). "
    "Look for mistakes, missing tests, and what is needlessly complicated. Change nothing. Answer with a "
    "list, the worst first, each with file and line and what to do; say so if nothing is wrong."
)


async def _memory(talk: Talk, arguments: str) -> Answer:
    files = talk.workplace.project.memory()
    if not files:
        return {"text": "The model reads no AGENTS.md here. /remember writes one, and /init a whole one."}
    lines = [f"- `{one_line(str(each))}`, {each.stat().st_size:,} bytes" for each in files]
    return {"text": "\n".join(["The model reads at each start:", *lines])}


async def _remember(talk: Talk, arguments: str) -> Answer:
    places = _places(talk.workplace.project)
    scope, _, text = arguments.partition(" ")
    if scope not in places:
        if not arguments:
            raise CommandError("Write what is to be remembered behind /remember")
        choices = [
            {
                "value": f"{name} {arguments}",
                "label": name,
                "detail": one_line(str(place / _FILE)),
                "usable": True,
            }
            for name, place in places.items()
        ]
        return {"choices": choices}
    path = places[scope] / _FILE
    before = path.read_text("utf-8") if path.is_file() else ""
    head = f"{before.rstrip()}\n" if before.strip() else ""
    return talk.propose(path, f"{head}- {text.strip()}\n")


def _places(project: Project) -> dict[str, Path]:
    """Return where notes are kept: for everything, for the repository, for this directory."""
    found = {"home": project.home / ".deepagents", "repository": project.root, "directory": project.directory}
    if project.root == project.directory:
        del found["directory"]
    return found


def find_skills(project: Project) -> list[tuple[str, Path]]:
    """Return the skills that are there, by name; a later one replaces an earlier one."""
    found = {
        each.parent.name: each
        for directory in project.skills()
        for each in sorted(directory.glob("*/SKILL.md"))
    }
    return [*found.items()]


async def _skills(talk: Talk, arguments: str) -> Answer:
    lines = [
        f"- **{one_line(name)}** `{one_line(str(path))}`"
        for name, path in find_skills(talk.workplace.project)
    ]
    return {"text": "\n".join(lines) or "There are no skills in .deepagents/skills or .claude/skills."}


async def _agents(talk: Talk, arguments: str) -> Answer:
    lines = [
        f"- **{one_line(each.name)}** {one_line(each.description)}"
        for each in talk.workplace.setup.agents.values()
    ]
    return {"text": "\n".join(["- **general-purpose** does what it is told", *lines])}


async def _tools(talk: Talk, arguments: str) -> Answer:
    request = talk.steering.request
    if request is None:
        names = [each.name for each in specs_by_name().values()]
    else:
        names = [str(getattr(each, "name", each)) for each in request.tools]
    specs = specs_by_name()
    asking = {each.name for each in specs.values() if each.asks_by_default}
    lines = [f"- `{one_line(name)}`{': asks' if name in asking else ''}" for name in sorted(names)]
    return {"text": "\n".join(lines)}


async def _permissions(talk: Talk, arguments: str) -> Answer:
    policy = talk.workplace.policy
    if arguments:
        known = policy.forget(arguments)
        return {"text": "It is asked about again." if known else f"There is no rule {one_line(arguments)!r}."}
    if not policy.rules:
        return {"text": "No call is allowed for good; choose always when you are asked."}
    rules = dict.fromkeys(map(str, policy.rules))
    return {
        "choices": [
            {"value": each, "label": one_line(each), "detail": "remove", "usable": True} for each in rules
        ]
    }


def read_text(path: str) -> str | None:
    """Return the text of a file of this machine, `None` where there is none."""
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return None


async def _diff(talk: Talk, arguments: str) -> Answer:
    directory = str(talk.workplace.directory)
    lines: list[str] = []
    for path, before in talk.changed.items():
        lines += text_diff(before, read_text(path), name_in(path, directory))
    if not lines:
        return {"text": "The agent's file tools have changed nothing since this conversation was opened."}
    return {"text": "\n".join(["````diff", *map(clean, lines), "````"])}


async def _settings(talk: Talk, arguments: str) -> Answer:
    place = talk.workplace
    shown = [(each.name, getattr(place.setup.settings, each.name)) for each in fields(place.setup.settings)]
    lines = [f"- {name}: {one_line(str(value))}" for name, value in shown if value]
    where = f"Yours are in `{user_file(place.project.home)}`."
    return {"text": "\n".join([*(lines or ["Nothing is set."]), "", where])}


async def _doctor(talk: Talk, arguments: str) -> Answer:
    found = await to_thread(examine, talk.workplace.directory)
    # The terminal is that of the screen, which is another process.
    checks = [each for each in found if each.name != "terminal"]
    return {"text": f"```\n{describe(checks)}\n```"}


async def _init(talk: Talk, arguments: str) -> Answer:
    return {"send": f"{_INIT} {arguments}".strip()}


async def _review(talk: Talk, arguments: str) -> Answer:
    return {"send": f"{_REVIEW} {arguments}".strip()}


COMMANDS: Sequence[SlashCommand] = (
    SlashCommand("memory", "list the files with instructions that the model reads", "", _memory),
    SlashCommand(
        "remember",
        "write a note for the model, after showing it",
        "[home|repository] TEXT",
        _remember,
    ),
    SlashCommand("skills", "list the skills", "", _skills),
    SlashCommand("agents", "list the subagents", "", _agents),
    SlashCommand("tools", "list the tools, and which ask", "", _tools),
    SlashCommand("permissions", "list what is allowed for good, to remove it", "[RULE]", _permissions),
    SlashCommand("diff", "show what the agent has changed in this conversation", "", _diff),
    SlashCommand("init", "let the agent write an AGENTS.md", "[WISHES]", _init),
    SlashCommand("review", "let the agent review what is not committed", "[WISHES]", _review),
    SlashCommand("settings", "show the settings that count here", "", _settings),
    SlashCommand("doctor", "show what is found here, and what is missing", "", _doctor),
)

"""Show the directory: what the model reads, what it can do, and what has changed."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from deepagents.middleware.skills.parse import read_header, split_skill
from deepagents_cli.errors import CommandError
from deepagents_cli.project.agents import FileAgent
from deepagents_cli.project.checks import describe
from deepagents_cli.project.machine import examine
from deepagents_cli.project.project import Folder, Project, read_text
from deepagents_cli.project.settings import KEYS, NOTHING_SET, Settings, as_text, user_file
from deepagents_cli.project.setup import describe_check
from deepagents_cli.project.tools import TOOLS
from deepagents_cli.protocol import Choice, Result
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.session.slash.command import SlashCommand
from deepagents_cli.session.slash.proposal import Proposal
from deepagents_cli.session.workplace.servers import describe_state, tools_of
from deepagents_cli.text import one_line

_FILE: Final = "AGENTS.md"
_KEEP_ALL: Final = "keep all"
_LARGEST_SKILL: Final = 1 << 20
"""Bytes."""
_LISTED_OTHERWISE: Final = ("permissions", "trusted", "servers", "checks")
_LONGEST: Final = 300
"""Characters of a description."""
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


async def _memory(talk: Conversation, arguments: str) -> Result:
    files = talk.workplace.project.memory()
    if not files:
        return Result(text="The model reads no AGENTS.md here. /remember writes one, and /init a whole one.")
    lines = [f"- `{one_line(str(each))}`, {each.stat().st_size:,} bytes" for each in files]
    return Result(text="\n".join(["The model reads at each start:", *lines]))


async def _remember(talk: Conversation, arguments: str) -> Result:
    places = _places(talk.workplace.project)
    scope, _, text = arguments.partition(" ")
    if scope not in places:
        if not arguments:
            raise CommandError("Write what is to be remembered behind /remember")
        targets = {name: one_line(str(place / _FILE)) for name, place in places.items()}
        return Result(choices=[Choice(f"{each} {arguments}", each, path) for each, path in targets.items()])
    proposal = await to_thread(Proposal.of, places[scope].resolve() / _FILE)
    head = f"{proposal.text.rstrip()}\n" if proposal.text.strip() else ""
    return proposal.show(talk, f"{head}- {text.strip()}\n")


def _places(project: Project) -> dict[str, Path]:
    """Return where notes are kept: for everything, for the repository, for this directory."""
    found = {"home": project.home / ".deepagents", "repository": project.root, "directory": project.directory}
    if project.root == project.directory:
        del found["directory"]
    return found


async def _skills(talk: Conversation, arguments: str) -> Result:
    found = await to_thread(describe_skills, talk.workplace.project)
    return Result(text="\n".join(found) or "There are no skills in .deepagents/skills or .claude/skills.")


def describe_skills(project: Project) -> list[str]:
    """Return the skills that are there, a line of Markdown each."""
    return [_describe_skill(name, *each, project) for name, each in project.find_skills().items()]


def _describe_skill(name: str, path: Path, folder: Folder, project: Project) -> str:
    try:
        header, _ = split_skill(read_text(path, folder.place, _LARGEST_SKILL))
        about = one_line(str(read_header(header).get("description") or "has no description"))[:_LONGEST]
    except (OSError, ValueError) as error:
        about = f"cannot be read: {one_line(str(error))}"
    where = "repository" if folder.place == project.root else "directory"
    where = "home" if folder.place == project.home else where
    where = f"plugin {folder.plugin.name}, {where}" if folder.plugin else where
    return f"- **{one_line(name)}** {about} ({where}, `{one_line(str(path))}`)"


async def _agents(talk: Conversation, arguments: str) -> Result:
    lines = [
        f"- **{one_line(each.name)}** {one_line(each.description)} ({_tools_of(each)}; "
        f"{one_line(each.model or 'the model of the main agent')})"
        for each in talk.workplace.setup.agents.values()
    ]
    return Result(text="\n".join(["- **general-purpose** does what it is told (all tools)", *lines]))


def _tools_of(agent: FileAgent) -> str:
    has = sorted(TOOLS - agent.excluded)
    if len(has) <= len(agent.excluded):
        return ", ".join(has) or "no tools"
    return f"all tools but {', '.join(sorted(agent.excluded))}" if agent.excluded else "all tools"


async def _tools(talk: Conversation, arguments: str) -> Result:
    request, policy = talk.steering.request, talk.workplace.policy
    if request is None:
        can = policy.backend.capabilities()
        names = [each.name for each in policy.specs.values() if each.is_possible(can)]
    else:
        names = [str(getattr(each, "name", each)) for each in request.tools]
    words = {"allow": "", "ask": ": asks", "refuse": ": refused"}
    usual = {each: policy.usual(each) for each in sorted(names)}
    lines = [f"- `{one_line(name)}`{words[kind]}" for name, kind in usual.items()]
    note = "" if talk.mode == "full" else " Secrets, .git and settings of editors ask in addition."
    return Result(text="\n".join([f"In mode {talk.mode}:{note}", "", *lines]))


async def _servers(talk: Conversation, arguments: str) -> Result:
    servers = talk.workplace.servers
    if servers.opened is None:
        return Result(text="There are no MCP servers here. `deepagents mcp add` adds one.")
    if arguments:
        return Result(text="\n".join(await _describe_tools(talk, arguments)))
    paths = {name: one_line(str(each.path)) for name, each in servers.found.items()}
    lines = [
        f"- **{one_line(name)}** {one_line(describe_state(each))} (`{paths[name]}`)"
        for name, each in servers.opened.status().items()
    ]
    return Result(
        text="\n".join([*lines, "", "`/mcp NAME` lists the tools of one, and starts it if it is not there."])
    )


async def _describe_tools(talk: Conversation, name: str) -> list[str]:
    """Return a line for each tool of a server, which is started first."""
    servers, policy = talk.workplace.servers.opened, talk.workplace.policy
    if servers is None or name not in servers.status():
        raise CommandError(f"There is no MCP server {one_line(name)!r}; /mcp lists them")
    await servers.astart()
    found = tools_of(await servers.atools(), name)
    words = {"allow": "", "ask": " asks:", "refuse": " is refused:"}
    lines = [
        f"- `{one_line(each.name)}`{words[policy.usual(each.name)]} {one_line(each.description)[:_LONGEST]}"
        for each in found
    ]
    return [f"{one_line(name)}: {one_line(describe_state(servers.status()[name]))}", "", *lines]


async def _permissions(talk: Conversation, arguments: str) -> Result:
    policy = talk.workplace.policy
    if arguments == _KEEP_ALL:
        return Result(text="All stay allowed.")
    if arguments:
        known = policy.forget(arguments)
        return Result(
            text="It is asked about again." if known else f"There is no rule {one_line(arguments)!r}."
        )
    if not policy.remembered:
        return Result(text="No call is allowed for good; choose always when you are asked.")
    where = {each.rule.key: one_line(each.describe_scope(policy.directory)) for each in policy.remembered}
    # First, so that Enter alone removes nothing.
    rows = {_KEEP_ALL: "remove none"} | {rule: f"{place}; remove" for rule, place in where.items()}
    return Result(choices=[Choice(rule, one_line(rule), detail) for rule, detail in rows.items()])


async def _settings(talk: Conversation, arguments: str) -> Result:
    place = talk.workplace
    lines = [f"- {one_line(each)}" for each in _describe_settings(place.setup.settings)]
    where = f"Yours are in `{user_file(place.project.home)}`."
    return Result(text="\n".join([*(lines or ["Nothing is set."]), "", where]))


def _describe_settings(settings: Settings) -> Iterator[str]:
    """Yield a line for each value that was set, as it is written in a file."""
    for name in (each for each in KEYS if "." not in each and each not in _LISTED_OTHERWISE):
        value = getattr(settings, name)
        if value != getattr(NOTHING_SET, name):
            yield f"{name}: {as_text(value)}"
    yield from (f"limits.{kind}: {each}" for kind, each in settings.limits.items())
    for hook in settings.hooks:
        tools = f" ({', '.join(hook.tools)})" if hook.tools else ""
        yield f"hooks.{hook.event}: {hook.command}{tools}"
    yield from (f"checks.{name}: {describe_check(each)}" for name, each in settings.checks.items())
    if settings.permissions:
        yield f"permissions: {len(settings.permissions)}, listed by /permissions"
    if settings.servers:
        yield f"servers: {', '.join(settings.servers)}, listed by /mcp"
    yield from (f"trusted: {each.directory}" for each in settings.trusted)
    yield from (f"not used: {each}" for each in settings.notices)


async def _doctor(talk: Conversation, arguments: str) -> Result:
    found = await to_thread(examine, talk.workplace.directory)
    # The terminal is that of the screen, which is another process.
    checks = [each for each in found if each.name != "terminal"]
    return Result(text=f"```\n{describe(checks)}\n```")


async def _send(text: str, talk: Conversation, arguments: str) -> Result:
    return Result(send=f"{text} {arguments}".strip())


COMMANDS: Sequence[SlashCommand] = (
    SlashCommand("memory", "list the files with instructions that the model reads", "", _memory),
    SlashCommand(
        "remember", "write a note for the model, after showing it", "[home|repository] TEXT", _remember
    ),
    SlashCommand("skills", "list the skills", "", _skills),
    SlashCommand("agents", "list the subagents", "", _agents),
    SlashCommand("tools", "list the tools, and which ask", "", _tools),
    SlashCommand("mcp", "list the MCP servers, or the tools of one", "[NAME]", _servers),
    SlashCommand("permissions", "list what is allowed for good, to remove it", "[RULE]", _permissions),
    SlashCommand("init", "let the agent write an AGENTS.md", "[WISHES]", partial(_send, _INIT)),
    SlashCommand("review", "let the agent review what is not committed", "[WISHES]", partial(_send, _REVIEW)),
    SlashCommand("settings", "show the settings that count here", "", _settings),
    SlashCommand("doctor", "show what is found here, and what is missing", "", _doctor),
)

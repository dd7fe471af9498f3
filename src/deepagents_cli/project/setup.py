"""Gather what counts in a directory: settings, subagents and commands, and what of it waits for trust."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from deepagents._values import replace, valueclass
from deepagents_cli.project.agents import FileAgent, find_agents
from deepagents_cli.project.commands import FileCommand, find_commands
from deepagents_cli.project.plugins import read_hooks
from deepagents_cli.project.project import Project
from deepagents_cli.project.servers import Server, find_brought, servers_in, usable
from deepagents_cli.project.settings import (
    Chosen,
    Hook,
    Settings,
    TrustedDirectory,
    add_values,
    as_text,
    merge,
    read_project,
    read_user,
    user_file,
    widens,
)
from deepagents_cli.project.worktrees import find_worktree
from deepagents_cli.text import clean, one_line

if TYPE_CHECKING:
    from deepagents.middleware import EditCheck


@valueclass
class Item:
    """One thing that a project brings and that needs trust: it can run, or it lets more happen."""

    kind: str
    name: str
    what: str

    def show(self) -> str:
        """Describe it for a terminal, whole: what was not shown cannot be trusted. Its lines stay lines."""
        first, *others = map(one_line, clean(self.what).split("\n"))
        return "\n".join([f"{self.kind} {one_line(self.name)}: {first}", *(f"    {each}" for each in others)])


@valueclass
class Setup:
    """What counts; `items` is what needs trust, and nothing of it counts where `trusted` is false."""

    project: Project
    settings: Settings
    agents: Mapping[str, FileAgent]
    commands: Mapping[str, FileCommand]
    servers: Mapping[str, Server]
    items: Sequence[Item]
    digest: str
    trusted: bool
    notices: Sequence[str]

    def trust(self) -> TrustedDirectory:
        """Return what is kept where the person trusts this."""
        return TrustedDirectory(self.project.directory.resolve(), self.digest)


def load_setup(
    project: Project, environment: Mapping[str, str] = os.environ, *, trust: bool = False
) -> Setup:
    """Read all that a person and a project have set; with `trust`, all of the project's counts this time."""
    plugins, of_plugins = project.plugins()
    hooks = {plugin: read_hooks(plugin) for plugin in plugins}
    home = project.home.resolve()
    own_hooks = [each for plugin, each in hooks.items() if plugin.place.resolve() == home]
    user = add_values(read_user(project.home, environment), own_hooks)
    projects = [*read_project(project), *(each for each in hooks.values() if each not in own_hooks)]
    agents, notices = find_agents(project)
    commands, further = find_commands(project)
    brought, of_files = find_brought(project)
    items = [*_find_items(projects, agents, commands)]
    items += [Item("server", each.name, each.describe()) for each in brought]
    digest = _digest(items)
    own = merge(user)
    trusted = trust or not items or _is_trusted(own, project, digest)
    settings = merge(user, projects, trusted=trusted)
    if not trusted:
        agents = {
            name: replace(each, model=None) if each.needs_trust else each for name, each in agents.items()
        }
        commands = {
            name: each if each.trusted else replace(each, approved=())
            for name, each in commands.items()
            if each.trusted or not _runs_more(each)
        }
    path = user_file(project.home, environment)
    own_servers = servers_in(settings.servers, path, "person")
    servers, of_servers = usable([*own_servers, *(brought if trusted else ())])
    own_notices = [*project.describe_home(), *project.problems(), *of_plugins, *of_files]
    all_notices = [*map(one_line, own_notices), *settings.notices, *notices, *further, *of_servers]
    return Setup(project, settings, agents, commands, servers, items, digest, trusted, all_notices)


def describe_untrusted(setup: Setup) -> str | None:
    """Say in one sentence what is left out, and how to change that."""
    if setup.trusted:
        return None
    counts = Counter(item.kind for item in setup.items)
    listed = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items())
    directory = one_line(str(setup.project.directory))
    return f"not used until you trust this directory: {listed}; see them with: deepagents trust {directory}"


def _find_items(
    projects: Sequence[Chosen], agents: Mapping[str, FileAgent], commands: Mapping[str, FileCommand]
) -> Iterator[Item]:
    for chosen in projects:
        for key, value in chosen.values.items():
            if widens(key, value):
                yield from _items_of(key, value)
    for command in commands.values():
        if not command.trusted and (_runs_more(command) or command.approved):
            model = [f"model {command.model}"] if command.model else []
            parts = [*command.shell, *model, *(f"approves {each}" for each in command.approved)]
            yield Item("command", f"/{command.name}", "; ".join(parts))
    for agent in agents.values():
        if agent.needs_trust:
            yield Item("agent", agent.name, f"works with the model {agent.model}")


def _items_of(key: str, value: Any) -> Iterator[Item]:
    if key.startswith("hooks."):
        hooks: Sequence[Hook] = value
        for hook in hooks:
            tools = f" ({', '.join(hook.tools)})" if hook.tools else ""
            event = f"{hook.plugin}: {hook.event}" if hook.plugin else hook.event
            yield Item("hook", f"{event}{tools}", hook.command)
    elif key.startswith("checks."):
        check: EditCheck = value
        yield Item("check", key.removeprefix("checks."), describe_check(check))
    else:
        yield Item("setting", key, as_text(value))


def describe_check(check: EditCheck) -> str:
    """Return all that was set for a check."""
    files = [f"for {', '.join(check.files)}"] if check.files else []
    seconds = [f"at most {check.seconds:g} s"] if check.seconds else []
    notes = ", ".join([*files, *(["changes files"] if check.formats else []), *seconds])
    return f"{check.command} ({notes})" if notes else check.command


def _runs_more(command: FileCommand) -> bool:
    return bool(command.shell or command.model)


def _digest(items: Sequence[Item]) -> str:
    """Return what changes with the list.

    Not with the scripts that it names: no text tells all that a line runs, and a script changes often. It
    runs in the sandbox, as what the agent writes does.
    """
    listed = [[item.kind, item.name, item.what] for item in items]
    return sha256(json.dumps(listed).encode()).hexdigest()


def _is_trusted(settings: Settings, project: Project, digest: str) -> bool:
    """A subdirectory or worktree of a trusted repository is trusted too, if it brings nothing else."""
    places = {project.directory.resolve(), project.root.resolve()}
    if linked := find_worktree(project.directory.resolve()):
        places.add(linked.main)
    return any(each.digest == digest and each.directory in places for each in settings.trusted)

"""Subagents from files: what they may do is at most what the main agent may."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.tools.tool_node import ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage

from deepagents.errors import UnknownModel
from deepagents.middleware.subagents import SubAgent
from deepagents.middleware.tool_exclusion import ToolExclusionMiddleware
from deepagents.models import resolve_model
from deepagents.models.traits import model_identifier, model_provider
from deepagents.tools import FILE_TOOLS
from deepagents_cli.always import split_plain
from deepagents_cli.markdown import MarkdownFile, find_files, names_in
from deepagents_cli.project import Project

_TODOS: Final = ("write_todos", "read_todos")
TOOLS: Final = frozenset({*(spec.name for spec in FILE_TOOLS), *_TODOS})
_COMMANDS: Final = ("execute", "read_command", "write_command", "stop_command")
_CHANGES: Final = frozenset({*_COMMANDS, *(spec.name for spec in FILE_TOOLS if spec.changes_files)})
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "Read": ("read_file",),
    "Edit": ("edit_file",),
    "MultiEdit": ("edit_file",),
    "Write": ("write_file",),
    "Bash": _COMMANDS,
    "BashOutput": ("read_command",),
    "KillShell": ("stop_command",),
    "Grep": ("grep",),
    "Glob": ("glob",),
    "LS": ("ls",),
    "TodoWrite": _TODOS,
    "execute": _COMMANDS,
    # Subagents do not delegate.
    "Task": (),
    "Agent": (),
    "task": (),
}
"""What Claude Code calls a tool, and ours of the same use."""
ANTHROPIC_MODELS: Final = {
    "opus": "claude-opus-4-6",
    "sonnet": "claude-sonnet-4-6",
    "haiku": "claude-haiku-4-5",
}
_MODES: Final = ("", "ask", "default", "plan")
_PREFIX: Final = re.compile(r"(?P<words>.*?)(?::\*| \*)")
NOTHING_ASKED: Final[Mapping[str, Any]] = MappingProxyType({})
_TAKEN: Final = ("general-purpose",)


@dataclass(frozen=True)
class FileAgent:
    """A subagent; `excluded` are the tools that it does not get."""

    name: str
    description: str
    prompt: str
    excluded: frozenset[str]
    model: str | None
    trusted: bool
    path: Path
    commands: tuple[str, ...] = ()
    """What its commands begin with, such as `git diff:*`, or are; where this is empty, all."""

    @property
    def needs_trust(self) -> bool:
        """Whether it would send what it reads to another model, by a name that is not of this family."""
        return not self.trusted and self.model is not None and self.model not in ANTHROPIC_MODELS


class _OnlyCommands(AgentMiddleware[Any, Any, Any]):
    """Refuses commands that the file of an agent does not name."""

    def __init__(self, commands: Sequence[str]) -> None:
        super().__init__()
        self._commands = commands

    def allows(self, command: object) -> bool:
        """Return whether a command is named; one that the shell would make more of than words is not."""
        words = split_plain(command) if isinstance(command, str) else None
        return words is not None and any(_is_named(words, each) for each in self._commands)

    def asks_about(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return approvals without questions about what is refused anyway."""
        when: Callable[[ToolCallRequest], bool] = asked["execute"]["when"]

        def asks(request: ToolCallRequest) -> bool:
            return self.allows(request.tool_call["args"].get("command")) and when(request)

        return {**asked, "execute": {**asked["execute"], "when": asks}}

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Run a call, or refuse it."""
        call = request.tool_call
        if call["name"] != "execute" or self.allows(call["args"].get("command")):
            return await handler(request)
        named = ", ".join(self._commands)
        text = f"Error: this agent runs only plain commands of these: {named} [permission_denied]"
        return ToolMessage(text, name=call["name"], tool_call_id=call["id"], status="error")


def _is_named(words: Sequence[str], command: str) -> bool:
    found = _PREFIX.fullmatch(command)
    wanted = split_plain(found["words"] if found else command) or []
    return bool(wanted) and list(words[: len(wanted) if found else None]) == wanted


def find_agents(project: Project) -> tuple[dict[str, FileAgent], list[str]]:
    """Return the subagents of person and project by name, and a sentence for each problem."""
    return find_files(project, "agents", _parse)


def make_subagents(
    agents: Iterable[FileAgent],
    model: BaseChatModel,
    middleware: Sequence[Any] = (),
    asked: Mapping[str, Any] = NOTHING_ASKED,
) -> tuple[list[SubAgent], list[str]]:
    """Make specs for `create_deep_agent`; whose model cannot be had works with that of the main agent.

    Args:
        agents: what files describe.
        model: that of the main agent.
        middleware: what all of them have.
        asked: the approvals of the main agent.
    """
    specs: list[SubAgent] = []
    notices: list[str] = []
    for agent in agents:
        spec = SubAgent(name=agent.name, description=agent.description)
        if agent.prompt:
            spec["system_prompt"] = agent.prompt
        own: list[Any] = [ToolExclusionMiddleware(excluded=agent.excluded)] if agent.excluded else []
        if agent.commands:
            only = _OnlyCommands(agent.commands)
            own.append(only)
            if "execute" in asked:
                spec["interrupt_on"] = only.asks_about(asked)
        spec["middleware"] = [*own, *middleware]
        try:
            if agent.model and (chosen := choose_other_model(agent.model, model)) is not None:
                spec["model"] = chosen
        except UnknownModel as error:
            notices.append(f"{agent.path}: it works with the model of the main agent: {error}")
        specs.append(spec)
    return specs, notices


def without_model(agent: FileAgent) -> FileAgent:
    """Return an agent that works with the model of the main agent."""
    return replace(agent, model=None)


def _parse(file: MarkdownFile) -> tuple[FileAgent, list[str]]:
    if not file.text("description"):
        raise ValueError("it has no 'description' in its front matter, by which the agent is chosen")
    if file.name in _TAKEN:
        raise ValueError(f"the name {file.name!r} is taken; choose another")
    problems: list[str] = []
    mode = file.text("mode") or file.text("permissionMode")
    if mode not in _MODES:
        problems.append(f"its mode {mode!r} is not used: a file grants nothing")
    excluded = frozenset(_tools(file.fields.get("disallowedTools"), problems, gives=False))
    tools = file.fields.get("tools")
    if tools is not None and "*" not in names_in(tools):
        excluded |= TOOLS - _tools(tools, problems, gives=True)
    if mode == "plan":
        excluded |= _CHANGES
    model = file.text("model")
    return FileAgent(
        name=file.name,
        description=file.text("description"),
        prompt=file.body,
        excluded=excluded,
        model=None if model in ("", "inherit") else model,
        trusted=file.trusted,
        path=file.path,
        commands=_commands(names_in(tools)),
    ), problems


def _commands(tools: Sequence[str]) -> tuple[str, ...]:
    """Return the commands to which `Bash(...)` narrows the tool; none where it is given whole too."""
    named = [each.partition("(")[2].removesuffix(")").strip() for each in tools if each.startswith("Bash(")]
    is_whole = "*" in tools or {"Bash", "execute", "Bash(*)", "Bash()"} & {*tools}
    return () if is_whole else tuple(named)


def _tools(value: object, problems: list[str], *, gives: bool) -> set[str]:
    found: set[str] = set()
    for given in names_in(value):
        name, bracket, _ = given.partition("(")
        known = _NAMES.get(name, (name,) if name in TOOLS else None)
        if known is None:
            problems.append(f"there is no tool {given!r} here")
            continue
        if bracket and not (gives and name == "Bash"):
            meant = (
                "gives the whole tool: each call is asked about as always" if gives else "takes it all away"
            )
            problems.append(f"{given!r} {meant}")
        found.update(known)
    return found


def choose_other_model(name: str, main: BaseChatModel) -> BaseChatModel | None:
    """Return the model that a file of an agent or a command names; `None` for that of the main agent.

    Raises:
        UnknownModel: for a model that cannot be had here.
    """
    if name == "inherit" or name in (model_identifier(main) or ""):
        return None
    if name not in ANTHROPIC_MODELS:
        return resolve_model(name)
    if model_provider(main) != "anthropic":
        raise UnknownModel(f"{name!r} is one of Anthropic's, and the main model is none")
    return resolve_model(f"anthropic:{ANTHROPIC_MODELS[name]}")

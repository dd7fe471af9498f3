"""Subagents from files: what they may do is at most what the main agent may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from deepagents.errors import UnknownModel
from deepagents.middleware.subagents import SubAgent
from deepagents.middleware.tool_exclusion import ToolExclusionMiddleware
from deepagents.models import resolve_model
from deepagents.models.traits import model_identifier, model_provider
from deepagents.tools import FILE_TOOLS
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

    @property
    def needs_trust(self) -> bool:
        """Whether it would send what it reads to another model, by a name that is not of this family."""
        return not self.trusted and self.model is not None and self.model not in ANTHROPIC_MODELS


def find_agents(project: Project) -> tuple[dict[str, FileAgent], list[str]]:
    """Return the subagents of person and project by name, and a sentence for each problem."""
    return find_files(project, "agents", _parse)


def make_subagents(
    agents: Iterable[FileAgent], model: BaseChatModel, middleware: Sequence[Any] = ()
) -> tuple[list[SubAgent], list[str]]:
    """Make specs for `create_deep_agent`; whose model cannot be had works with that of the main agent."""
    specs: list[SubAgent] = []
    notices: list[str] = []
    for agent in agents:
        spec = SubAgent(name=agent.name, description=agent.description)
        if agent.prompt:
            spec["system_prompt"] = agent.prompt
        own = [ToolExclusionMiddleware(excluded=agent.excluded)] if agent.excluded else []
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
    excluded = frozenset(_tools(file.fields.get("disallowedTools"), problems))
    tools = file.fields.get("tools")
    if tools is not None and "*" not in names_in(tools):
        excluded |= TOOLS - _tools(tools, problems)
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
    ), problems


def _tools(value: object, problems: list[str]) -> set[str]:
    found: set[str] = set()
    for given in names_in(value):
        name, bracket, _ = given.partition("(")
        known = _NAMES.get(name, (name,) if name in TOOLS else None)
        if known is None:
            problems.append(f"there is no tool {given!r} here")
            continue
        if bracket:
            problems.append(f"{given!r} gives the whole tool: each call is asked about as always")
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

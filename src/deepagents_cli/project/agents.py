"""Make subagents from files: what they may do is at most what the main agent may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.tools.tool_node import ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage

from deepagents._values import valueclass
from deepagents.errors import UnknownModel
from deepagents.middleware.subagents import SubAgent
from deepagents.middleware.tool_exclusion import ToolExclusionMiddleware
from deepagents.models import resolve_model
from deepagents.models.traits import model_identifier, model_provider
from deepagents_cli.approval.rules import is_of_server, split_plain
from deepagents_cli.project.markdown import MarkdownFile, find_files, names_in
from deepagents_cli.project.project import Project
from deepagents_cli.project.tools import CHANGES, TOOLS, commands_in, is_named, pattern_of, tools_in
from deepagents_cli.values import Mode

ModelHandler: TypeAlias = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
"""Asks a model, behind the middleware that is given it."""
ANTHROPIC_MODELS: Final = {
    "opus": "claude-opus-4-6",
    "sonnet": "claude-sonnet-4-6",
    "haiku": "claude-haiku-4-5",
}
_MODES: Final[Mapping[str, Mode]] = MappingProxyType(
    {
        "": "full",
        "ask": "ask",
        "default": "ask",
        "auto": "auto",
        "acceptEdits": "auto",
        "plan": "plan",
    }
)
"""The modes that a file may name, ours and those of Claude Code: in none is it as free as in none named."""
_TAKEN: Final = ("general-purpose",)


@valueclass
class FileAgent:
    """A subagent; `excluded` are the tools that it does not get."""

    name: str
    description: str
    prompt: str
    excluded: frozenset[str]
    model: str | None
    trusted: bool
    path: Path
    mode: Mode = "full"
    """The most that it may do unasked; the mode of the conversation counts where that is narrower."""
    servers: tuple[str, ...] = ("*",)
    """Patterns of the tools of MCP servers that it has."""
    commands: tuple[str, ...] = ()
    """What its commands begin with, such as `git diff:*`, or are; where this is empty, all."""
    worktree: bool = False
    """Whether each call of it works in a tree of its own, whose changes are merged back at its end."""

    @property
    def needs_trust(self) -> bool:
        """Whether it would send what it reads to another model, by a name that is not of this family."""
        return not self.trusted and self.model is not None and self.model not in ANTHROPIC_MODELS


class RefuseCalls(AgentMiddleware[Any, Any, Any]):
    """Refuses the calls for which `find_refusal` returns why."""

    def __init__(self, find_refusal: Callable[[ToolCallRequest], str | None]) -> None:
        super().__init__()
        self._find_refusal = find_refusal

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Run a call, or refuse it."""
        if (why := self._find_refusal(request)) is None:
            return await handler(request)
        call, text = request.tool_call, f"Error: {why} [permission_denied]"
        return ToolMessage(text, name=call["name"], tool_call_id=call["id"], status="error")


class _OnlyCommands(RefuseCalls):
    """Refuses commands that the file of an agent does not name."""

    def __init__(self, commands: Sequence[str]) -> None:
        super().__init__(self._refuse)
        self._commands = commands

    def allows(self, command: object) -> bool:
        """Return whether a command is named; one that the shell would make more of than words is not."""
        words = split_plain(command) if isinstance(command, str) else None
        return words is not None and any(is_named(words, each) for each in self._commands)

    def asks_about(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return approvals without questions about what is refused anyway."""
        when: Callable[[ToolCallRequest], bool] = asked["execute"]["when"]

        def asks(request: ToolCallRequest) -> bool:
            return self.allows(request.tool_call["args"].get("command")) and when(request)

        return {**asked, "execute": {**asked["execute"], "when": asks}}

    def _refuse(self, request: ToolCallRequest) -> str | None:
        call = request.tool_call
        if call["name"] != "execute" or self.allows(call["args"].get("command")):
            return None
        return f"this agent runs only plain commands of these: {', '.join(self._commands)}"


class _OnlyTools(RefuseCalls):
    """Leaves out the tools of MCP servers that the file of an agent does not name."""

    def __init__(self, patterns: Sequence[str]) -> None:
        super().__init__(self._refuse)
        self._patterns = patterns

    def allows(self, tool: str) -> bool:
        """Return whether the agent has a tool."""
        return not is_of_server(tool) or any(fnmatchcase(tool, each) for each in self._patterns)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: ModelHandler) -> ModelResponse[Any]:
        """Ask the model without the others."""
        kept = [each for each in request.tools if self.allows(str(getattr(each, "name", "")))]
        return await handler(request.override(tools=kept))

    def _refuse(self, request: ToolCallRequest) -> str | None:
        name = request.tool_call["name"]
        return None if self.allows(name) else f"this agent has no tool {name}"


def find_agents(project: Project) -> tuple[dict[str, FileAgent], list[str]]:
    """Return the subagents of person and project by name, and a sentence for each problem."""
    return find_files(project, "agents", _parse)


def make_subagents(
    agents: Iterable[FileAgent],
    model: BaseChatModel,
    middleware: Sequence[Any] = (),
    asked: Callable[[Mode], Mapping[str, Any]] | None = None,
) -> tuple[list[SubAgent], list[str]]:
    """Make specs for `create_deep_agent`; whose model cannot be had works with that of the main agent.

    Args:
        agents: what files describe.
        model: that of the main agent.
        middleware: what all of them have.
        asked: gives the approvals of an agent that may do at most what a mode lets it.
    """
    specs: list[SubAgent] = []
    notices: list[str] = []
    for agent in agents:
        spec = SubAgent(name=agent.name, description=agent.description)
        if agent.prompt:
            spec["system_prompt"] = agent.prompt
        own: list[Any] = [ToolExclusionMiddleware(excluded=agent.excluded)] if agent.excluded else []
        own += [_OnlyTools(agent.servers)] if "*" not in agent.servers else []
        only = _OnlyCommands(agent.commands) if agent.commands else None
        if only:
            own.append(only)
        if asked and (only or agent.mode != "full"):
            config = asked(agent.mode)
            spec["interrupt_on"] = only.asks_about(config) if only and "execute" in config else {**config}
        spec["middleware"] = [*own, *middleware]
        try:
            if agent.model and (chosen := choose_other_model(agent.model, model)) is not None:
                spec["model"] = chosen
        except UnknownModel as error:
            notices.append(f"{agent.path}: it works with the model of the main agent: {error}")
        specs.append(spec)
    return specs, notices


def _parse(file: MarkdownFile) -> tuple[FileAgent, list[str]]:
    if not file.text("description"):
        raise ValueError("it has no 'description' in its front matter, by which the agent is chosen")
    if file.name in _TAKEN:
        raise ValueError(f"the name {file.name!r} is taken; choose another")
    problems: list[str] = []
    mode = file.text("mode") or file.text("permissionMode")
    if mode not in _MODES:
        problems.append(f"its mode {mode!r} is not used: write one of ask, auto and plan")
    excluded = frozenset(tools_in(file.fields.get("disallowedTools"), problems, gives=False))
    tools = file.fields.get("tools")
    if tools is not None and "*" not in names_in(tools):
        excluded |= TOOLS - tools_in(tools, problems, gives=True)
    servers = ("*",) if tools is None or "*" in names_in(tools) else _patterns_in(tools)
    if mode == "plan":
        excluded |= CHANGES
    model = file.text("model")
    return FileAgent(
        name=file.name,
        description=file.text("description"),
        prompt=file.body,
        excluded=excluded,
        model=None if model in ("", "inherit") else model,
        trusted=file.trusted,
        path=file.path,
        mode=_MODES.get(mode, "ask"),
        servers=servers if mode != "plan" else _patterns_in(tools),
        commands=commands_in(tools),
        worktree=_is_true(file.text("worktree"), problems),
    ), problems


def _is_true(given: str, problems: list[str]) -> bool:
    if given not in ("", "true", "false"):
        problems.append(f"its worktree {given!r} is not used: write true or false")
    return given == "true"


def _patterns_in(tools: object) -> tuple[str, ...]:
    return tuple(filter(None, map(pattern_of, names_in(tools))))


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

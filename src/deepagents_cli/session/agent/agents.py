"""Make the agent that a run works with: one directory, one model, approval before every change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver

from deepagents import create_deep_agent
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.errors import ConfigError, UnknownModel
from deepagents.limits import Limits
from deepagents.mcp import MCPServers
from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT, CompiledSubAgent, SubAgent
from deepagents.models import default_model, resolve_model
from deepagents.models.prices import price_of_model
from deepagents.models.traits import is_served_here, model_identifier, model_provider
from deepagents.profiles.harness.harness_profiles import profile_for
from deepagents.tools import web_search
from deepagents.undo import FileHistory
from deepagents_cli.approval.backends import AskedShell, Files, GuardedSandbox, search_path
from deepagents_cli.approval.guarded import OwnFiles, kind_of
from deepagents_cli.approval.policy import Policy
from deepagents_cli.approval.rules import rules_in
from deepagents_cli.errors import CommandError, Exit, complain
from deepagents_cli.project.agents import make_subagents
from deepagents_cli.project.commands import FileCommand, expand
from deepagents_cli.project.hooks import Hooks, ToolHooks, TurnHooks
from deepagents_cli.project.models import LOCAL, MODEL_ARGUMENTS
from deepagents_cli.project.project import Project
from deepagents_cli.project.servers import Server
from deepagents_cli.project.settings import NOTHING_SET, Settings, merge, read_user, user_file
from deepagents_cli.project.settings_file import add_permission, remove_permission
from deepagents_cli.project.setup import Setup
from deepagents_cli.project.state import state_dir
from deepagents_cli.project.worktrees import find_worktree
from deepagents_cli.session.agent.access import Access
from deepagents_cli.session.agent.schema import FitAnswer
from deepagents_cli.values import default_retries
from deepagents_sandbox import LocalSandbox

_NO_MODEL: Final = (
    "There is no model to use: set a provider's key, such as ANTHROPIC_API_KEY, and start again; or name a "
    "server on this machine, local-server:MODEL, in --model or DEEPAGENTS_MODEL; or fetch a small model: "
    "deepagents models pull (`deepagents doctor` lists what each needs)"
)
_SHELL_SEES: Final = ("USER", "SHELL", "VIRTUAL_ENV", "LC_ALL")
"""Variables that commands see in addition to the usual ones; never keys."""


def choose_model(name: str | None, settings: Settings = NOTHING_SET) -> BaseChatModel:
    """Make the model that was named here, in the environment or in the settings, or the default one.

    Raises:
        UnknownModel: when there is none, or its weights are not on this machine.
    """
    named = name or os.environ.get("DEEPAGENTS_MODEL") or settings.model
    if not named:
        try:
            chosen = default_model(resolve_patiently)
        except UnknownModel as error:
            # The library's sentence is for programs too, and long.
            raise UnknownModel(_NO_MODEL) from error
        if is_local(chosen):
            # It is far weaker than what most people expect of an agent.
            complain(
                "no model was named and no provider's key is set, so the small model on this machine is "
                "used; name a better one with --model"
            )
        return chosen
    provider, _, rest = named.partition(":")
    if provider == LOCAL:
        from deepagents_local import DEFAULT_MODEL, need_weights

        need_weights(rest or DEFAULT_MODEL)
    return resolve_patiently(named)


def resolve_patiently(name: str) -> BaseChatModel:
    """Make a model whose package does not ask again itself, unseen: the agent does, and says so."""
    return resolve_model(name, partial(init_chat_model, **MODEL_ARGUMENTS.get(name.partition(":")[0], {})))


def model_label(model: BaseChatModel) -> str:
    """Return a model as `provider:name`, as far as it has them; a server here is `local-server`."""
    if is_served_here(model) and not is_local(model):
        return f"local-server:{model_identifier(model)}"
    return ":".join(filter(None, (model_provider(model), model_identifier(model)))) or type(model).__name__


def is_local(model: BaseChatModel) -> bool:
    """Return whether this is the small model in this process, which needs watching."""
    return model_provider(model) == LOCAL


def refuse_options(model: BaseChatModel, access: Access, limits: Limits | None) -> None:
    """Refuse what cannot be combined with a model.

    Raises:
        CommandError: for unwatched changes or commands of the local model, and for a limit of cost where no
            price was given and the profile of the model tells none.
    """
    problem = None
    if is_local(model) and access.approving:
        problem = (
            f"{access.approving} is not offered to the local model: it sometimes changes what it was not "
            "asked to change. Approve each change, or let it work on a copy"
        )
    elif is_local(model) and access.typed:
        problem = (
            f"{access.typed[0]} is not offered to the local model: it is too weak to be trusted with commands"
        )
    elif limits and limits.money and not (limits.prices or price_of_model(model)):
        problem = (
            f"--max-cost needs --price: nothing says what {model_label(model)} costs; write --price IN/OUT "
            "for a million tokens"
        )
    if problem:
        raise CommandError(problem, Exit.USAGE)


def make_files(directory: Path) -> FilesystemBackend:
    """Confine file tools to a directory, without commands."""
    return Files(root_dir=directory, virtual_mode=True)


def make_shell(directory: Path) -> AskedShell:
    """Confine file tools to a directory, and let commands do all that this user may."""
    made = AskedShell(root_dir=directory, virtual_mode=True, inherit_env=_SHELL_SEES)
    made.name_commands(_new_prefix())
    return made


def make_sandbox(
    directory: Path,
    *,
    network: Sequence[str] = (),
    read: Sequence[Path] = (),
    write: Sequence[Path] = (),
    asks_hosts: bool = False,
) -> GuardedSandbox:
    """Confine file tools and commands to a directory, and to what else was given.

    With `asks_hosts`, the sandbox learns which hosts commands want, also where none was given.

    Raises:
        ConfigError: for what no sandbox can be given.
    """
    hosts = "all" if list(network) == ["all"] else [*network] if network or asks_hosts else "none"
    # So that programs of the directories in `read` are found as this user finds them.
    env = {"PATH": search_path()}
    made = GuardedSandbox(directory, readable=read, writable=write, network=hosts, env=env)
    made.name_commands(_new_prefix())
    return made


def _new_prefix() -> str:
    # Threads go on in other processes, which have commands of their own.
    return f"command-{token_hex(2)}"


def choose_backend(
    project: Project, model: BaseChatModel, access: Access
) -> tuple[FilesystemBackend, str | None]:
    """Make the backend; return too what a person must know of its commands, if anything.

    Raises:
        CommandError: for options of the sandbox where there is none.
    """
    directory = project.directory
    if access.shell:
        approved = access.approving not in (None, "--auto", "--mode auto")
        asked = f"each is approved by {access.approving}" if approved else "each is asked about"
        notice = f"--shell: commands run without the sandbox and can do whatever you can; {asked}"
        return make_shell(directory), notice
    # Too weak to be trusted with commands, even with confined ones.
    if is_local(model):
        return make_files(directory), None
    if problem := find_no_sandbox(directory):
        if access.typed:
            raise CommandError(f"{access.typed[0]} needs the sandbox: {problem}", Exit.USAGE)
        return make_files(directory), f"the agent runs no commands: {problem}"
    plugins = [each.path for each in project.plugins()[0]]
    brought = [*project.memory(), *project.skills(), *plugins]
    further = [each for each in brought if not each.is_relative_to(directory)]
    read = [*access.read, *further]
    # Git keeps a worktree in the repository of the main tree, so its commands write there.
    linked = find_worktree(directory)
    write = [*access.write, *([linked.repository] if linked and linked.path == directory else [])]
    try:
        hosts = access.network
        made = make_sandbox(directory, network=hosts, read=read, write=write, asks_hosts=access.asks_hosts)
        return made, None
    except ConfigError as error:
        raise CommandError(str(error), Exit.USAGE) from error


def make_policy(
    backend: FilesystemBackend,
    project: Project,
    access: Access,
    model: BaseChatModel,
    *,
    yes: bool = False,
    servers: Mapping[str, Server] = MappingProxyType({}),
) -> Policy:
    """Make what decides about calls: with the rules of this person alone, whatever a project brings."""
    path = user_file(project.home)
    kept = merge(read_user(project.home)).permissions
    is_own = {name: each.owner == "person" for name, each in servers.items()}
    policy = Policy(
        backend,
        project.directory,
        access.mode,
        remembered=rules_in(
            kept,
            project.directory,
            confined=isinstance(backend, GuardedSandbox),
            brought=[name for name, own in is_own.items() if not own],
        ),
        servers=is_own,
        network=bool(access.network),
        offline=not (access.network or access.asks_hosts),
        yes=yes,
        watched=is_local(model),
        own=OwnFiles(
            project.home, path, state_dir(), [file for each in servers.values() for file in each.files()]
        ),
        keep=partial(add_permission, path),
        drop=partial(remove_permission, path),
    )
    policy.add_web(access.network)
    return policy


def find_no_sandbox(directory: Path) -> str | None:
    """Return why commands cannot be confined to this directory, and the way out; `None` where they can."""
    if directory.parent == directory:
        return f"the sandbox needs a directory that is not {str(directory)!r}; name one with --dir"
    return LocalSandbox.available()


def make_agent(
    model: BaseChatModel,
    checkpointer: BaseCheckpointSaver[Any],
    policy: Policy,
    limits: Limits | None = None,
    *,
    setup: Setup | None = None,
    notify: Callable[[str], None] = complain,
    schema: dict[str, Any] | None = None,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    around_calls: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    mcp: MCPServers | None = None,
    history: FileHistory | None = None,
    in_trees: Sequence[CompiledSubAgent] = (),
) -> Any:
    """Create the agent; it and its subagents stop at the calls that the policy decides about.

    With a setup, it reads those instructions and skills of the project that its backend reaches, and has the
    subagents and the hooks of its directory; `notify` hears of those that fail. `around_calls` sees the calls
    of subagents too.
    """
    project = setup.project if setup else None
    backend = policy.backend
    if isinstance(backend, GuardedSandbox):
        backend.access_of = policy.access_of
    skills, memory = _as_reached(project.skills(), backend) if project else None, list[Path]()
    for each in project.memory() if project else ():
        if kind_of(each.resolve().as_posix(), writes=False) == "secrets":
            notify(f"{each} is not read: it leads to a file that looks like a secret")
        else:
            memory.append(each)
    around, at_end, made = [*around_calls], list[TurnHooks](), list[Any]()
    if setup and setup.settings.hooks:
        hooks = Hooks(setup.settings.hooks, setup.project, partial(find_shell, policy), notify)
        around.append(ToolHooks(hooks))
        at_end += [TurnHooks(hooks, history, made)] if hooks.of("end_of_turn") else []
    plain = [each for each in setup.agents.values() if not each.worktree] if setup else ()
    subagents, notices = make_subagents(plain, model, around, policy.interrupt_on)
    for notice in notices:
        notify(notice)
    if around:
        # It has none of the middleware of its caller otherwise.
        own: SubAgent = {**GENERAL_PURPOSE_SUBAGENT, "middleware": around, "skills": skills or ()}
        subagents.append(own)
    parts = [project.describe() if project else "", policy.describe()]
    agent = create_deep_agent(
        model,
        tools=_web_tools(policy, model, subagents, setup.settings if setup else NOTHING_SET, notify),
        middleware=[*middleware, *around, *at_end, *([FitAnswer(schema)] if schema else [])],
        response_format=schema,
        subagents=[*subagents, *in_trees],
        backend=backend,
        system_prompt="\n\n".join(filter(None, parts)) or None,
        memory=_as_reached(memory, backend) if project else None,
        skills=skills,
        checkpointer=checkpointer,
        interrupt_on=policy.interrupt_on(),
        permissions=policy.permissions(),
        limits=limits,
        model_retries=default_retries(),
        mcp=mcp,
        file_history=history,
    )
    made.append(agent)
    return agent


def _web_tools(
    policy: Policy,
    model: BaseChatModel,
    subagents: Sequence[SubAgent],
    settings: Settings,
    notify: Callable[[str], None],
) -> list[BaseTool]:
    """Return the tools for the web that an agent and its subagents have."""
    if policy.web is None or policy.watched:
        # Pages of others may hold orders, which a weak model obeys.
        return []
    if not settings.web_search:
        return [policy.web]
    models = [model, *(each["model"] for each in subagents if "model" in each)]
    # A server on this machine that speaks a provider's protocol has not what the provider has.
    without = [
        model_label(each)
        for each in models
        if isinstance(each, BaseChatModel) and (is_served_here(each) or profile_for(each).web_search is None)
    ]
    if without:
        notify(f"web_search has no effect: the provider of {without[0]} does not search the web itself")
    return [policy.web] if without else [policy.web, web_search()]


def find_shell(policy: Policy) -> Any:
    """Return what runs hooks and the shell lines of commands, which run without a question.

    It is a sandbox, also where the agent's own commands run without one: the agent may have changed what
    these lines run. Where all commands run unasked, it is the shell of the agent, and where there is no
    sandbox, that of this person.
    """
    backend = policy.backend
    runs_unasked = policy.confined or policy.mode == "full" or policy.yes
    if runs_unasked and backend.capabilities().execute:
        return backend
    if find_no_sandbox(backend.cwd):
        return make_shell(backend.cwd)
    made = make_sandbox(backend.cwd)
    made.access_of = policy.access_of
    return made


def find_command(text: str, setup: Setup) -> tuple[FileCommand | None, str]:
    """Return the command from a file with which a text begins, if it does, and what stands behind it."""
    name, _, arguments = text.removeprefix("/").partition(" ")
    return setup.commands.get(name) if text.startswith("/") else None, arguments


async def expand_command(text: str, setup: Setup, policy: Policy) -> str:
    """Return what is sent for a text: that of a command from a file, where it begins with one.

    Raises:
        CommandError: when it cannot be put together.
    """
    command, arguments = find_command(text, setup)
    if command is None:
        return text

    async def run(line: str) -> str:
        return (await find_shell(policy).aexecute(line)).output.strip()

    return await expand(command, arguments.strip(), setup.project.directory, run)


def _as_reached(paths: Iterable[Path], backend: FilesystemBackend) -> list[str]:
    """Return paths as the backend names them, as far as it reaches them."""
    if isinstance(backend, LocalSandbox):
        return [*map(str, paths)]
    inside = (each for each in paths if each.is_relative_to(backend.cwd))
    return [f"/{each.relative_to(backend.cwd).as_posix()}" for each in inside]

"""Make the agent that a run works with: one directory, one model, approval before every change."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver

from deepagents import create_deep_agent
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.local_sandbox import LocalSandbox
from deepagents.backends.local_shell import LocalShellBackend
from deepagents.errors import BackendError
from deepagents.limits import Limits, price_of_profile
from deepagents.models import default_model, resolve_model
from deepagents.models.traits import model_identifier, model_provider
from deepagents_cli.approval import GATED
from deepagents_cli.diffs import Read
from deepagents_cli.errors import CommandError, Exit, complain
from deepagents_cli.project import Project

LOCAL: Final = "local"
"""The provider of models in this process."""
_SHELL_SEES: Final = ("USER", "SHELL", "VIRTUAL_ENV", "LC_ALL")
"""Variables that commands see in addition to the usual ones; never keys."""


def choose_model(name: str | None) -> BaseChatModel:
    """Make the model that was named here or in the environment, or the default one.

    Raises:
        UnknownModel: when there is none, or its weights are not on this machine.
    """
    named = name or os.environ.get("DEEPAGENTS_MODEL")
    if not named:
        chosen = default_model()
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
    return resolve_model(named)


def model_label(model: BaseChatModel) -> str:
    """Return a model as `provider:name`, as far as it has them; a server here is `local-server`."""
    address = urlsplit(str(getattr(model, "openai_api_base", None) or ""))
    if address.hostname and (address.hostname == "localhost" or _is_loopback(address.hostname)):
        return f"local-server:{model_identifier(model)}"
    return ":".join(filter(None, (model_provider(model), model_identifier(model)))) or type(model).__name__


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_local(model: BaseChatModel) -> bool:
    """Return whether this is the small model in this process, which needs watching."""
    return model_provider(model) == LOCAL


def refuse_options(
    model: BaseChatModel, *, approve_all: bool, for_commands: Sequence[str], limits: Limits | None
) -> None:
    """Refuse what cannot be combined with a model; `for_commands` are the typed options about commands.

    Raises:
        CommandError: for unwatched changes or commands of the local model, and for a limit of cost where no
            price was given and the profile of the model tells none.
    """
    problem = None
    if is_local(model) and approve_all:
        problem = (
            "--yes is not offered to the local model: it sometimes changes what it was not asked to change. "
            "Approve each change, or let it work on a copy"
        )
    elif is_local(model) and for_commands:
        problem = (
            f"{for_commands[0]} is not offered to the local model: it is too weak to be trusted with commands"
        )
    elif limits and limits.money and not (limits.prices or price_of_profile(getattr(model, "profile", None))):
        problem = (
            f"--max-cost needs --price: nothing says what {model_label(model)} costs; write --price IN/OUT "
            "for a million tokens"
        )
    if problem:
        raise CommandError(problem, Exit.USAGE)


def make_files(directory: Path) -> FilesystemBackend:
    """Confine file tools to a directory, without commands."""
    return FilesystemBackend(root_dir=directory, virtual_mode=True)


def make_shell(directory: Path) -> LocalShellBackend:
    """Confine file tools to a directory, and let commands do all that this user may."""
    return LocalShellBackend(root_dir=directory, virtual_mode=True, inherit_env=_SHELL_SEES)


def make_sandbox(
    directory: Path, *, network: Sequence[str] = (), read: Sequence[Path] = (), write: Sequence[Path] = ()
) -> LocalSandbox:
    """Confine file tools and commands to a directory, and to what else was given.

    Raises:
        ConfigError: for what no sandbox can be given.
    """
    hosts = "all" if list(network) == ["all"] else list(network) or "none"
    # So that programs of the directories in `read` are found as this user finds them.
    env = {"PATH": os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath)))}
    return LocalSandbox(directory, readable=read, writable=write, network=hosts, env=env)


def find_no_sandbox(directory: Path) -> str | None:
    """Return why commands cannot be confined to this directory, and the way out; `None` where they can."""
    if directory.parent == directory:
        return f"the sandbox needs a directory that is not {str(directory)!r}; name one with --dir"
    return LocalSandbox.available()


def make_agent(
    model: BaseChatModel,
    backend: FilesystemBackend,
    checkpointer: BaseCheckpointSaver[Any],
    limits: Limits | None = None,
    *,
    gated: Iterable[str] = GATED,
    project: Project | None = None,
) -> Any:
    """Create the agent; its subagents ask for approval as it does, before they call what is `gated`.

    It reads those instructions and skills of the project that its backend reaches.
    """

    def reached(paths: Iterable[Path]) -> list[str]:
        return list(filter(None, (_as_reached(each, backend) for each in paths)))

    return create_deep_agent(
        model,
        backend=backend,
        system_prompt=project.describe() if project else None,
        memory=reached(project.memory()) if project else None,
        skills=reached(project.skills()) if project else None,
        checkpointer=checkpointer,
        interrupt_on=dict.fromkeys(gated, True),
        limits=limits,
    )


def _as_reached(path: Path, backend: FilesystemBackend) -> str:
    """Return a path as the backend names it; `""` for what it does not reach."""
    if isinstance(backend, LocalSandbox):
        return str(path)
    return f"/{path.relative_to(backend.cwd).as_posix()}" if path.is_relative_to(backend.cwd) else ""


def reader(backend: FilesystemBackend) -> Read:
    """Read files as the agent sees them, for diffs."""
    paths = backend.capabilities().command_paths

    def read(path: str) -> str | None:
        try:
            (found,) = backend.download_files([paths.own(path)])
        except BackendError:
            return None
        return None if found.content is None else found.content.decode("utf-8", "replace")

    return read

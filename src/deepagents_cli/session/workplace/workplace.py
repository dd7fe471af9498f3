"""Hold what stays while threads come and go: the directory, the model, the backend, and the files on disk."""

from __future__ import annotations

import os
from argparse import Namespace
from asyncio import AbstractEventLoop, Task, create_task, get_running_loop, to_thread
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from deepagents.backends.filesystem import FilesystemBackend
from deepagents.errors import ConfigError, UnknownModel
from deepagents.limits import Limits
from deepagents.middleware import EditCheckMiddleware
from deepagents.middleware.finish_check import FinishCheckMiddleware
from deepagents.middleware.subagents import CompiledSubAgent
from deepagents.undo import FileHistory
from deepagents_cli.approval.backends import AskedShell, GuardedSandbox
from deepagents_cli.approval.policy import Policy
from deepagents_cli.errors import CommandError
from deepagents_cli.project.agents import choose_other_model
from deepagents_cli.project.models import find_models
from deepagents_cli.project.project import Project
from deepagents_cli.project.servers import read_given, usable
from deepagents_cli.project.settings import user_file
from deepagents_cli.project.settings_file import add_trusted
from deepagents_cli.project.setup import describe_untrusted, load_setup
from deepagents_cli.project.state import state_dir, undo_dir
from deepagents_cli.protocol import Open
from deepagents_cli.session.agent.access import Access, limits_of
from deepagents_cli.session.agent.agents import (
    choose_backend,
    choose_model,
    find_no_sandbox,
    find_shell,
    is_local,
    make_agent,
    make_policy,
    make_sandbox,
    model_label,
    refuse_options,
)
from deepagents_cli.session.agent.effort import set_effort
from deepagents_cli.session.threads.driver import Saver, open_saver
from deepagents_cli.session.threads.record import Record
from deepagents_cli.session.threads.sessions import Sessions
from deepagents_cli.session.threads.usage import UsageCounter
from deepagents_cli.session.workplace.confined import access_for
from deepagents_cli.session.workplace.editor import Editor
from deepagents_cli.session.workplace.own_line import OwnLine
from deepagents_cli.session.workplace.repository import Repository
from deepagents_cli.session.workplace.servers import Servers
from deepagents_cli.session.workplace.trees import TreeAgents

_NO_MODEL: Final = "no model"
_PATIENCE: Final = 10.0
"""Seconds that a task waits at its end for checks, where nobody reads the answer and types on."""


class Workplace:
    """Everything that an agent of this conversation is made of.

    Raises:
        CommandError: for what the options ask for and cannot be had.
    """

    def __init__(
        self,
        opened: Open,
        notify: Callable[[str], None],
        changed: Callable[[], None],
        editor: Editor | None = None,
    ) -> None:
        self.notify = notify
        self.editor = editor
        directory = Path(opened.directory).expanduser().resolve()
        if not directory.is_dir():
            raise CommandError(f"{opened.directory!r} is not a directory")
        self.options = Namespace(**opened.options, mode=opened.mode, price=opened.price)
        self.directory = directory
        self.setup = load_setup(Project(directory, Path.home()))
        self.named = opened.model
        """The model that was asked for, if one was."""
        self.sessions = editor.sessions if editor else Sessions(state_dir())
        self.record = Record(self.sessions.path)
        self.history: FileHistory | None = None
        """What files held before; `None` where the person has turned that off."""
        self.usage = UsageCounter(self.record, changed)
        self.repository = Repository()
        self.own_line: OwnLine | None = None
        self._changed = changed
        self.proposed: dict[str, Callable[[str], Path]] = {}
        """What writes the files that were shown before, by their drafts."""
        self.notices: list[str] = []
        self.servers = Servers({}, notify)
        self.saver: Saver | None = None
        self._checks_end = False
        self._edit_checks: EditCheckMiddleware | None = None
        self._looking: Task[None] | None = None
        self._uncovered: str | None = None
        self._resources = ExitStack()
        self._resources.callback(self.record.close)
        self._policy: Policy | None = None
        self._others: dict[str, BaseChatModel | None] = {}
        self.effort: str | None = None
        """How much the model reasons, where that was chosen."""

    async def open(self, model: BaseChatModel | None = None, *, trust: bool = False) -> None:
        """Open the file of the checkpoints, and make the model and its backend.

        Args:
            model: the model of a single task; a conversation finds its own, and asks about hosts.
            trust: whether what the directory brings is used from now on.
        """
        if trust:
            add_trusted(user_file(Path.home()), self.setup.trust())
            self.setup = load_setup(self.project)
        settings = self.setup.settings
        # In a conversation a person reads the answer, and says so where work is left.
        self._checks_end = model is not None
        self.access = replace(Access.of(self.options, settings), asks_hosts=model is None)
        self.limits: Limits | None = limits_of(self.options, settings.limits)
        if settings.undo:
            self.history = FileHistory(
                undo_dir(), report=partial(_call_in, get_running_loop(), self._say_trouble)
            )
            self._resources.callback(self.history.close)
        self.servers = self._find_servers()
        self.servers.begin()
        self._set_model(model or await self._find_model())
        self.effort = self.options.effort
        if self.effort and not isinstance(self.model, NoModel):
            self.choose_effort(self.effort)
        # An editor has no place for it, and a task ends at once.
        if settings.status_line and not (self._checks_end or self.editor):
            find = partial(find_shell, self.policy)
            self.own_line = OwnLine(settings.status_line, find, self._changed, self.notify)
        self._edit_checks = self._make_edit_checks()
        self.saver = await open_saver(self.sessions.path)

    def _make_edit_checks(self) -> EditCheckMiddleware | None:
        """Make what checks files after edits: in a sandbox, as it runs unasked and the agent may write it."""
        checks, policy = self.setup.settings.checks, self.policy
        if not checks:
            return None
        try:
            if problem := find_no_sandbox(self.directory):
                raise ConfigError(problem)
            shell = make_sandbox(self.directory, read=self.access.read, write=self.access.write)
        except ConfigError as error:
            self.notify(f"the checks after edits are off: {error}")
            return None
        # Of commands that name nothing: a formatter is given names of files, which the agent chose.
        shell.access_of = lambda _: policy.access_of("")
        patience = _PATIENCE if self._checks_end else 0
        return EditCheckMiddleware(checks, backend=shell, patience=patience, warn=self.notify)

    def _find_servers(self) -> Servers:
        given = [server for path in self.options.mcp for server in read_given(Path(path))]
        found, problems = usable([*(self.editor.servers if self.editor else ()), *given])
        for problem in problems:
            self.notify(problem)
        found = {**({} if self.options.no_mcp else self.setup.servers), **found}
        access = access_for(self.directory, self.access.network, self.access.read, self.access.write)
        return Servers(found, self.notify, self.setup.settings.confined_servers, access)

    async def _find_model(self) -> BaseChatModel:
        settings = self.setup.settings
        try:
            return choose_model(self.named, settings)
        except UnknownModel as error:
            named = bool(self.named or settings.model or os.environ.get("DEEPAGENTS_MODEL"))
            return NoModel(missing=await to_thread(_say_missing, error, named=named))

    @property
    def project(self) -> Project:
        """The directory, and what lies in it."""
        return self.setup.project

    async def close(self) -> None:
        """End what runs in the background, and close the files."""
        if self._looking is not None:
            self._looking.cancel()
        await self.servers.close()
        await self.usage.finish()
        await self.repository.close()
        if self.own_line is not None:
            await self.own_line.close()
        try:
            if self.saver is not None:
                # Closing the record blocks, and may wait for a change that ends only if something else runs.
                await self.saver.wait_for_changes()
                await self.saver.conn.close()
        finally:
            self._resources.close()

    @property
    def label(self) -> str:
        """The model's name, for people."""
        return _NO_MODEL if isinstance(self.model, NoModel) else model_label(self.model)

    @property
    def policy(self) -> Policy:
        """What decides about calls."""
        assert self._policy is not None
        return self._policy

    def choose_model(self, name: str) -> None:
        """Change the model; agents that are made from now on have it."""
        effort = self.effort
        self._set_model(choose_model(name, self.setup.settings))
        self.named = name
        self.effort = None
        if effort:
            self._take_effort(effort)

    def choose_effort(self, level: str | None) -> None:
        """Change how much the model reasons, or leave that to its provider; for agents made from now on.

        Raises:
            CommandError: for a level that the model does not have.
        """
        self.model = set_effort(self._plain_model, level, self.label) if level else self._plain_model
        self.effort = level
        self._others.clear()

    async def recall_effort(self, thread: str) -> None:
        """Take the effort that was chosen in a thread, as far as this model has it."""
        if not self.options.effort and (level := await self.record.effort(thread)):
            self._take_effort(level)

    def model_for(self, name: str) -> BaseChatModel | None:
        """Return the model that a command from a file names; `None` where the one of the agent answers."""
        if name not in self._others:
            try:
                self._others[name] = other = choose_other_model(name, self.model)
                # Such a model is watched, and has no commands; the agent may have both otherwise.
                if other is not None and is_local(other) and not is_local(self.model):
                    raise CommandError(f"{name} is too weak for the tools of this agent")
                if other is not None:
                    refuse_options(other, self.access, self.limits)
            except (UnknownModel, CommandError) as error:
                self._others[name] = None
                self.notify(f"{self.label} answers: {error}")
        return self._others[name]

    def make_agent(
        self,
        steering: AgentMiddleware[Any, Any, Any],
        *around_calls: AgentMiddleware[Any, Any, Any],
        schema: dict[str, Any] | None = None,
    ) -> Any:
        """Make the agent; `around_calls` sees those of its subagents too."""
        assert self.saver is not None, "open() comes first"
        # As commands, they are not for a model that is watched.
        checks = [self._edit_checks] if self._edit_checks and not self.policy.watched else []
        return make_agent(
            self.model,
            self.saver,
            self.policy,
            self.limits,
            setup=self.setup,
            notify=self.notify,
            middleware=[steering, *checks, *([FinishCheckMiddleware()] if self._checks_end else [])],
            around_calls=around_calls,
            schema=schema,
            mcp=self.servers.opened,
            in_trees=self._make_tree_agents(),
            history=self.history,
        )

    def _make_tree_agents(self) -> list[CompiledSubAgent]:
        # One that needs watching works where each of its changes is seen.
        if is_local(self.model):
            return []

        def open_backend(path: Path) -> FilesystemBackend:
            return choose_backend(Project(path, Path.home()), self.model, replace(self.access, shell=False))[
                0
            ]

        agents = self.setup.agents.values()
        return TreeAgents(self.policy, open_backend, self.notify).make(agents, self.project, self.model)

    def _take_effort(self, level: str) -> None:
        try:
            self.choose_effort(level)
        except CommandError as error:
            self.notify(f"The effort is left to the provider: {error}.")

    def begin_looking(self, agent: Any) -> None:
        """Look at the files, while the agent already works, and say what undo does not cover, once."""
        if self.history is not None and (self._looking is None or self._looking.done()):
            self._looking = create_task(self._say_coverage(agent, self.history))

    async def _say_coverage(self, agent: Any, history: FileHistory) -> None:
        found = await history.acoverage(agent)
        known, self._uncovered = self._uncovered, found.why
        if found.why and found.why != known:
            what = "What commands change" if found.files else "What is changed"
            self.notify(f"{what} cannot be taken back here: {found.why}.")

    def _say_trouble(self, why: str | None) -> None:
        self._uncovered = why
        if why is None:
            self.notify("What is changed from now on can be taken back again.")
        else:
            self.notify(f"What is changed cannot be taken back here: {why}.")

    def _set_model(self, model: BaseChatModel) -> None:
        missing = model.missing if isinstance(model, NoModel) else None
        if not missing:
            refuse_options(model, self.access, self.limits)
        backend, notice = choose_backend(self.project, model, self.access)
        self.notices = [*filter(None, [missing, notice, *self.setup.notices, describe_untrusted(self.setup)])]
        self.model = self._plain_model = model
        self._others.clear()
        known = self._policy
        # Commands in the background belong to the backend, so it stays where it would be the same.
        if known is not None and type(backend) is type(known.backend):
            backend = known.backend
        else:
            self._prepare(backend)
        if known is None:
            self._policy = make_policy(
                backend, self.project, self.access, model, yes=self.options.yes, servers=self.servers.found
            )
        else:
            # The same policy, with the mode and the rules of this session.
            known.backend, known.watched = backend, is_local(model)

    def _prepare(self, backend: FilesystemBackend) -> None:
        if isinstance(backend, AbstractContextManager):
            self._resources.enter_context(backend)
        # A server in the sandbox could lead an editor to any file, as a command could.
        if self.editor and self.editor.files and not self.servers.has_confined:
            backend.use_buffers(self.editor.files)
            if isinstance(backend, GuardedSandbox):
                backend.use_gate(self.editor.files.gate)
        if self.editor and isinstance(backend, AskedShell):
            # An editor's terminal has no sandbox.
            backend.terminals = self.editor.terminals


def _call_in(loop: AbstractEventLoop, call: Callable[[str | None], None], given: str | None) -> None:
    """Call something in an event loop, from any thread."""
    # At the end of a session the loop is closed, and nobody is told any more.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, given)


class NoModel(BaseChatModel):
    """Stands in where no model can be used yet, so that a conversation opens and `/model` picks one."""

    missing: str

    @property
    def _llm_type(self) -> str:
        return _NO_MODEL

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Take tools that nothing will call."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise CommandError(self.missing)


def _say_missing(error: Exception, *, named: bool) -> str:
    """Say why there is no model, and what to do about it here."""
    if not named and any(each.usable for each in find_models()):
        return "No model is chosen yet. Choose one with /model."
    way = "Choose a model with /model." if named else "Then choose it with /model."
    return f"{str(error).rstrip('.')}. {way}"

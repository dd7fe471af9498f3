"""Make the backends of the command line: what a command finds follows from what a policy let through."""

from __future__ import annotations

import os
import re
from asyncio import to_thread
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from shutil import which
from threading import Condition
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias

from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filesystem import Buffers, FilesystemBackend
from deepagents.backends.local_shell import LocalShellBackend
from deepagents.backends.local_shell.process import Control, Ended
from deepagents.backends.protocol import OnOutput
from deepagents.backends.results import ExecuteResponse
from deepagents.errors import BackendError
from deepagents.permissions import CommandAccess, Rules
from deepagents_sandbox import LocalSandbox

ARTIFACTS: Final = ".deepagents/artifacts"
"""Where large results and the archive lie, below the directory: commands find them there too."""

Terminals: TypeAlias = Callable[[str, float, Control], Ended | None]
"""Run a command elsewhere, for so many seconds or until it is cancelled; `None` where that cannot be."""
_SECONDS: Final = 10
"""How long it may take to look up a program."""


async def run_with_input(backend: Any, command: str, given: str, timeout: int) -> ExecuteResponse:
    """Run a command with this line on its standard input; what it may do follows from the command alone."""
    # JSON on one line cannot hold the word that ends it.
    line = f"{{\n{command}\n}} <<'END_OF_INPUT'\n{given}\nEND_OF_INPUT"
    if isinstance(backend, GuardedSandbox):
        # The line may hold what a model wrote, and names there give no rights.
        return await backend.run_with(backend.access_of(command), line, timeout=timeout)
    return await backend.aexecute(line, timeout=timeout)


def search_path() -> str:
    """Return where commands look for programs: where this person does, and where every system has some."""
    return os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath)))


def printed_by(ended: ExecuteResponse) -> str:
    """Return what a command has printed, without the line about its end, which is for a model."""
    output = re.sub(rf"^Exit code: {ended.exit_code}(?: \(.*\))?\Z", "", ended.output, flags=re.MULTILINE)
    return output.removeprefix("<no output>").strip("\n")


async def run_for_person(
    backend: Any, command: str, access: CommandAccess, timeout: int, on_output: OnOutput
) -> ExecuteResponse:
    """Run a command that a person typed; in a sandbox, with this access; cancelling this ends it."""
    if isinstance(backend, GuardedSandbox):
        return await backend.run_with(access, command, timeout=timeout, on_output=on_output)
    return await backend.aexecute(command, timeout=timeout, on_output=on_output)


class Files(FilesystemBackend):
    """Files of a directory, for an agent without commands."""

    artifacts_folder = ARTIFACTS


class Started(NamedTuple):
    """A command in the background, when it began, and whether it did so without any rules."""

    command: str
    is_free: bool
    at: float


class Gate:
    """Lets a program open files by their names only while no confined command of a process runs.

    A command could put a link in the way between the check of a path and its use, and so lead that program,
    which is not confined, to any file of this person.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._commands = self._uses = 0
        self._in_background: list[Callable[[], bool]] = []

    def watch(self, is_running: Callable[[], bool]) -> None:
        """Ask this too whether a command runs."""
        self._in_background.append(is_running)

    @contextmanager
    def command(self) -> Generator[None]:
        """Keep that program from files while a command runs; it ends what it has begun first."""
        with self._changed:
            self._changed.wait_for(lambda: not self._uses)
            self._commands += 1
        try:
            yield
        finally:
            with self._changed:
                self._commands -= 1

    @contextmanager
    def use(self) -> Generator[bool]:
        """Yield whether that program may open files, and let no command begin meanwhile."""
        with self._changed:
            is_quiet = not self._commands and not any(runs() for runs in self._in_background)
            self._uses += is_quiet
        try:
            yield is_quiet
        finally:
            with self._changed:
                self._uses -= is_quiet
                self._changed.notify_all()


class GatedBuffers(Buffers):
    """Files as another program shows them, and as they are on disk while commands run."""

    def __init__(self, buffers: Buffers, gate: Gate) -> None:
        self._buffers = buffers
        self.gate = gate

    def read(self, path: Path) -> str | None:
        """Return the text that is shown of a file."""
        with self.gate.use() as is_quiet:
            return self._buffers.read(path) if is_quiet else None

    def write(self, path: Path, text: str) -> bool:
        """Make text the content of a file."""
        with self.gate.use() as is_quiet:
            return is_quiet and self._buffers.write(path, text)


class GuardedSandbox(LocalSandbox):
    """A sandbox in which each command finds what `access_of` its text allows.

    The rules of the agent would make every command wait as soon as any file waits. Here a command that names
    no guarded file runs without all of them, so it need not. What is protected, file tools may change: each
    such call asks a person, who sees what it would write.
    """

    protects_from_tools = False
    artifacts_folder = ARTIFACTS
    access_of: Callable[[str], CommandAccess | None]
    reaches: Callable[[str], bool]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.access_of, self.reaches = (lambda _: None), (lambda _: False)
        self.started: dict[str, Started] = {}
        """The commands that were started in the background, by their ids."""
        self._gate: Gate | None = None

    def use_gate(self, gate: Gate) -> None:
        """Keep apart from the commands what opens files outside of the sandbox."""
        self._gate = gate
        gate.watch(self._runs_in_background)

    def _runs_in_background(self) -> bool:
        for command_id in [*self.started]:
            with suppress(BackendError):
                if self.poll_command(command_id).exit_code is None:
                    return True
        return False

    def may_reach(self, host: str) -> bool:
        """Return whether the policy lets commands reach a host that was not named at the start."""
        return self.reaches(host)

    def check_change(self, path: str) -> None:
        """Check that file tools may change what is at a path, links resolved.

        Raises:
            BackendError: `permission_denied`, for what was given to be read.
        """
        if not self._find_may_change()(path):
            raise BackendError("permission_denied", f"'{path}' was given to be read, and not to be changed")

    def check_program(self, name: str | None) -> None:
        """Check that commands find a program, if one is named.

        Raises:
            BackendError: `file_not_found`, where the shell of the sandbox finds none.
        """
        if name is None:
            return
        looked_up = f"command -v -- {quote(name)}"
        ended = super().execute(looked_up, timeout=_SECONDS, allowed=CommandAccess(Rules(), False))
        # What dash and bash end with; a sandbox that does not start says so when the command runs.
        if ended.exit_code not in (1, 127):
            return
        outside = which(name)
        where = f"; {outside} is not in the sandbox (--read would give its directory)" if outside else ""
        raise BackendError("file_not_found", f"there is no program {name!r} for commands{where}")

    @property
    def given(self) -> tuple[str, ...]:
        """The directories in which commands find files."""
        return super().capabilities().ruled

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do; rules about commands are the policy's."""
        return replace(super().capabilities(path), ruled=())

    def execute(
        self,
        command: str,
        *,
        timeout: int | None = None,
        on_output: OnOutput | None = None,
        allowed: CommandAccess | None = None,
    ) -> ExecuteResponse:
        """Run a command."""
        access = self.access_of(command)
        return super().execute(command, timeout=timeout, on_output=on_output, allowed=access)

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,
        on_output: OnOutput | None = None,
        allowed: CommandAccess | None = None,
    ) -> ExecuteResponse:
        """Run a command; cancelling this ends it."""
        return await self.run_with(self.access_of(command), command, timeout=timeout, on_output=on_output)

    async def run_with(
        self,
        access: CommandAccess | None,
        command: str,
        *,
        timeout: int | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecuteResponse:
        """Run a command with these rights; cancelling this ends it."""
        with ExitStack() as running:
            if self._gate is not None:
                # What it waits for needs the loop.
                await to_thread(running.enter_context, self._gate.command())
            return await super().aexecute(command, timeout=timeout, on_output=on_output, allowed=access)

    def start_command(
        self, command: str, *, timeout: int | None = None, allowed: CommandAccess | None = None
    ) -> str:
        """Start a command in the background, and return its id."""
        access = self.access_of(command)
        with self._gate.command() if self._gate else nullcontext():
            command_id = super().start_command(command, timeout=timeout, allowed=access)
            self.started[command_id] = Started(command, access is not None and not access.rules, monotonic())
        return command_id


class AskedShell(LocalShellBackend):
    """A shell without a sandbox, for an agent whose policy decides about each command.

    Rules cannot hold in its commands. They hold for the file tools, and a person who lets a command run lets
    it do whatever it does. Those that are waited for run in `terminals`, where an editor has some.
    """

    artifacts_folder = ARTIFACTS
    terminals: Terminals | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.started: dict[str, Started] = {}
        """The commands that were started in the background, by their ids."""

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do."""
        return replace(super().capabilities(path), exposed=False)

    def _start(
        self, command: str, seconds: float, control: Control, *, leaves_nothing: bool = False
    ) -> Ended:
        ended = (
            None if leaves_nothing or self.terminals is None else self.terminals(command, seconds, control)
        )
        return ended or super()._start(command, seconds, control, leaves_nothing=leaves_nothing)

    def start_command(self, command: str, *, timeout: int | None = None) -> str:
        """Start a command in the background, and return its id."""
        command_id = super().start_command(command, timeout=timeout)
        self.started[command_id] = Started(command, is_free=True, at=monotonic())
        return command_id

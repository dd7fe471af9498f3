"""Make the backends of the command line: what a command finds follows from what a policy let through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from shlex import quote
from shutil import which
from typing import Any, Final, NamedTuple

from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.local_shell import LocalShellBackend
from deepagents.backends.protocol import OnOutput
from deepagents.backends.results import ExecuteResponse
from deepagents.errors import BackendError
from deepagents.permissions import CommandAccess, Rules
from deepagents_sandbox import LocalSandbox

ARTIFACTS: Final = ".deepagents/artifacts"
"""Where large results and the archive lie, below the directory: commands find them there too."""

_SECONDS: Final = 10
"""How long it may take to look up a program."""


async def run_with_input(backend: Any, command: str, given: str, timeout: int) -> ExecuteResponse:
    """Run a command with this line on its standard input; what it may do follows from the command alone."""
    # JSON on one line cannot hold the word that ends it.
    line = f"{{\n{command}\n}} <<'END_OF_INPUT'\n{given}\nEND_OF_INPUT"
    if isinstance(backend, GuardedSandbox):
        # The line may hold what a model wrote, and names there give no rights.
        access = backend.access_of(command)
        return await LocalSandbox.aexecute(backend, line, timeout=timeout, allowed=access)
    return await backend.aexecute(line, timeout=timeout)


class Files(FilesystemBackend):
    """Files of a directory, for an agent without commands."""

    artifacts_folder = ARTIFACTS


class Started(NamedTuple):
    """A command in the background, and whether it began without any rules."""

    command: str
    is_free: bool


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
        access = self.access_of(command)
        return await super().aexecute(command, timeout=timeout, on_output=on_output, allowed=access)

    def start_command(
        self, command: str, *, timeout: int | None = None, allowed: CommandAccess | None = None
    ) -> str:
        """Start a command in the background, and return its id."""
        access = self.access_of(command)
        command_id = super().start_command(command, timeout=timeout, allowed=access)
        self.started[command_id] = Started(command, is_free=access is not None and not access.rules)
        return command_id


class AskedShell(LocalShellBackend):
    """A shell without a sandbox, for an agent whose policy decides about each command.

    Rules cannot hold in its commands. They hold for the file tools, and a person who lets a command run lets
    it do whatever it does.
    """

    artifacts_folder = ARTIFACTS

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do."""
        return replace(super().capabilities(path), exposed=False)

"""Run commands in a directory on this machine."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.local_shell.background import Background, BackgroundCommands
from deepagents.backends.local_shell.commands import (
    DEFAULT_EXECUTE_TIMEOUT,
    Commands,
    check_variables,
    positive,
)
from deepagents.backends.local_shell.process import Control, Ended, run_command
from deepagents.backends.protocol import OnOutput
from deepagents.backends.results import ExecuteResponse
from deepagents.errors import ConfigError

# What most programs need to start at all; nothing that holds a key.
_ALWAYS_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")


class LocalShellBackend(FilesystemBackend, BackgroundCommands):
    """Files below a directory, and commands run there by this machine's shell with this user's rights.

    `virtual_mode` confines the file operations, never the commands: use this where the model and the task are
    trusted, or where a person approves each command. Linux and macOS only. Commands see `env`, the variables
    `PATH`, `HOME`, `LANG` and `TMPDIR` of this process, and those that `inherit_env` names (`True`: all).
    Commands that an agent runs in the background end with its run, unless this is used as a context manager.

    Raises:
        ValueError: when `timeout` is not positive.
    """

    def __init__(
        self,
        root_dir: str | Path | None = None,
        *,
        virtual_mode: bool | None = True,
        timeout: int = DEFAULT_EXECUTE_TIMEOUT,
        max_output_bytes: int = 100_000,
        env: Mapping[str, str] | None = None,
        inherit_env: bool | Collection[str] = False,
    ) -> None:
        if sys.platform == "win32":
            raise ConfigError("LocalShellBackend needs Linux or macOS. Use FilesystemBackend, or a sandbox.")
        super().__init__(root_dir, virtual_mode)
        # Packages that build on this class read these two, and may set them.
        self._default_timeout = positive(timeout)
        self._max_output_bytes = max_output_bytes
        self._background = Background(partial(self._start, leaves_nothing=True), max_output_bytes)
        self._env = {**_inherit(inherit_env), **check_variables(env)}
        self._id = f"local-{uuid.uuid4().hex[:8]}"

    @property
    def id(self) -> str:
        """Return a name that is unique to this backend."""
        return self._id

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do: all that a directory can, and `execute`."""
        directory = self.cwd.as_posix()
        return replace(
            super().capabilities(path),
            execute=True,
            exposed=True,
            background=True,
            keeps_commands=self._is_kept,
            command_root=directory if self.virtual_mode else "/",
            working_directory=directory,
        )

    def execute(
        self, command: str, *, timeout: int | None = None, on_output: OnOutput | None = None
    ) -> ExecuteResponse:
        """Run a shell command in the root directory, for at most `timeout` seconds.

        Raises:
            ValueError: when `timeout` is not positive.
        """
        return self._commands.run(command, timeout, on_output=on_output)

    async def aexecute(
        self, command: str, *, timeout: int | None = None, on_output: OnOutput | None = None
    ) -> ExecuteResponse:
        """Run a shell command in the root directory; cancelling this ends the command."""
        return await self._commands.arun(command, timeout, on_output=on_output)

    @property
    def _commands(self) -> Commands:
        return Commands(self._start, self._default_timeout, self._max_output_bytes)

    def _start(
        self, command: str, seconds: float, control: Control, *, leaves_nothing: bool = False
    ) -> Ended:
        # As a write does: the root need not be there before something is done in it.
        self.cwd.mkdir(parents=True, exist_ok=True)
        most = self._max_output_bytes
        return run_command(
            command, self.cwd, self._env, seconds, most, control, leaves_nothing=leaves_nothing
        )


def _inherit(inherit_env: bool | Collection[str]) -> dict[str, str]:
    if inherit_env is True:
        return dict(os.environ)
    # A single name would be taken for a list of letters.
    if isinstance(inherit_env, str):
        raise ConfigError(
            f"inherit_env must be a list of names, got {inherit_env!r}; write [{inherit_env!r}]"
        )
    wanted = {*_ALWAYS_INHERITED, *(inherit_env or ())}
    return {"PATH": os.defpath} | {name: value for name, value in os.environ.items() if name in wanted}

"""A directory on this machine in which commands can be run."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import uuid
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.local_shell.process import Ended, run_command
from deepagents.backends.protocol import SandboxBackendProtocol
from deepagents.backends.results import ExecuteResponse
from deepagents.errors import ConfigError

DEFAULT_EXECUTE_TIMEOUT = 120
"""Seconds that a command may take by default."""

# What most programs need to start at all; nothing that holds a key.
_ALWAYS_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR")
_TIMED_OUT = 124
_FAILED = 1
_SIGNALLED = 128


class LocalShellBackend(FilesystemBackend, SandboxBackendProtocol):
    """Files below a directory, and commands run there by this machine's shell with this user's rights.

    `virtual_mode` confines the file operations, never the commands: use this where the model and the task are
    trusted, or where a person approves each command. Linux and macOS only. Commands see `env`, the variables
    `PATH`, `HOME`, `LANG` and `TMPDIR` of this process, and those that `inherit_env` names (`True`: all).
    A command that is to go on in the background must send its output elsewhere (`... > log 2>&1 &`).

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
        self._default_timeout = _positive(timeout)
        self._max_output_bytes = max_output_bytes
        self._env = {**_inherit(inherit_env), **(env or {})}
        self._id = f"local-{uuid.uuid4().hex[:8]}"

    @property
    def id(self) -> str:
        """Return a name that is unique to this backend."""
        return self._id

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do: all that a directory can, and `execute`."""
        return replace(super().capabilities(path), execute=True, exposed=True)

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command in the root directory, for at most `timeout` seconds.

        Raises:
            ValueError: when `timeout` is not positive.
        """
        return self._run(command, timeout, threading.Event())

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command in the root directory; cancelling this ends the command."""
        is_cancelled = threading.Event()
        # A thread of its own: the loop's pool has few, and long commands would keep other work waiting.
        thread = ThreadPoolExecutor(1, "execute")
        running = asyncio.get_running_loop().run_in_executor(
            thread, self._run, command, timeout, is_cancelled
        )
        thread.shutdown(wait=False)
        try:
            # Cancelled directly, the command would go on with nothing to stop it.
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            is_cancelled.set()
            await asyncio.wait([running])
            raise

    def _run(self, command: str, timeout: int | None, is_cancelled: threading.Event) -> ExecuteResponse:
        seconds = self._default_timeout if timeout is None else _positive(timeout)
        if problem := _problem(command):
            return ExecuteResponse(problem, _FAILED)
        try:
            ended = run_command(command, self.cwd, self._env, seconds, self._max_output_bytes, is_cancelled)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "unknown reason"
            return ExecuteResponse(f"Error executing command ({type(error).__name__}): {reason}", _FAILED)
        exit_code = _TIMED_OUT if ended.exit_code is None else ended.exit_code
        notes = [ended.output.rstrip("\n") or "<no output>", *self._notes(ended, seconds, timeout is None)]
        return ExecuteResponse("\n".join(notes), exit_code, truncated=ended.left_out > 0)

    def _notes(self, ended: Ended, seconds: int, is_default: bool) -> list[str]:
        notes: list[str] = []
        if ended.left_out:
            notes.append(
                f"[Output truncated at {self._max_output_bytes} bytes: {ended.left_out} bytes between the "
                "beginning and the end were left out.]"
            )
        if ended.exit_code is None:
            notes.append(_describe_timeout(seconds, is_default))
        elif ended.exit_code:
            notes.append(f"Exit code: {ended.exit_code}{_in_words(ended.exit_code)}")
        return notes


def _positive(timeout: int) -> int:
    if timeout <= 0:
        raise ValueError(f"timeout must be positive, got {timeout!r}")
    return timeout


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


def _problem(command: object) -> str | None:
    if not isinstance(command, str) or not command.strip():
        return "Error: Command must be a non-empty string."
    if "\0" in command:
        return "Error: Command must not hold a NUL character."
    try:
        os.fsencode(command)
    except UnicodeEncodeError:
        return "Error: Command must be text that can be encoded."
    return None


def _describe_timeout(seconds: int, is_default: bool) -> str:
    if is_default:
        return (
            f"Error: Command timed out after {seconds} seconds and was ended. "
            "For a longer run use the timeout parameter."
        )
    return (
        f"Error: Command timed out after {seconds} seconds (custom timeout) and was ended. "
        "It may be stuck, or need more time."
    )


def _in_words(exit_code: int) -> str:
    """Return the signal behind an exit code: negative when the shell got it, over 128 when its child did."""
    number = -exit_code if exit_code < 0 else exit_code - _SIGNALLED
    if number not in set(signal.Signals):
        return ""
    name = signal.Signals(number).name
    return f" (killed by {name})" if exit_code < 0 else f" (128 + {number}: a process was killed by {name})"

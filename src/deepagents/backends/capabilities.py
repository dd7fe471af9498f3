"""Describe what a backend can do; it is asked once and never guessed from its class."""

from __future__ import annotations

from typing import cast

from deepagents._paths import CommandPaths
from deepagents._values import frozenclass
from deepagents.errors import ConfigError


@frozenclass
class Capabilities:
    """The abilities of a backend at a path and everywhere below it.

    `versions`: `write` and `edit` take `expected_version` and refuse a stale one. `state_files`: files live
    in the graph's `files` channel. `artifacts_root`: where the harness may put files of its own. `host`:
    files lie on the disk of this machine, or commands run on it; `None` says neither. `exposed`: commands
    that `execute` runs can reach files here, past every rule. `apart`: the directories, of all there are,
    that commands do not find at their paths. `ruled`: the directories in which commands find files, under the
    rules that `execute` gets as `allowed`, and outside of which there are none. `command_root`: where `/`
    lies for commands. `working_directory`: where they start, as they see it; `None` where that is not known.
    `in_process`: answers without waiting for anything outside this process. `capture`: the output of a
    command can be kept in a file at this path, where it runs. `background`: commands can run in the
    background; `keeps_commands`: those that do go on when the run of an agent ends. `not_held`: what a
    sandbox does not keep commands from on this machine, a sentence each.
    """

    execute: bool = False
    background: bool = False
    keeps_commands: bool = False
    not_held: tuple[str, ...] = ()
    delete: bool = False
    versions: bool = False
    state_files: bool = False
    artifacts_root: str = "/"
    host: bool | None = None
    exposed: bool = False
    in_process: bool = False
    capture: bool = False
    apart: tuple[str, ...] = ()
    ruled: tuple[str, ...] = ()
    command_root: str = "/"
    working_directory: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.artifacts_root), str):
            raise ConfigError(f"artifacts_root must be a path such as '/', got {self.artifacts_root!r}")

    @property
    def command_paths(self) -> CommandPaths:
        """How commands name the files of the backend; without commands, as the backend itself does."""
        if not self.execute:
            return CommandPaths()
        return CommandPaths(self.command_root.rstrip("/") or "/", self.apart, self.working_directory)

"""Confine commands to a directory on this machine."""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final, Literal, TypeAlias

from deepagents._programs import note_changeable
from deepagents.backends._signatures import method_facts
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.filesystem.paths import ResolvedPath
from deepagents.backends.local_shell.background import Background, BackgroundCommands
from deepagents.backends.local_shell.commands import DEFAULT_EXECUTE_TIMEOUT, Commands, Start, check_variables
from deepagents.backends.local_shell.process import Control, Ended, run_command
from deepagents.backends.operations import Operation
from deepagents.backends.protocol import Allowed, OnOutput
from deepagents.backends.results import ExecuteResponse
from deepagents.errors import ConfigError
from deepagents.network import HostRule, HostRules
from deepagents.permissions import CommandAccess
from deepagents_sandbox import seatbelt
from deepagents_sandbox.bridge import Bridge
from deepagents_sandbox.bubblewrap import Bubblewrap
from deepagents_sandbox.first_process import FirstProcess
from deepagents_sandbox.given import (
    MayChange,
    MountedPaths,
    find_environment,
    find_given,
    is_of_the_machine,
    parse_protected,
)
from deepagents_sandbox.guard import guard
from deepagents_sandbox.held import Held
from deepagents_sandbox.leftovers import hold_devices, running_mounts
from deepagents_sandbox.limits import CommandLimits, ControlGroup, Watchdog, find_controllers
from deepagents_sandbox.macos import run_under_seatbelt
from deepagents_sandbox.mounts import HOME, Descriptors, View
from deepagents_sandbox.obeyed import find_obeyed
from deepagents_sandbox.platforms import find_confinement, find_not_held
from deepagents_sandbox.seatbelt import Seatbelt
from deepagents_sandbox.seccomp import build_filter
from deepagents_sandbox.session import Life, Session

PROTECTED: Final = (
    ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".envrc", ".vscode", ".idea",
    ".mcp.json",
)  # fmt: skip
"""What programs on the host run or obey: a command must not write it, and neither may the file tools."""
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEFAULT_PROCESSES: Final = 512
_DEFAULT_DISK: Final = 4 << 30
Network: TypeAlias = Literal["none", "all"] | Sequence[str]


class LocalSandbox(FilesystemBackend, BackgroundCommands):
    """Files below a directory, and commands that see it, the programs of this machine, and no more.

    Paths are those of this machine, for the file tools and for commands alike. Commands may change `root_dir`
    and what is in `writable`, and read what is in `readable`; `protected` paths below each of these, which
    programs outside obey, cannot be changed by anyone. They have no network, all of it (`"all"`), or that of
    a list of host names. `memory`, `processes` and `disk` bound a command with all that it starts, in bytes
    and in number; the defaults are half of this machine's memory, 512 and 4 GiB. Commands see the variables
    in `env` alone. With `python`, the directory of an environment such as `sys.prefix`, they find its
    programs and packages before those of the system.

    Raises:
        ConfigError: where commands cannot be confined, with what to install; `available` asks without
        raising. ValueError: when `timeout` is not positive.
    """

    protects_from_tools = True
    """Whether the file tools cannot change protected paths either; where not, something else must ask."""

    def __init__(
        self,
        root_dir: str | Path | None = None,
        *,
        readable: Sequence[str | Path] = (),
        writable: Sequence[str | Path] = (),
        protected: Sequence[str] = PROTECTED,
        network: Network = "none",
        env: Mapping[str, str] | None = None,
        python: str | Path | None = None,
        memory: int | None = None,
        processes: int | None = None,
        disk: int | None = None,
        timeout: int = DEFAULT_EXECUTE_TIMEOUT,
        max_output_bytes: int = 100_000,
        session: bool = False,
        max_file_size_mb: float = 10,
    ) -> None:
        super().__init__(root_dir, False, max_file_size_mb)
        found = find_confinement()
        if isinstance(found, str):
            raise ConfigError(f"LocalSandbox cannot run here: {found}")
        if not self.cwd.is_dir():
            raise ConfigError(
                f"root_dir must be a directory that is there, got {str(self.cwd)!r}; make it first"
            )
        is_shared_memory = self.cwd.is_relative_to("/dev/shm") and self.cwd != Path("/dev/shm")
        if not is_shared_memory and is_of_the_machine(self.cwd):
            raise ConfigError(f"root_dir must be a directory of its own, got {str(self.cwd)!r}")
        if session and isinstance(found, Seatbelt):
            raise ConfigError(
                "session=True is for Linux: on macOS each command starts in a sandbox of its own"
            )
        self._writer.stays = running_mounts().has
        self._program: Bubblewrap | Seatbelt = found
        environment, variables = find_environment(python, _PATH) if python else ([], {})
        self._given = find_given(self.cwd, readable, writable)
        for each in environment:
            # In a directory that was given, it is there already.
            if not any(each.is_relative_to(top) for top in self._given):
                self._given[each] = "readable"
        self._writable = [path for path, mode in self._given.items() if mode == "writable"]
        note_changeable(self, self._writable)
        self._protected = parse_protected(protected)
        self._network = network
        self._rules = _host_rules(network, self.may_reach)
        fixed = {"PATH": _PATH, "HOME": HOME, "LANG": "C.UTF-8", "TERM": "dumb"}
        self._env = {**fixed, **variables, **check_variables(env)}
        self._limits = CommandLimits(
            _positive("memory", memory) or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2,
            _positive("processes", processes) or _DEFAULT_PROCESSES,
            _positive("disk", disk) or _DEFAULT_DISK,
        )
        self._paths = MountedPaths(self.cwd, self._given)
        self._commands = Commands(self._start, timeout, max_output_bytes)
        self._background = Background(self._start, max_output_bytes)
        self._session = Session(self._confine, self._look, max_output_bytes) if session else None
        self._id = f"sandbox-{uuid.uuid4().hex[:8]}"

    @staticmethod
    def available() -> str | None:
        """Return `None` where commands can be confined, else one sentence: why not, and what to install."""
        found = find_confinement()
        return found if isinstance(found, str) else None

    def may_reach(self, host: str) -> bool:
        """Return whether commands may reach a host that is not in the list `network`, at the usual ports.

        A subclass may let more through; it is asked in a thread of its own while the connection waits. An
        address of this machine's own networks stays closed.
        """
        return False

    @property
    def id(self) -> str:
        """Return a name that is unique to this backend."""
        return self._id

    def capabilities(self, path: str = "/") -> Capabilities:
        """Return what this backend can do: all that a directory can, and `execute`."""
        # A subclass with an `execute` of its own, which takes no `allowed`, would go past the rules.
        keeps = all(method_facts(type(self), each).enforces for each in ("execute", "start_command"))
        ruled = tuple(map(str, self._given))
        return replace(
            super().capabilities(path),
            execute=True,
            exposed=not keeps,
            ruled=ruled if keeps else (),
            background=True,
            keeps_commands=self._is_kept,
            not_held=find_not_held(self._program, find_controllers(), self._network),
            working_directory=str(self.cwd),
        )

    def execute(
        self,
        command: str,
        *,
        timeout: int | None = None,
        on_output: OnOutput | None = None,
        allowed: CommandAccess | None = None,
    ) -> ExecuteResponse:
        """Run a shell command in the root directory, for at most `timeout` seconds.

        It can read and change what is `allowed` when it starts; what it makes beyond that is removed.

        Raises:
            BackendError: when rules speak about too many files one by one.
            ValueError: when `timeout` is not positive.
        """
        return self._commands.run(command, timeout, self._start_under(allowed), on_output)

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,
        on_output: OnOutput | None = None,
        allowed: CommandAccess | None = None,
    ) -> ExecuteResponse:
        """Run a shell command in the root directory; cancelling this ends the command."""
        return await self._commands.arun(command, timeout, self._start_under(allowed), on_output)

    def start_command(
        self, command: str, *, timeout: int | None = None, allowed: CommandAccess | None = None
    ) -> str:
        """Start a command in the background, for at most `timeout` seconds, and return its id."""
        return self._background.start(command, timeout, self._start_under(allowed))

    def attach(
        self,
        program: Sequence[str],
        files: tuple[int, int, int],
        *,
        is_cancelled: Event,
        allowed: CommandAccess | None = None,
    ) -> int | None:
        """Run a program until it ends, with these open files as its input, output and errors.

        The last two have one digit, as any shell takes them. Return the exit code, and `None` where it was
        cancelled.

        Raises:
            ConfigError: on macOS, where a command has no open files of its caller.
        """
        if isinstance(self._program, Seatbelt):
            raise ConfigError("on macOS no program is attached to a sandbox")
        stdin, stdout, stderr = files
        held = self._look(allowed)
        line = ("/bin/sh", "-c", f'exec "$@" >&{stdout} 2>&{stderr}', "sh", *program)
        control = Control(is_cancelled, stdin=stdin)
        return self._confine(line, math.inf, control, held, held, (stdout, stderr)).exit_code

    def _start_under(self, allowed: CommandAccess | None) -> Start:
        return self._start if allowed is None else partial(self._start, allowed=allowed)

    def _resolve(self, op: Operation, path: str) -> ResolvedPath:
        resolved = super()._resolve(op, path)
        if op.right == "read":
            return resolved
        return replace(resolved, allowed=self._find_may_change(resolved.allowed))

    def _find_may_change(self, further: Allowed | None = None) -> MayChange:
        kept = self._protected if self.protects_from_tools else ()
        return MayChange(
            {str(path): mode for path, mode in self._given.items()},
            [str(top / each) for top in self._writable for each in find_obeyed(top, kept).paths],
            [each for each in kept if each.startswith(".git/")],
            further,
        )

    def _disk_roots(self) -> list[Path]:
        # What is in a repository is git's to take back.
        return [each for each in self._writable if each.name != ".git"]

    def _may_restore(self, path: Path, allowed: Allowed) -> bool:
        return self._find_may_change(allowed)(str(path))

    def close(self) -> None:
        """End all commands that run in the background, and the session."""
        super().close()
        if self._session:
            self._session.close()

    def _start(
        self, command: str, seconds: float, control: Control, allowed: CommandAccess | None = None
    ) -> Ended:
        if self._session:
            return self._session.run(command, seconds, control, allowed)
        held = self._look(allowed)
        if isinstance(self._program, Seatbelt):
            ended = self._start_under_seatbelt(command, seconds, control, held)
        else:
            ended = self._confine(("/bin/sh", "-c", command), seconds, control, held, held)
        return replace(ended, notes=(*ended.notes, *held.notes))

    def _look(self, allowed: CommandAccess | None) -> Held:
        return Held.look(self._protected, self._given, allowed)

    def _confine(
        self,
        program: Sequence[str],
        seconds: float,
        control: Control,
        held: Held,
        life: Life,
        open_files: Sequence[int] = (),
        needs: Sequence[Path] = (),
    ) -> Ended:
        bubblewrap = self._program
        assert isinstance(bubblewrap, Bubblewrap)
        controllers = find_controllers()
        with ExitStack() as stack:
            group = ControlGroup.choose()
            mark = uuid.uuid4().hex
            write_to_guard, frozen = self._hold_files(stack, mark, group.directories, held, life)
            life.begin(write_to_guard, partial(group.describe_enforced, self._limits))
            stack.enter_context(group.hold(self._limits))
            descriptors = stack.enter_context(Descriptors())
            bridge = stack.enter_context(Bridge(self._rules, control.refused)) if self._rules else None
            # Left first: all that follows needs the command to be dead.
            first = stack.enter_context(FirstProcess())
            mounted = [*frozen, *held.marks.modes]
            running_mounts().add(mounted)
            stack.callback(running_mounts().remove, mounted)
            view = View(
                self.cwd,
                {**dict.fromkeys((*needs, *(bridge.needs if bridge else ())), "readable"), **self._given},
                frozen,
                held.marks.modes,
                shares_network=self._network == "all",
                # Half of it, so that a full /tmp is an error that a program sees, and not the end of the
                # command.
                temporary_bytes=min(self._limits.disk, self._limits.memory // 2),
                hold_path=descriptors.hold_path if bubblewrap.binds_descriptors else None,
            )
            options = list(first.options)
            options += list(view.options(bubblewrap.disables_namespaces, descriptors.hold))
            for name, value in ((bridge.env if bridge else {}) | self._env).items():
                options += ("--setenv", name, value)
            no_shared_memory = controllers.memory is None
            options += ("--seccomp", descriptors.hold(build_filter(no_shared_memory=no_shared_memory)))
            # Nothing of a command line is hidden from other processes, so the options are not on it.
            packed = descriptors.hold(b"".join(os.fsencode(each) + b"\0" for each in options))
            watchdog = Watchdog(self._limits, self._writable, watches_processes=not controllers.is_complete)
            ended = run_command(
                (
                    *group.enter(), bubblewrap.path, "--args", packed, "--",
                    *(bridge.enter if bridge else ()),
                    "/bin/sh", "-c", _SHELL, "sh", str(self._limits.processes), str(self._limits.disk // 512),
                    mark, *program,
                ),
                self.cwd,
                {},
                seconds,
                self._commands.max_output_bytes,
                control,
                pass_fds=[
                    *open_files, *descriptors.open, *first.descriptors,
                    *(bridge.descriptors if bridge else ()),
                ],
                describe_excess=watchdog.describe_excess,
            )  # fmt: skip
            enforced = group.describe_enforced(self._limits)
        return replace(ended, notes=(f"[{enforced}]",)) if enforced else ended

    def _start_under_seatbelt(self, command: str, seconds: float, control: Control, held: Held) -> Ended:
        with ExitStack() as stack:
            _, frozen = self._hold_files(stack, uuid.uuid4().hex, (), held, held)
            held.begin()
            return run_under_seatbelt(
                command,
                seatbelt.SeatbeltRules(
                    self.cwd, self._given, frozen, held.marks.modes,
                    "all" if self._network == "all" else "none",
                ),
                self._rules,
                self._env,
                self._limits,
                seconds,
                self._commands.max_output_bytes,
                control,
            )  # fmt: skip

    def _hold_files(
        self, stack: ExitStack, mark: str, groups: Sequence[Path], held: Held, life: Life
    ) -> tuple[Callable[[str], None], Sequence[Path]]:
        """Keep placeholders where nothing may be made, and tidy up at the end.

        Return what sends lines to the guard, and what must not be changed.
        """
        write_to_guard = stack.enter_context(guard(mark, [*groups, *held.missing], held.made))
        stack.enter_context(hold_devices())
        # Placeholders are removed last, when this command no longer holds their locks.
        for each in held.protections:
            stack.callback(each.tidy)
        frozen = [path for each in held.protections for path in stack.enter_context(each.hold())]
        stack.callback(life.end)
        return write_to_guard, frozen


# Shells have two names for the bound on processes; without either, the control group or the watchdog holds
# it.
_SHELL: Final = (
    'ulimit -c 0; ulimit -f "$2"; ulimit -u "$1" 2>/dev/null || ulimit -p "$1" 2>/dev/null; '
    'shift 3; exec "$@"'
)


def _positive(name: str, bound: int | None) -> int | None:
    if bound is not None and bound <= 0:
        raise ConfigError(f"{name} must be positive, got {bound!r}")
    return bound


def _host_rules(network: Network, may_reach: Callable[[str], bool]) -> HostRules | None:
    if network in ("none", "all"):
        return None
    if isinstance(network, str):
        raise ConfigError(f"network must be 'none', 'all' or a list of host names, got {network!r}")
    return HostRules(tuple(map(HostRule.parse, network)), is_further=may_reach)

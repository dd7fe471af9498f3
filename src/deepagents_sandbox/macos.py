"""Run a command under a Seatbelt profile, with what macOS has no means for done by a small shell script.

Written from documents and not run on a Mac. What this does not hold there, and bubblewrap does on Linux: a
process that leaves its process group outlives the call, memory and processes are counted a few times a second
and only of what `ps` shows as children of the command, and there are no private `/tmp`, loopback and list of
processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from deepagents._values import field, recordclass, replace
from deepagents.backends.local_shell.process import Control, Ended, run_command
from deepagents.network import HostRules
from deepagents_sandbox.bridge import Loopback
from deepagents_sandbox.limits import CommandLimits, Watchdog
from deepagents_sandbox.mounts import HOME
from deepagents_sandbox.rules import Mode
from deepagents_sandbox.seatbelt import SeatbeltRules, command_line

_LOOK_AT_PROCESSES_EVERY: Final = 0.25
# It has job control without a terminal; other shells do not.
SHELL: Final = "/bin/bash"
# Starts a program in a process group of its own (`set -m`), and kills this group when the program ends, when
# this script is asked to end, and when the harness is gone: macOS ends no program with its parent.
LEADER: Final = r"""
harness=$1; shift
exec 3<&0
set -m
"$@" <&3 3<&- &
job=$!
set +m
exec 3<&- 2>/dev/null
trap 'kill -TERM -- -$job; sleep 0.5; kill -KILL -- -$job' TERM
while kill -0 "$harness" && kill -0 $job; do
    sleep 0.5
done </dev/null >/dev/null && kill -KILL -- -$job &
watch=$!
wait $job; code=$?
kill -KILL -- $watch -$job
exit $code
"""


def run_under_seatbelt(
    command: str,
    rules: SeatbeltRules,
    hosts: HostRules | None,
    env: Mapping[str, str],
    limits: CommandLimits,
    seconds: float,
    most_bytes: int,
    control: Control,
) -> Ended:
    """Run a shell command under a profile; with `hosts`, it reaches a proxy of its own and nothing else."""
    with _temporary() as temporary, Loopback(hosts, control.refused) if hosts else nullcontext() as proxy:
        writable = [*(path for path, mode in rules.given.items() if mode == "writable"), temporary]
        given: dict[Path, Mode] = {**rules.given, temporary: "writable"}
        rules = replace(rules, given=given, network=proxy.port if proxy else rules.network)
        variables = {"TMPDIR": str(temporary), **(proxy.env if proxy else {}), **env}
        if env.get("HOME") == HOME:
            variables["HOME"] = str(temporary)
        shell = ("/bin/sh", "-c", 'ulimit -c 0; ulimit -f "$1"; exec /bin/sh -c "$2"', "sh")
        return run_command(
            (
                SHELL, "-c", LEADER, "sh", str(os.getpid()),
                *command_line(rules, (*shell, str(limits.disk // 512), command)),
            ),
            rules.root,
            variables,
            seconds,
            most_bytes,
            control,
            describe_excess=ProcessTableWatchdog(limits, writable).describe_excess,
        )  # fmt: skip


@contextmanager
def _temporary() -> Generator[Path]:
    made = Path(tempfile.mkdtemp(prefix="deepagents-")).resolve()
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@recordclass
class ProcessTableWatchdog(Watchdog):
    """A watchdog for a system without `/proc`: it asks `ps`, which takes longer, so it looks less often."""

    watches_processes: bool = False
    _next_look: float = field(default=0.0, init=False)

    def _find_excess(self, pid: int) -> str | None:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_AT_PROCESSES_EVERY
            processes = _descendants(pid)
            if len(processes) > self.limits.processes:
                return "processes"
            # What processes share counts for each of them: this bound is rather too low than too high.
            if sum(processes.values()) > self.limits.memory:
                return "memory"
        return super()._find_excess(pid)


def _descendants(pid: int) -> dict[int, int]:
    """Return the processes that one started, with the memory of each in bytes."""
    shown = subprocess.run(
        ("/bin/ps", "-axo", "pid=,ppid=,rss="), capture_output=True, text=True, check=False
    ).stdout
    rows = [tuple(map(int, line.split())) for line in shown.splitlines()]
    children: defaultdict[int, list[int]] = defaultdict(list)
    for child, parent, _ in rows:
        children[parent].append(child)
    memory = {each: kibibytes * 1024 for each, _, kibibytes in rows}
    found: dict[int, int] = {}
    waiting = [pid]
    while waiting:
        each = waiting.pop()
        found[each] = memory.get(each, 0)
        waiting += children[each]
    return found

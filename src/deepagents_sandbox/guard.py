"""End a command and remove what it left, if this process is killed while it runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

# Runs next to a command and waits for lines from the harness. The end of the pipe without an `end` before it
# means that the harness was killed. The kernel kills the sandbox then, but not one that was just starting: so
# all that has the mark on its command line is killed, twice, for a process has none before it begins. A
# placeholder is removed only under the lock that every running command shares, for on it something may be
# mounted. After `--` come paths that a command may have made and must not leave, each in a directory that it
# may have made; after `idle` nothing runs that could have made them, so they are someone else's.
_GUARD: Final = r"""
while read -r line; do state=$line; [ "$state" = end ] && exit; done
mark=$1; shift
try=0
while [ "$((try += 1))" -le 45 ]; do
    left= made=
    [ "$try" = 1 ] && left=1
    for each in $(grep -ls -e "[${mark%"${mark#?}"}]${mark#?}" /proc/[0-9]*/cmdline); do
        each=${each#/proc/}; each=${each%/cmdline}
        [ "$each" != $$ ] && kill -9 "$each" && left=1
    done
    for each; do
        if [ "$each" = -- ]; then
            made=1
        elif [ -n "$left" ]; then
            continue
        elif [ -n "$made" ]; then
            [ "$state" = idle ] && continue
            [ -L "${each%/*}" ] && each=${each%/*}
            [ -e "$each" ] || [ -L "$each" ] || continue
            rm -rf "$each"
        elif [ -e "$each/cgroup.procs" ]; then
            while read -r process; do kill -9 "$process"; done < "$each/cgroup.procs"
            rmdir "$each" || left=1
        elif [ -d "$each" ] && [ -k "$each" ]; then
            if command -v flock; then flock -n "$each" rmdir "$each" || left=1; else rmdir "$each"; fi
        fi
    done
    [ -z "$left" ] && exit
    [ "$try" -gt 15 ] && sleep 1 || sleep 0.1
done
"""


@contextmanager
def guard(mark: str, leftovers: Sequence[Path], made: Sequence[Path]) -> Generator[Callable[[str], None]]:
    """Have a small program end a command and remove what it left, if this process is killed meanwhile.

    `mark` is on the command line of all that belongs to the command; `leftovers` are placeholders and control
    groups, `made` is what a command may make and must not leave. Yields what sends it a line: `idle` when
    nothing runs for now, `busy` when something does again.
    """
    # A session of its own: Ctrl-C and the end of a terminal must not end it first.
    process = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", mark, *map(str, leftovers), "--", *map(str, made)],
        env={"PATH": os.defpath}, cwd="/", start_new_session=True, bufsize=0,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    lines = process.stdin

    def write(line: str) -> None:
        # It ends with the command, which whoever writes may not know yet.
        with suppress(BrokenPipeError, ValueError):
            lines.write(f"{line}\n".encode())

    try:
        yield write
    finally:
        write("end")
        process.communicate()

"""End a command on this machine with the program that started it, even if that is killed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress


class Guard:
    """A shell that kills a group of processes when this process is gone, however that happened."""

    def __enter__(self) -> Guard:
        # Of a process that is gone it reads no second line.
        script = 'read -r group; read -r line || kill -s KILL -- "-$group"'
        self._shell = subprocess.Popen(
            ("/bin/sh", "-c", script), env={}, cwd="/", start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.gate, self._opener = os.pipe()
        return self

    def delay(self, command: str) -> Sequence[str]:
        """Return a command line that runs a command once its group is watched, and nothing before."""
        script = f'read -r go < /dev/fd/{self.gate} && exec /bin/sh -c "$1"'
        return ("/bin/sh", "-c", script, "sh", command)

    def watch(self, group: int) -> None:
        """Name the group, and let it begin."""
        assert self._shell.stdin is not None
        with suppress(BrokenPipeError):
            self._shell.stdin.write(b"%d\n" % group)
            self._shell.stdin.flush()
        os.write(self._opener, b"go\n")

    def __exit__(self, *raised: object) -> None:
        os.close(self.gate)
        os.close(self._opener)
        self._shell.communicate(b"\n")

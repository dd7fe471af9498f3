"""What a command uses, looked at all the time: also while its view of the files is being built."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from deepagents_sandbox.limits import CommandLimits, Watchdog
from tests.sandbox.users import UNAVAILABLE

pytestmark = [pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE)), pytest.mark.slow]

# One command in about a hundred would be looked at in the moment that this was wrong in.
COMMANDS = 4 * int(os.environ.get("EXAMPLES", "25"))
# More than the commands take, and less than what lies on the disk of this machine.
MEMORY = 512 << 20


def test_what_lies_on_the_disk_is_never_counted_as_memory() -> None:
    if shutil.disk_usage("/tmp").used < MEMORY:
        pytest.skip("so little lies on the disk of /tmp that it would not be seen")

    for _ in range(COMMANDS):
        command = subprocess.Popen(
            ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/tmp", "true"],
            stdin=subprocess.DEVNULL,
        )
        watchdog = Watchdog(CommandLimits(MEMORY, 64, 1 << 40), [], watches_processes=True)
        with command:
            while command.poll() is None:
                assert watchdog.describe_excess(command.pid) is None

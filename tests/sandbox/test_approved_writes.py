"""What a file tool writes is what is there afterwards, whatever a command that runs meanwhile tries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deepagents import FilesystemPermission
from deepagents.backends import LocalSandbox
from deepagents.permissions import CommandAccess, Rules
from tests.sandbox.users import UNAVAILABLE

pytestmark = [pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE)), pytest.mark.slow]

TRIES = 150
# Puts a file of its own in the place of each temporary one as soon as the kernel tells of it.
SWAP = r"""
import ctypes, os, struct
libc = ctypes.CDLL(None)
watch = libc.inotify_init()
libc.inotify_add_watch(watch, b'.', 0x100 | 0x80)
with open('evil', 'w') as file: file.write('PLANTED')
print('ready', flush=True)
while True:
    events = os.read(watch, 65536)
    while events:
        length, = struct.unpack_from('I', events, 12)
        name = events[16:16 + length].rstrip(b'\0').decode()
        events = events[16 + length:]
        if name.endswith('.tmp'):
            try: os.rename('evil', name)
            except OSError: pass
            with open('evil', 'w') as file: file.write('PLANTED')
"""
# Reads and writes what it was kept from, as soon as it can.
OPEN = r"""
import sys
leaked = ''
print('ready', flush=True)
while True:
    try:
        with open(sys.argv[1]) as file:
            if not leaked and 'secret' in file.read(): print(leaked := 'LEAKED', flush=True)
    except OSError: pass
    try:
        with open(sys.argv[1], 'w') as file: file.write('PLANTED')
    except OSError: pass
"""


class Asked(LocalSandbox):
    """A sandbox whose file tools may change protected files, as where a person approves of each change."""

    protects_from_tools = False


@pytest.fixture(name="sandbox")
def _sandbox(tmp_path: Path) -> Iterator[LocalSandbox]:
    for name in ("notes.txt", ".mcp.json", "law.txt", ".env"):
        (tmp_path / name).write_text("old")
    (tmp_path / "swap.py").write_text(SWAP)
    (tmp_path / "open.py").write_text(OPEN)
    with Asked(tmp_path) as sandbox:
        yield sandbox


def start(sandbox: LocalSandbox, command: str) -> str:
    rules = [
        FilesystemPermission(["write"], ["/**/law.txt"], "deny"),
        FilesystemPermission(["read", "write"], ["/**/.env"], "deny"),
    ]
    started = sandbox.start_command(command, allowed=CommandAccess(Rules(rules), False))
    while not sandbox.poll_command(started, wait=0.05).output:
        assert sandbox.poll_command(started).exit_code is None
    return started


@pytest.mark.parametrize("name", ["notes.txt", ".mcp.json", "law.txt", "new.txt"])
def test_a_command_puts_no_file_of_its_own_in_the_place_of_what_is_written(
    sandbox: LocalSandbox, tmp_path: Path, name: str
) -> None:
    start(sandbox, "exec python3 -I swap.py")

    for number in range(TRIES):
        path = tmp_path / (f"{number}-{name}" if name == "new.txt" else name)
        version = sandbox.write(str(path), f"approved {number}").version

        assert path.read_text() == f"approved {number}"
        assert sandbox.read(str(path)).version == version


def test_a_command_that_locks_a_directory_stops_no_file_tool(sandbox: LocalSandbox, tmp_path: Path) -> None:
    start(sandbox, "flock -x . -c 'echo locked; sleep 1000'")

    assert sandbox.write(str(tmp_path / "notes.txt"), "new").error is None
    assert (tmp_path / "notes.txt").read_text() == "new"


@pytest.mark.parametrize("name", [".mcp.json", "law.txt", ".env"])
def test_a_command_is_kept_from_a_file_also_after_it_was_written(
    sandbox: LocalSandbox, tmp_path: Path, name: str
) -> None:
    started = start(sandbox, f"exec python3 -I open.py {name}")

    for number in range(TRIES):
        assert sandbox.write(str(tmp_path / name), f"secret {number}").error is None
        assert sandbox.edit(str(tmp_path / name), "secret", "a secret").error is None

    assert (tmp_path / name).read_text() == f"a secret {TRIES - 1}"
    ended = sandbox.poll_command(started, wait=0.2)
    assert ("LEAKED" in ended.output) == (name != ".env")

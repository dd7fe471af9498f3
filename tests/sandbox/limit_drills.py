"""Commands that take more than they may have. Each is bounded itself, so that a failing drill hurts nobody."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deepagents.backends import LocalSandbox
from tests.sandbox.users import find_groups, find_processes, main

MIB = 1 << 20
_FILL = """
for each in range(10):
    with open(f'file{each}', 'wb') as file:
        for block in range(40):
            file.write(bytes(1 << 20))
    time.sleep(0.1)
"""
_HIDE = """
import ctypes, os, socket, time
libc, held = ctypes.CDLL(None), [*socket.socketpair()]
for each in range(10):
    file = os.open('hidden', os.O_RDWR | os.O_CREAT)
    os.unlink('hidden')
    for block in range(40):
        os.write(file, bytes(1 << 20))
    HOLD
    os.close(file)
    time.sleep(0.1)
print('survived')
"""


@contextmanager
def sandbox(**options: Any) -> Generator[tuple[LocalSandbox, Path]]:
    top = Path(tempfile.mkdtemp(prefix="limits-", dir="/var/tmp")).resolve()
    try:
        yield LocalSandbox(top, **options), top
    finally:
        shutil.rmtree(top, ignore_errors=True)


def python(code: str) -> str:
    return f"python3 -I -S - <<'END'\n{code}\nEND"


def a_fork_bomb() -> dict[str, Any]:
    code = """
import os, time
started = 0
for each in range(400):
    try:
        pid = os.fork()
    except OSError:
        break
    if not pid:
        time.sleep(3)
        os._exit(0)
    started += 1
print('started', started, flush=True)
time.sleep(0.3)
"""
    with sandbox(processes=64, timeout=20) as (backend, _):
        ran = backend.execute(python(code))
        return {"output": ran.output, "later": backend.execute("echo fine").output}


def many_children_with_memory() -> dict[str, Any]:
    code = """
import os, time
children = []
for each in range(8):
    pid = os.fork()
    if not pid:
        block = bytearray(192 << 20)
        time.sleep(1.5)
        os._exit(0)
    children.append(pid)
print('survived', [os.waitpid(each, 0)[1] for each in children].count(0))
"""
    return _memory(code)


def memory_in_files_of_memory() -> dict[str, Any]:
    code = """
import os, time
files = [os.memfd_create('x') for each in range(12)]
for each in files:
    for block in range(64):
        os.write(each, bytes(1 << 20))
time.sleep(0.5)
print('survived 8')
"""
    return _memory(code)


def memory_in_files_that_only_mappings_hold() -> dict[str, Any]:
    code = """
import ctypes, os, time
libc = ctypes.CDLL(None)
for each in range(12):
    file = os.memfd_create('x')
    for block in range(64):
        os.write(file, bytes(1 << 20))
    libc.mmap(None, 4096, 1, 1, file, 0)
    os.close(file)
time.sleep(0.5)
print('survived 8')
"""
    return _memory(code)


def memory_of_a_process_that_closes_itself() -> dict[str, Any]:
    code = """
import ctypes, time
ctypes.CDLL(None).prctl(4, 0)
block = bytearray(700 << 20)
time.sleep(0.5)
print('survived 8')
"""
    return _memory(code)


def _memory(code: str) -> dict[str, Any]:
    with sandbox(memory=400 * MIB, timeout=30) as (backend, _):
        ran = backend.execute(python(code))
        return {"output": ran.output, "later": backend.execute("echo fine").output}


def a_full_workspace() -> dict[str, Any]:
    return _disk("for each in 1 2 3 4 5 6 7 8 9 10; do head -c 40M /dev/zero > file$each; sleep 0.1; done")


def a_full_workspace_out_of_sight() -> dict[str, Any]:
    code = """
import os, time
for each in range(30):
    os.mkdir('d' * 200); os.chdir('d' * 200)
"""
    return _disk(python(code + _FILL))


def a_full_workspace_behind_a_closed_door() -> dict[str, Any]:
    code = """
import os, time
os.mkdir('d'); os.chdir('d'); os.chmod('.', 0o300)
"""
    return _disk(python(code + _FILL))


def a_full_workspace_that_only_mappings_hold() -> dict[str, Any]:
    return _disk(python(_HIDE.replace("HOLD", "libc.mmap(None, 4096, 1, 1, file, 0)")))


def a_full_workspace_that_only_sockets_hold() -> dict[str, Any]:
    return _disk(python(_HIDE.replace("HOLD", "socket.send_fds(held[0], [b'x'], [file])")))


def one_large_file() -> dict[str, Any]:
    return _disk("head -c 400M /dev/zero > file")


def _disk(command: str) -> dict[str, Any]:
    with sandbox(disk=100 * MIB, timeout=30) as (backend, _):
        ran = backend.execute(command)
        left = backend.execute(
            "chmod -R u+rwx * 2>/dev/null; du -sm . | cut -f1; rm -rf *; ls | wc -l"
        ).output.split()
        return {"output": ran.output, "megabytes": int(left[0]), "after rm": int(left[1])}


def full_temporary_directories() -> dict[str, Any]:
    with sandbox(memory=400 * MIB, disk=100 * MIB, timeout=30) as (backend, _):
        ran = backend.execute(
            "head -c 90M /dev/zero > /tmp/a; head -c 90M /dev/zero > /tmp/b; head -c 90M /dev/zero > /dev/shm/c; "
            "du -sm /tmp /dev/shm"
        )
        return {"output": ran.output, "later": backend.execute("ls /tmp /dev/shm").output}


def an_output_flood() -> dict[str, Any]:
    with sandbox(timeout=60, max_output_bytes=100_000) as (backend, _):
        backend.execute("true")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ran = backend.execute("echo first; yes | head -c 200M; echo; echo last")
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        return {"size": len(ran.output), "grown": grown // 1024, "truncated": ran.truncated, "ends": ran.output[:5]
                + ran.output[-300:]}  # fmt: skip


def fifty_at_once() -> dict[str, Any]:
    with sandbox(timeout=60) as (backend, top), ThreadPoolExecutor(50) as threads:
        ran = list(
            threads.map(lambda each: backend.execute(f"echo {each}; echo {each} > file{each}"), range(50))
        )
        return {
            "outputs": [each.output for each in ran],
            "files": sorted(each.name for each in top.iterdir()),
            "groups": find_groups(os.getpid()),
        }


def what_is_not_held() -> dict[str, Any]:
    groups: list[str] = []
    with sandbox() as (backend, _):
        backend.execute("echo; sleep 0.5", on_output=lambda *_: groups.extend(find_groups(os.getpid())))
        return {"not held": backend.capabilities().not_held, "groups": groups}


def a_time_out() -> dict[str, Any]:
    mark = f"61.{os.getpid()}"
    with sandbox() as (backend, _):
        before = time.monotonic()
        ran = backend.execute(
            f"trap '' TERM HUP INT; setsid sleep {mark} & (setsid setsid sleep {mark} </dev/null >/dev/null 2>&1 &) ; "
            f"echo begun; while :; do sleep {mark}; done",
            timeout=1,
        )
        seconds = time.monotonic() - before
        return {
            "exit code": ran.exit_code, "output": ran.output, "left": find_processes(mark), "seconds": seconds
        }  # fmt: skip


def a_cancellation() -> dict[str, Any]:
    mark = f"62.{os.getpid()}"

    async def cancel() -> str:
        with sandbox() as (backend, top):
            task = asyncio.create_task(
                backend.aexecute(
                    f"(setsid sleep {mark} &); touch begun; trap '' TERM; sleep {mark}; sleep {mark}"
                )
            )
            while not (top / "begun").exists():
                await asyncio.sleep(0.01)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return "cancelled"
            return "went on"

    return {"was": asyncio.run(cancel()), "left": find_processes(mark), "groups": find_groups(os.getpid())}


DRILLS = [
    a_fork_bomb, many_children_with_memory, memory_in_files_of_memory, memory_in_files_that_only_mappings_hold,
    memory_of_a_process_that_closes_itself,
    a_full_workspace, a_full_workspace_out_of_sight, a_full_workspace_behind_a_closed_door, one_large_file,
    a_full_workspace_that_only_mappings_hold, a_full_workspace_that_only_sockets_hold,
    full_temporary_directories, an_output_flood, fifty_at_once, a_time_out, a_cancellation, what_is_not_held,
]  # fmt: skip

if __name__ == "__main__":
    main(DRILLS)

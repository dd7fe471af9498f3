"""Run a command and keep what it prints in a file, so that only little of it must be carried away."""

import os
import select
import subprocess
import time
from contextlib import suppress

from deepagents.backends.sandbox.scripts.common import Places, Refused, packed, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

BLOCK = 1 << 16
LOOK_EVERY = 0.05
MOST_BLOCKS_IN_A_PIPE = 32
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")


def main(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Give the exit code and the output: all of it, or its beginning and end when it was kept in the file."""
    target = Places(params["root"]).find(params["path"])
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w+b") as kept:
        seen, exit_code = run(params["command"], kept, params["most_kept"])
        try:
            found = report(kept, seen, params)
        except OSError as error:
            raise Refused("not_kept", exit=exit_code, text=reason_of(error)) from error
    if "data" in found:
        os.unlink(target)
    return [], dict(found, exit=exit_code, seen=seen)


def report(kept: "IO[bytes]", seen: int, params: "dict[str, Any]") -> "dict[str, Any]":
    """Give all of the output if it is short, else its first and last bytes."""
    size = on_character(kept, min(seen, params["most_kept"]), seen)
    if seen <= params["most_inline"]:
        return {"kept": size, "data": packed(part(kept, 0, size))}
    shown = params["most_shown"]
    head = part(kept, 0, min(shown, size))
    tail_at = max(len(head), size - shown)
    tail = part(kept, tail_at, size - tail_at)
    return {
        "kept": size, "head": packed(head), "tail": packed(tail), "tail_at": tail_at,
        "lines": count_lines(kept),
    }  # fmt: skip


def run(command: str, kept: "IO[bytes]", most: int) -> "tuple[int, int]":
    """Run to the end of the command itself; what it leaves in the background is not waited for."""
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [shell(), "-c", command], stdin=subprocess.DEVNULL, stdout=write_end, stderr=write_end
    )
    os.close(write_end)
    os.set_blocking(read_end, False)
    seen, listening = 0, True
    while process.poll() is None:
        if listening:
            count = take(read_end, kept, most - seen, LOOK_EVERY)
            listening, seen = count >= 0, seen + max(count, 0)
        else:
            time.sleep(0.001)
    for _ in range(MOST_BLOCKS_IN_A_PIPE):
        count = take(read_end, kept, most - seen, 0) if listening else 0
        if count <= 0:
            break
        seen += count
    os.close(read_end)
    code = process.returncode
    return seen, 128 - code if code < 0 else code


def take(fd: int, kept: "IO[bytes]", room: int, seconds: float) -> int:
    """Take what is there, keep what there is room for; give its size, -1 at the end of the stream."""
    ready, _, _ = select.select([fd], [], [], seconds)
    if not ready:
        return 0
    try:
        data = os.read(fd, BLOCK)
    except BlockingIOError:
        return 0
    with suppress(OSError):
        kept.write(data[: max(room, 0)])
    return len(data) or -1


def on_character(kept: "IO[bytes]", size: int, seen: int) -> int:
    """Cut the file to its size, and never inside a character."""
    kept.flush()
    if seen > size:
        end = part(kept, max(size - 4, 0), min(4, size))
        for back in range(1, len(end) + 1):
            byte = end[-back]
            if byte & 0xC0 != 0x80:
                needed = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
                size -= back if needed > back else 0
                break
    kept.truncate(size)
    return size


def part(kept: "IO[bytes]", at: int, size: int) -> bytes:
    """Read a piece of the file."""
    kept.seek(at)
    return kept.read(size)


def count_lines(kept: "IO[bytes]") -> int:
    """Count the lines of the file."""
    kept.seek(0)
    lines, last = 0, b"\n"
    for block in iter(lambda: kept.read(BLOCK), b""):
        lines, last = lines + block.count(b"\n"), block
    return lines + (not last.endswith(b"\n"))


def shell() -> str:
    """Find the shell that this program was started from."""
    try:
        started_by = os.readlink(f"/proc/{os.getppid()}/exe")
    except OSError:
        return "/bin/sh"
    return started_by if os.path.basename(started_by) in SHELLS else "/bin/sh"

"""Run a command and keep what it prints in a file, so that only little of it must be carried away."""

import codecs
import os
import select
import subprocess
import sys
import time
from contextlib import suppress

from deepagents.backends._bytes import lf_bytes, reason_of, whole_characters
from deepagents.backends.sandbox.scripts.common import MARK, Root, chunks, pack, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BLOCK = 1 << 16
LOOK_EVERY = 0.05
MOST_BLOCKS_IN_A_PIPE = 32
STREAM_EVERY = 0.2
MOST_IN_A_PIECE = 8000
MOST_IN_A_LINE = 500
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")


class Kept:
    """The output of a command: its beginning in a file, and its first and last bytes in memory."""

    def __init__(self, fd: int, params: "dict[str, Any]") -> None:
        self.fd = fd
        self.room: int = params["most_kept"]
        self.inline: int = params["most_inline"]
        self.shown: int = params["most_shown"]
        self.seen = self.size = self.lines = 0
        self.head = bytearray()
        self.tail = self.edge = b""
        self.problem: str | None = None
        self.streamed: int = params["most_streamed"]
        self.stream_from = self.stream_at = time.monotonic() + STREAM_EVERY
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.news = ""

    def put(self, data: bytes) -> None:
        """Take the next bytes; a file that takes no more hinders nothing."""
        if len(self.head) <= max(self.inline, self.shown):
            self.head += data
        self.tail = (self.tail + data)[-self.shown :]
        self._count(data)
        self.seen += len(data)
        if self.streamed > 0:
            self.news = (self.news + self.decoder.decode(data))[-MOST_IN_A_PIECE:]
        try:
            self._write(data[: max(self.room - self.size, 0)])
        except OSError as error:
            self.problem = reason_of(error)

    def _count(self, data: bytes) -> None:
        joined = self.edge + data
        self.edge = b"\r" if joined.endswith(b"\r") else b""
        self.lines += lf_bytes(joined[: len(joined) - len(self.edge)]).count(b"\n")

    def _write(self, data: bytes) -> None:
        while data and not self.problem:
            written = os.write(self.fd, data)
            self.size += written
            data = data[written:]

    def stream(self) -> None:
        """Print what is new, a few times a second; of a flood the newest part."""
        if self.streamed <= 0 or not self.news or time.monotonic() < self.stream_at:
            return
        piece, self.news, self.stream_at = self.news[: self.streamed], "", time.monotonic() + STREAM_EVERY
        self.streamed -= len(piece)
        # Short lines, because a provider may cut what it passes on, and a line that was torn says nothing.
        lines = [piece[at : at + MOST_IN_A_LINE] for at in range(0, len(piece), MOST_IN_A_LINE)]
        sys.stdout.write("".join(MARK + to_json(line) + "\n" for line in lines))
        sys.stdout.flush()

    def close(self) -> None:
        """End the file with a whole character; failures are one more problem."""
        try:
            if self.seen > self.size:
                os.lseek(self.fd, max(self.size - 4, 0), os.SEEK_SET)
                end = os.read(self.fd, 4)
                self.size -= len(end) - len(whole_characters(end))
                os.ftruncate(self.fd, self.size)
            os.close(self.fd)
        except OSError as error:
            self.problem = self.problem or reason_of(error)

    def report(self) -> "tuple[list[Any], dict[str, Any]]":
        """Return all of the output if it is short, else its first and last bytes."""
        if self.seen <= self.inline:
            return chunks(bytes(self.head)), {"seen": self.seen, "kept": self.seen}
        most = max(self.shown, self.inline - self.shown) if self.problem else self.shown
        head = whole_characters(bytes(self.head[:most]))
        tail_at = max(len(head), self.seen - self.shown)
        tail = self.tail[len(self.tail) - (self.seen - tail_at) :]
        joined = tail_at == len(head)
        ends_open = self.edge or not self.tail.endswith(b"\n")
        return [], {
            "seen": self.seen, "kept": self.size, "problem": self.problem, "joined": joined,
            "head": pack(head), "tail": pack(tail if joined else from_a_character(tail)),
            "lines": self.lines + bool(ends_open),
        }  # fmt: skip


def capture(params: "dict[str, Any]") -> "tuple[list[Any], dict[str, Any]]":
    """Return the exit code and the output: all of it, or its beginning and end when it was kept in the file.

    Without a command, tell what an earlier one left in the file.
    """
    target = Root(params["root"]).find(params["path"])
    if params["command"] is None:
        kept, exit_code = recover(target, params), None
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        kept = Kept(os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666), params)
        exit_code = run(params["command"], kept)
        kept.close()
    items, end = kept.report()
    if kept.problem or kept.seen <= kept.inline:
        with suppress(OSError):
            os.unlink(target)
    return items, dict(end, exit=exit_code)


def recover(target: bytes, params: "dict[str, Any]") -> Kept:
    """Look through a file as if its content were printed now."""
    kept = Kept(-1, dict(params, most_kept=0))
    with open(target, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            kept.put(block)
    kept.size = kept.seen
    return kept


def run(command: str, kept: Kept) -> int:
    """Run to the end of the command itself; once it was started, nothing here fails.

    What it leaves in the background is not waited for.
    """
    read_end, write_end = os.pipe()
    try:
        # As bytes: the locale may have no such letters.
        line = [shell(), "-c", command.encode("utf-8", "surrogateescape")]
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=write_end, stderr=write_end)
    finally:
        os.close(write_end)
    try:
        listen(process, read_end, kept)
    except OSError as error:
        kept.problem = reason_of(error)
    os.close(read_end)
    code = process.wait()
    return 128 - code if code < 0 else code


def listen(process: "subprocess.Popen[bytes]", read_end: int, kept: Kept) -> None:
    """Take what is printed until the command ends, and what is in the pipe then."""
    os.set_blocking(read_end, False)
    listening = True
    while process.poll() is None:
        if listening:
            listening = take(read_end, kept, LOOK_EVERY) >= 0
        else:
            time.sleep(0.001)
        kept.stream()
    for _ in range(MOST_BLOCKS_IN_A_PIPE):
        if not listening or take(read_end, kept, 0) <= 0:
            break
    # The last pieces came too soon after others; the output of a quick command comes at once anyway.
    kept.news += kept.decoder.decode(b"", True)
    kept.stream_at = kept.stream_from
    kept.stream()


def take(fd: int, kept: Kept, seconds: float) -> int:
    """Take what is there; give its size, -1 at the end of the stream."""
    ready, _, _ = select.select([fd], [], [], seconds)
    if not ready:
        return 0
    try:
        data = os.read(fd, BLOCK)
    except BlockingIOError:
        return 0
    kept.put(data)
    return len(data) or -1


def from_a_character(data: bytes) -> bytes:
    """Drop the rest of a character that was cut at the start."""
    at = 0
    while at < min(3, len(data)) and data[at] & 0xC0 == 0x80:
        at += 1
    return data[at:]


def shell() -> str:
    """Find the shell that this program was started from."""
    try:
        started_by = os.readlink(f"/proc/{os.getppid()}/exe")
    except OSError:
        return "/bin/sh"
    return started_by if os.path.basename(started_by) in SHELLS else "/bin/sh"

"""Run one shell command to its end, to a deadline, or until it is cancelled, in bounded memory."""

from __future__ import annotations

import codecs
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Final, Protocol

from deepagents._values import field, recordclass, valueclass
from deepagents.backends.local_shell.guard import Guard
from deepagents.backends.protocol import OnOutput

_LONGEST_HELD_LINE = 8192
STDERR_PREFIX = "[stderr] "
_BLOCK = 1 << 16
_MOST_BLOCKS_IN_A_PIPE = 32
# Seconds. No descriptor tells of a cancellation, so it is looked for.
_LOOK_EVERY = 0.05
_WATCH_EVERY = 0.02
_PAUSE = 0.001
_GRACE = 1.0
_MOST_REFUSALS = 20

STDOUT: Final = "stdout"
STDERR: Final = "stderr"


@valueclass
class Ended:
    """The end of a command; `exit_code` is negative for a signal, `None` when it was killed here.

    `excess` says for which bound it was killed, if that was not its time.
    """

    output: str
    left_out: int
    exit_code: int | None
    excess: str | None = None
    notes: tuple[str, ...] = ()


class Refusals(list[str]):
    """What was refused to a command, in sentences; commands that share a session get it too."""

    def __init__(self) -> None:
        super().__init__()
        self._sharing: dict[int, Refusals] = {}

    def note(self, refusal: str) -> None:
        """Add a sentence once; they are shown with the output, which must not grow with what is asked for."""
        if refusal not in self and len(self) < _MOST_REFUSALS:
            self.append(refusal)
        for each in tuple(self._sharing.values()):
            each.note(refusal)

    @contextmanager
    def share_with(self, other: Refusals) -> Generator[None]:
        """Note in another list too what is refused meanwhile."""
        self._sharing[id(other)] = other
        try:
            yield
        finally:
            del self._sharing[id(other)]


@valueclass
class Control:
    """What the caller of a command has to do with it while it runs.

    `on_output` is also called without text, many times a second, so that it can pass on what it holds back.
    `stdin` is a descriptor; by default the command's input is empty.
    """

    is_cancelled: threading.Event = field(default_factory=threading.Event)
    on_output: OnOutput | None = None
    stdin: int = subprocess.DEVNULL
    refused: Refusals = field(default_factory=Refusals)


def run_command(
    command: str | Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    most_bytes: int,
    control: Control,
    *,
    pass_fds: Collection[int] = (),
    describe_excess: Callable[[int], str | None] | None = None,
    leaves_nothing: bool = False,
) -> Ended:
    """Run a command of the shell, or a program with arguments, in a process group that ends with its time.

    What the command leaves running goes on, but is no longer listened to; with `leaves_nothing` it ends with
    the command, and the command with this process. `describe_excess` gets its process number many times a
    second, and says which bound it passed, if any.
    """
    with Guard() if leaves_nothing else nullcontext() as guard:
        if guard and isinstance(command, str):
            command, pass_fds = guard.delay(command), (guard.gate,)
        # A session of its own, so that a signal reaches all that the command started and not this process.
        started = subprocess.Popen(
            command, shell=isinstance(command, str), cwd=cwd, env=dict(env), start_new_session=True,
            stdin=control.stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=tuple(pass_fds),
        )  # fmt: skip
        if guard:
            guard.watch(started.pid)
        assert started.stdout is not None
        assert started.stderr is not None
        child = _Child(started.stdout, started.stderr, started, leaves_nothing)
        return follow(child, seconds, most_bytes, control, describe_excess)


class Process(Protocol):
    """A command that was started, with the other ends of its pipes."""

    @property
    def stdout(self) -> IO[bytes]:
        """What it prints."""
        ...

    @property
    def stderr(self) -> IO[bytes]:
        """What it prints about errors."""
        ...

    @property
    def pid(self) -> int:
        """Its number, or that of the process which holds it and all that it starts."""
        ...

    def has_ended(self) -> bool:
        """Return whether it has ended."""
        ...

    def signal(self, number: signal.Signals) -> None:
        """Signal it and what it started."""
        ...

    def wait(self) -> int:
        """Wait for its end, and return its exit code, negative for a signal."""
        ...


@valueclass
class _Child:
    """A command that is a child of this process."""

    stdout: IO[bytes]
    stderr: IO[bytes]
    started: subprocess.Popen[bytes]
    leaves_nothing: bool

    @property
    def pid(self) -> int:
        return self.started.pid

    def has_ended(self) -> bool:
        # Without waiting for it: that would free its number.
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def signal(self, number: signal.Signals) -> None:
        # Nobody has waited for it yet, so the system cannot have given its number to another process.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def wait(self) -> int:
        if self.leaves_nothing:
            self.signal(signal.SIGKILL)
        return self.started.wait()


def follow(
    process: Process,
    seconds: float,
    most_bytes: int,
    control: Control,
    describe_excess: Callable[[int], str | None] | None = None,
) -> Ended:
    """Listen to a command until it ends, and end it when its time is over or it is cancelled."""
    try:
        with _Listener(process, most_bytes, control.on_output, describe_excess) as listener:
            in_time = listener.listen(time.monotonic() + seconds, control.is_cancelled)
            if not in_time:
                # First a request, so that the command may tidy up and say why; then nothing can refuse.
                process.signal(signal.SIGTERM)
                listener.listen_to_the_last(time.monotonic() + _GRACE)
                process.signal(signal.SIGKILL)
            output, left_out = listener.close()
    except BaseException:
        process.signal(signal.SIGKILL)
        raise
    finally:
        exit_code = process.wait()
    return Ended(output, left_out, exit_code if in_time else None, listener.excess)


class _Listener:
    """Takes what a command prints, from both pipes, while it runs.

    The end of the pipes is not a sign that the command ended, nor the reverse: a process that it leaves in
    the background keeps them open.
    """

    def __init__(
        self,
        process: Process,
        most_bytes: int,
        on_output: OnOutput | None,
        describe_excess: Callable[[int], str | None] | None,
    ) -> None:
        self.excess: str | None = None
        self._process = process
        self._on_output = on_output
        self._describe_excess = describe_excess
        self._next_look = 0.0
        self._kept = Bounded(most_bytes)
        self._selector = selectors.DefaultSelector()
        self._streams: list[tuple[IO[bytes], Stream]] = []
        for pipe, name, prefix in ((process.stdout, STDOUT, ""), (process.stderr, STDERR, STDERR_PREFIX)):
            # A selector may report a pipe that has nothing after all; reading it must not wait.
            os.set_blocking(pipe.fileno(), False)
            stream = Stream(prefix, name)
            self._streams.append((pipe, stream))
            self._selector.register(pipe, selectors.EVENT_READ, stream)

    def __enter__(self) -> _Listener:
        return self

    def __exit__(self, *raised: object) -> None:
        self._selector.close()
        for pipe, _ in self._streams:
            pipe.close()

    def listen(self, deadline: float, is_cancelled: threading.Event) -> bool:
        """Take output until the command ends; `False` when it did not end in time."""
        while not self._process.has_ended():
            if is_cancelled.is_set() or time.monotonic() >= deadline or self._look():
                return False
            self._take_or_wait()
        self._drain()
        return True

    def _look(self) -> str | None:
        if self._describe_excess and time.monotonic() >= self._next_look:
            self.excess = self._describe_excess(self._process.pid)
            self._next_look = time.monotonic() + _WATCH_EVERY
        return self.excess

    def listen_to_the_last(self, deadline: float) -> None:
        """Take output until the command and all that it started are silent, or until the deadline."""
        while time.monotonic() < deadline and (self._selector.get_map() or not self._process.has_ended()):
            self._take_or_wait()
        self._drain()

    def _take_or_wait(self) -> None:
        if self._selector.get_map():
            self._take(_WATCH_EVERY if self._describe_excess else _LOOK_EVERY)
        else:
            time.sleep(_PAUSE)
        if self._on_output:
            self._on_output("", STDOUT)

    def _drain(self) -> None:
        """Take what is there without waiting for more."""
        # Never more than a pipe holds: what prints without end in the background would keep us here.
        for _ in range(_MOST_BLOCKS_IN_A_PIPE):
            if not self._selector.get_map() or not self._take(0):
                return

    def close(self) -> tuple[str, int]:
        """End every stream and return the output, and how many bytes of it were left out."""
        rests = [stream.feed(b"", final=True) for _, stream in self._streams]
        self._kept.add("\n".join(filter(None, rests)))
        for _, stream in self._streams:
            if self._on_output:
                self._on_output(stream.decode_now(b"", final=True), stream.name)
        return self._kept.close(), self._kept.left_out

    def _take(self, seconds: float) -> bool:
        # Standard output has the lower number, so it comes first where both are ready.
        ready = sorted(self._selector.select(seconds), key=lambda each: each[0].fd)
        for key, _ in ready:
            data = _read(key.fd)
            if data == b"":
                self._selector.unregister(key.fileobj)
            elif data:
                stream: Stream = key.data
                self._kept.add(stream.feed(data))
                if self._on_output:
                    self._on_output(stream.decode_now(data), stream.name)
        return bool(ready)


def _read(fd: int) -> bytes | None:
    try:
        return os.read(fd, _BLOCK)
    except BlockingIOError:
        return None


@recordclass
class Bounded:
    """Text up to `limit` bytes: whole when it fits, else its first and its last half."""

    limit: int
    left_out: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, text: str) -> None:
        """Add some text."""
        data = text.encode()
        room = self.limit // 2 - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        # Not at each addition: removing from the front moves all the rest.
        if len(self._tail) > 2 * self.limit:
            self._forget(len(self._tail) - self.limit)

    def close(self) -> str:
        """Return the text, with a line where something is missing."""
        size = len(self._head) + len(self._tail)
        if not self.left_out and size <= self.limit:
            return (self._head + self._tail).decode("utf-8", "ignore")
        self._forget(max(len(self._tail) - (self.limit - len(self._head)), 0))
        head, tail = self._head.decode("utf-8", "ignore"), self._tail.decode("utf-8", "ignore")
        return f"{head}\n... [{self.left_out} bytes left out] ...\n{tail}"

    def _forget(self, count: int) -> None:
        del self._tail[:count]
        self.left_out += count


_DECODER: Final = codecs.getincrementaldecoder("utf-8")


@recordclass
class Stream:
    """One stream of a command, decoded and prefixed line by line."""

    prefix: str
    name: str = STDOUT
    _decoder: codecs.IncrementalDecoder = field(default_factory=lambda: _DECODER("replace"))
    _decoder_of_pieces: codecs.IncrementalDecoder = field(default_factory=lambda: _DECODER("replace"))
    _held: str = ""
    _inside_line: bool = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the text that is ready: whole lines, and at the end or in a very long line all there is."""
        text = self._held + self._decoder.decode(data, final)
        whole, newline, self._held = text.rpartition("\n")
        ready = ""
        if newline:
            # Line by line, a flood of short ones would take a minute for half a gigabyte.
            ready = f"{self._start()}{whole.replace(newline, newline + self.prefix)}\n"
            self._inside_line = False
        # A progress bar or a binary may print megabytes without a newline.
        if self._held and (final or len(self._held) > _LONGEST_HELD_LINE):
            ready += self._start() + self._held
            self._held, self._inside_line = "", True
        return ready

    def decode_now(self, data: bytes, *, final: bool = False) -> str:
        """Return the same text as it comes: without a prefix, and not only when a line is whole."""
        return self._decoder_of_pieces.decode(data, final)

    def _start(self) -> str:
        return "" if self._inside_line else self.prefix

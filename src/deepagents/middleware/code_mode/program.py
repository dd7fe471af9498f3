"""Run a program in the interpreter, which has no files, no network and nothing of this process."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from threading import Timer
from time import monotonic
from typing import Any, Final

from deepagents._async import ParallelCode, in_thread, sleep
from deepagents._text import truncate
from deepagents.errors import ErrorCode, ToolFailure
from deepagents.middleware.code_mode.calls import CallFailed, ProgramCalls
from deepagents.middleware.code_mode.values import MOST_WRITTEN, is_too_large
from deepagents.tools._tool import ToolOutput, failure_text

_HELP: Final = "tool_help"
_SLEEPS: Final = ("system.sleep", "system.async_sleep")
_MOST_PRINTED: Final = 1_000_000
_MOST_OF_A_REASON: Final = 4_000
_GRACE: Final = 1.0
_MOST_AT_ONCE: Final = 32
_STEPS_PER_CALL: Final = 4
_FURTHER_STEPS: Final = 10_000


class TimeIsOver(Exception):
    """A program took longer than it may."""


class Printed:
    """What a program prints, as far as there is room for it."""

    def __init__(self) -> None:
        self.text = ""
        self._left_out = 0

    def add(self, stream: str, text: str) -> None:
        """Keep a part."""
        room = _MOST_PRINTED - len(self.text)
        self.text += text[:room]
        self._left_out += max(len(text) - room, 0)

    def __str__(self) -> str:
        more = f"\n[{self._left_out} more characters were printed]" if self._left_out else ""
        return f"{self.text.rstrip()}{more}"


class Program:
    """One run of a program.

    Args:
        calls: makes its calls.
        seconds: how long it may take, the time included in which it waits for calls.
        memory: how many bytes its values may take.
    """

    def __init__(self, calls: ProgramCalls, seconds: float, memory: int) -> None:
        self._calls = calls
        self._seconds = seconds
        self._memory = memory
        self._due = monotonic() + seconds
        self._printed = Printed()
        self._running = ParallelCode[dict[str, Any]]()
        self._asked: dict[int, tuple[Any, str]] = {}
        self._started: dict[int, str] = {}

    async def run(self, code: str) -> ToolOutput:
        """Run the program and return what it printed and its last value, or why it ended early."""
        # A quarter of a second where it is the first time.
        monty = await in_thread(partial(import_module, "pydantic_monty"))
        try:
            with self._session(monty) as session:
                value = await self._drive(monty, session, code)
        except (TimeIsOver, monty.MontyCrashedError) as error:
            if monotonic() >= self._due:
                return self._fail("timeout", f"the program took longer than {self._seconds:g} s")
            return self._fail("tool_failed", f"the interpreter of the program ended: {error}")
        except monty.MontyError as error:
            # A call that is cut off as the time ends may fail the program before its own clock does.
            code = "timeout" if monotonic() >= self._due else _code_of(error.exception())
            return self._fail(code, f"the program failed: {_describe(error)}")
        finally:
            await self._running.cancel()
        if self._asked or self._started:
            forgotten = dict.fromkeys([*(name for _, name in self._asked.values()), *self._started.values()])
            return self._fail(
                "tool_failed",
                f"the program did not wait for {', '.join(forgotten)}: write `await` before a call",
            )
        try:
            last = await in_thread(partial(_write, value))
        except ToolFailure as failure:
            return self._fail(failure.code, failure.text)
        text = "\n".join(filter(None, (str(self._printed), last)))
        return ToolOutput(
            text or "The program ended; it printed nothing, and its last line has no value.",
            update=self._calls.update,
        )

    @contextmanager
    def _session(self, monty: Any) -> Generator[Any]:
        # One process for a program, 3 ms: so none is left when a run, a loop or this process ends.
        limits = {
            "max_feed_duration_secs": self._seconds,
            "max_memory": self._memory,
            "max_suspensions": self._calls.most * _STEPS_PER_CALL + _FURTHER_STEPS,
        }
        with monty.Monty(min_processes=1, max_processes=1) as pool, pool.checkout(limits=limits) as session:
            # While it computes it answers nobody, so that only its end stops it.
            stop = partial(_kill, session.worker_pid)
            timer = Timer(self._left() + _GRACE, stop)
            timer.daemon = True
            timer.start()
            try:
                yield session
            except monty.MontyError:
                raise
            except BaseException:
                stop()
                raise
            finally:
                timer.cancel()

    async def _drive(self, monty: Any, session: Any, code: str) -> Any:
        """Answer what the program asks for, until it has ended."""
        step = await in_thread(partial(session.feed_start, code, print_callback=self._printed.add))
        while not isinstance(step, monty.MontyComplete):
            if isinstance(step, monty.FutureSnapshot):
                go_on = partial(step.resume, await self._wait())
            elif isinstance(step, monty.FunctionSnapshot):
                go_on = await self._answer(step)
            elif step.object_id is None and self._calls.may_exist(step.variable_name):
                go_on = partial(step.resume, value=_stub(step.variable_name))
            else:
                go_on = step.resume
            step = await in_thread(go_on)
        return step.output

    async def _answer(self, step: Any) -> Any:
        """Return how to go on from a call: with a future, or at once with the result."""
        name = str(step.function_name)
        if step.is_os_function and name not in _SLEEPS:
            return step.resume_auto
        is_help = name == _HELP
        is_async = self._calls.may_exist(name) or name == "system.async_sleep"
        if not (step.allow_eager_await if is_help else is_async):
            return partial(step.resume, await self._settle(step, name))
        # It is made where the program waits: a call without `await` is none, as in Python.
        self._asked[step.call_id] = step, name
        return partial(step.resume, {"future": ...})

    async def _settle(self, step: Any, name: str) -> dict[str, Any]:
        """Do what a call asks for, and return its result for the interpreter."""
        try:
            if name in _SLEEPS:
                await sleep(min(max(step.args[0], 0), self._left()))
                if not self._left():
                    raise TimeIsOver
                return {"return_value": None}
            if name == _HELP:
                return {"return_value": self._calls.describe([*step.args, *step.kwargs.values()])}
            return {"return_value": await self._calls.call(name, step.args, step.kwargs)}
        except CallFailed as failure:
            return {"exc_type": "RuntimeError", "message": str(failure)}

    async def _wait(self) -> dict[int, dict[str, Any]]:
        """Make the calls that were asked for, and wait until some have ended.

        Raises:
            TimeIsOver: where that takes too long.
        """
        # A thread or a connection for each of a thousand calls would slow all else.
        for number in [*self._asked][: _MOST_AT_ONCE - len(self._started)]:
            step, name = self._asked.pop(number)
            self._started[number] = name
            await self._running.start(number, partial(self._settle, step, name))
        ended = await self._running.wait(self._left())
        if not ended:
            raise TimeIsOver
        for number in ended:
            del self._started[number]
        return ended

    def _left(self) -> float:
        return max(self._due - monotonic(), 0.0)

    def _fail(self, code: ErrorCode, reason: str) -> ToolOutput:
        parts = [failure_text(code, reason)]
        if printed := str(self._printed):
            parts.append(f"It had printed:\n{printed}")
        if made := self._calls.list_made():
            parts.append(f"It had made these calls:\n{made}")
        return ToolOutput("\n\n".join(parts), update=self._calls.update, code=code)


def _write(value: Any) -> str:
    """Write the last value of a program.

    Raises:
        ToolFailure: for one that is too large, and one that cannot be written.
    """
    if value is None or isinstance(value, str):
        return value or ""
    if is_too_large(value):
        reason = f"the last value has more than {MOST_WRITTEN:,} characters: return a part of it"
        raise ToolFailure("too_large", reason)
    try:
        return repr(value)
    except (ValueError, RecursionError) as error:
        raise ToolFailure("tool_failed", f"the last value cannot be shown: {error}") from error


def _describe(error: Any) -> str:
    display: Any = getattr(error, "display", None)
    return truncate(display() if display else str(error), _MOST_OF_A_REASON)


def _code_of(error: BaseException) -> ErrorCode:
    if isinstance(error, TimeoutError):
        return "timeout"
    return "too_large" if isinstance(error, MemoryError) else "tool_failed"


def _stub(name: str) -> Any:
    """Make what a program holds where it names a tool without calling it."""

    def tool() -> None: ...

    tool.__name__ = name
    return tool


def _kill(process: int | None) -> None:
    if process is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)

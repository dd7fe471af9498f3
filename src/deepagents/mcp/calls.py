"""Follow one call of a tool: its time, its progress, and what its server asks meanwhile."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, cast

import anyio
from mcp import types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from deepagents._text import escape_controls, truncate
from deepagents._values import recordclass
from deepagents.errors import ErrorCode, ToolFailure
from deepagents.mcp import offered, wire
from deepagents.mcp.entries import ServerEntry
from deepagents.mcp.tools import CallResult

MOST_OF_ERROR: Final = 10_000
_MOST_OF_QUESTION: Final = 4_000
_MOST_QUESTIONS: Final = 100
"""How many questions a call may ask; the others are cancelled."""
_TIMES: Final = 10
"""How many times its limit a call may take that reports progress."""
_PAUSE: Final = 0.1
"""Seconds between two reports of progress that are passed on."""

current: Final[ContextVar[Call | None]] = ContextVar("deepagents_mcp_call", default=None)
"""The call whose messages are sent here; the SDK carries it over HTTP to what the server sends in return."""


@recordclass
class Batch:
    """Questions that a server asks at one time, by their keys, and the answers that wait for a person."""

    requests: list[dict[str, Any]]
    answers: dict[str, asyncio.Future[Any]]
    shown: bool = False

    def question(self, server: str, tool: str) -> dict[str, Any]:
        """Return the questions as a person is asked them, in the form of LangChain's own interrupt."""
        name = escape_controls(tool)
        return {"type": "mcp_elicitation", "server": server, "tool_name": name, "requests": self.requests}

    def answer(self, given: Any) -> None:
        """Answer all questions, once; what is not an answer of the right form cancels."""
        found: Any = cast("dict[str, Any]", given).get("responses") if isinstance(given, dict) else None
        responses = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        # A server that was started again has other keys for the same question.
        only = next(iter(responses.values())) if len(responses) == len(self.answers) == 1 else None
        for key, waiting in self.answers.items():
            if not waiting.done():
                waiting.set_result(_read_answer(responses.get(key, only)))


class Call:
    """One call under way in the loop of the servers; `who` is the thread of the run that made it."""

    def __init__(
        self,
        entry: ServerEntry,
        tool: str,
        seconds: float,
        who: str | None,
        asks: bool,
        report: Callable[[float, float | None, str | None], None],
    ) -> None:
        self.who, self.asks, self.report = who, asks, report
        self._entry, self._tool, self._seconds = entry, tool, seconds
        self._batches: list[Batch] = []
        self._changed = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None
        self._scope = anyio.CancelScope()
        self._started = self._reported = self._paused_at = 0.0
        self._questions = self._asked = 0

    def start(self, work: Callable[[Call], Any]) -> None:
        """Begin the work of this call, as a task of its own: it goes on while no one waits for it."""
        self._task = asyncio.ensure_future(self._run(work))
        self._task.add_done_callback(lambda _: self._changed.set())

    async def _run(self, work: Callable[[Call], Any]) -> Any:
        current.set(self)
        self._started = anyio.current_time()
        with self._scope:
            self._renew()
            return await work(self)
        if self._task is not None and self._task.cancelling():
            raise asyncio.CancelledError
        spent = f"{self._seconds:g} seconds"
        raise ToolFailure("timeout", f"{self._entry.name}: {self._tool!r} did not answer within {spent}")

    async def reach(self, number: int) -> Batch | CallResult:
        """Wait for so many batches of questions, and return that one; or the result of the call.

        Raises:
            ToolFailure: when the call failed.
        """
        task = self._task
        assert task is not None
        while len(self._batches) <= number and not task.done():
            self._changed.clear()
            await self._changed.wait()
        if len(self._batches) > number:
            batch = self._batches[number]
            batch.shown = True
            return batch
        return task.result()

    def cancel(self) -> None:
        """End the call; the SDK tells the server."""
        if self._task is not None:
            self._task.cancel()

    async def ask(self, key: str, params: Any) -> types.ElicitResult:
        """Ask a person a question of the server, while the time of the call stands still."""
        may_ask = self.asks and self._asked < _MOST_QUESTIONS
        request = self._read_question(key, params) if may_ask else None
        if request is None:
            return types.ElicitResult(action="cancel")
        answer: asyncio.Future[types.ElicitResult] = asyncio.get_running_loop().create_future()
        batch = self._batches[-1] if self._batches and not self._batches[-1].shown else None
        if batch is None or key in batch.answers:
            batch = Batch([], {})
            self._batches.append(batch)
        batch.requests.append(request)
        batch.answers[key] = answer
        self._asked += 1
        self._pause()
        self._changed.set()
        try:
            return await answer
        finally:
            self._resume()

    def _read_question(self, key: str, params: Any) -> dict[str, Any] | None:
        text = truncate(escape_controls(self._entry.redact(str(params.message))), _MOST_OF_QUESTION)
        base = {"key": key, "message": text}
        if isinstance(params, types.ElicitRequestURLParams):
            url = escape_controls(str(params.url))
            return {**base, "mode": "url", "url": url} if len(url) <= _MOST_OF_QUESTION else None
        plain: dict[str, Any] = params.requested_schema
        try:
            offered.measure(plain)
        except offered.Unfit:
            return None
        shown = offered.storable(offered.clean_all(plain, self._entry.redact))
        return {**base, "mode": "form", "requested_schema": shown}

    def _pause(self) -> None:
        self._questions += 1
        if self._questions == 1:
            self._paused_at = anyio.current_time()
            self._scope.deadline = math.inf

    def _resume(self) -> None:
        self._questions -= 1
        if not self._questions:
            self._started += anyio.current_time() - self._paused_at
            self._renew()

    def _renew(self) -> None:
        last = self._started + _TIMES * self._seconds
        self._scope.deadline = min(anyio.current_time() + self._seconds, last)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report of the server: the call has its time anew."""
        now = anyio.current_time()
        if not self._questions:
            self._renew()
        if now - self._reported >= _PAUSE:
            self._reported = now
            text = None if message is None else describe(self._entry, message, 1_000)
            self.report(progress, total, text)


def _read_answer(given: Any) -> types.ElicitResult:
    try:
        answer = types.ElicitResult.model_validate(given)
    except ValidationError:
        return types.ElicitResult(action="cancel")
    return answer if answer.action == "accept" else types.ElicitResult(action=answer.action)


def describe(entry: ServerEntry, text: str, most: int) -> str:
    """Return a text of a server as others may read it: no secret, no control characters, not too long."""
    return truncate(escape_controls(entry.redact(text)), most)


def explain(entry: ServerEntry, error: BaseException) -> ToolFailure:
    """Return the failure that a model reads about what went wrong with a server."""
    error = innermost(error)
    if isinstance(error, ToolFailure):
        return error
    code: ErrorCode = "remote_failed"
    if isinstance(error, MCPError):
        code = "too_large" if error.code == wire.TOO_LARGE else code
        text = error.message
    elif isinstance(error, ValidationError):
        text = f"its answer does not keep to the protocol ({error.title})"
    else:
        text = str(error) or type(error).__name__
    return ToolFailure(code, f"the MCP server {entry.name!r} failed: {describe(entry, text, MOST_OF_ERROR)}")


def innermost(error: BaseException) -> BaseException:
    """Return the error behind groups of errors, the first where there are several."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def data_of(error: BaseException) -> Mapping[str, Any]:
    """Return what an error of the protocol holds for programs."""
    data: object = error.data if isinstance(error, MCPError) else None
    return cast("Mapping[str, Any]", data) if isinstance(data, dict) else {}

"""Ask an Agent Protocol server within a time limit, as often as it may be asked, and say how a task stands.

Whatever goes wrong is a `RemoteFailure` with a code.
"""

from __future__ import annotations

import asyncio
import html
import math
import time
from collections.abc import Callable, Hashable, Mapping
from threading import Lock
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.errors import APIStatusError

from deepagents._async import IOCall, await_thread, start_thread
from deepagents._text import truncate
from deepagents.errors import ErrorCode, ToolFailure
from deepagents.middleware.async_subagents.spec import (
    AsyncAgent,
    as_mapping,
    is_plain_id,
)

Run = Mapping[str, Any]

REQUEST_SECONDS: Final = 20.0
JUST_NOW: Final = 0.5
"""Seconds for which what a server said is taken as current at the end of a run."""
# A timeout of 0 would fail at once, although the server may answer.
_SHORTEST: Final = 0.05
_MAX_AT_ONCE: Final = 8
_FIRST_PAUSE: Final = 15.0
_LONGEST_PAUSE: Final = 300.0
_MAX_REMEMBERED: Final = 10_000
# Requests are minutes apart: a pooled connection would be dead when it is needed again, and leak until then.
_HEADERS: Final = {"Connection": "close"}
_MAX_DETAIL: Final = 300
_RUN_STATUSES: Final = frozenset({"pending", "running", "error", "success", "timeout", "interrupted"})

_SIGN_IN: Final = (
    "It does not let us in: say so, the headers of its spec or the API key have to be put right."
)
_ADVICE: Final = {
    401: _SIGN_IN,
    403: _SIGN_IN,
    404: "It does not know this: the server may have been restarted, or the graph_id be wrong.",
    409: "It is busy with this task: wait, or cancel it first.",
    422: "It does not take this: the graph_id of the spec may be wrong.",
    429: "It asks to be left alone for a while: go on with something else first.",
}
_LATER: Final = "Go on with something else and try again later; if that fails too, say that it is down."


class RemoteFailure(ToolFailure):
    """A server refused, failed or did not answer; `status` is its HTTP status, if it answered."""

    def __init__(self, code: ErrorCode, text: str, status: int | None = None) -> None:
        super().__init__(code, text)
        self.status = status


class Clients:
    """Make the clients of all servers once: one for blocking calls, and one for each event loop."""

    def __init__(self) -> None:
        self._blocking: dict[Any, Any] = {}
        # A client is bound to the loop that first used it; weak keys let both go when the loop is closed.
        self._awaiting: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, Any]] = WeakKeyDictionary()
        self._lock = Lock()

    def get_blocking(self, agent: AsyncAgent) -> Any:
        """Return the client for blocking calls.

        Raises:
            RemoteFailure: for an agent without a url.
        """
        if agent.url is None:
            raise RemoteFailure(
                "not_supported",
                f"no url configured for {agent.name!r}: without one, an async subagent is reached inside the "
                "server that runs this agent, and only when the agent is awaited (ainvoke, astream). Give "
                "its spec a url to use it here.",
            )
        return self._get(self._blocking, get_sync_client, agent)

    async def get_awaiting(self, agent: AsyncAgent) -> Any:
        """Return the client of the running event loop."""
        with self._lock:
            made = self._awaiting.setdefault(asyncio.get_running_loop(), {})
        # Made in a thread, since that reads certificates from the disk.
        return made.get(agent.server) or await await_thread(lambda: self._get(made, get_client, agent))

    def _get(self, made: dict[Any, Any], make: Callable[..., Any], agent: AsyncAgent) -> Any:
        with self._lock:
            if agent.server not in made:
                headers = {**_HEADERS, **agent.headers}
                made[agent.server] = make(url=agent.url, headers=headers, timeout=REQUEST_SECONDS)
            return made[agent.server]


class RemoteClient:
    """The requests that can be made to one agent's server, which share `seconds` from now on.

    Each answers or raises `RemoteFailure`.
    """

    def __init__(self, agent: AsyncAgent, clients: Clients, seconds: float = REQUEST_SECONDS) -> None:
        self.agent = agent
        self._clients = clients
        self._seconds = seconds
        self._ends = time.monotonic() + seconds

    async def create_thread(self, thread_id: str, metadata: Mapping[str, str]) -> str:
        """Create a thread and return its id."""
        answer = await self._ask(lambda client: client.threads.create(thread_id=thread_id, metadata=metadata))
        created = as_mapping(answer).get("thread_id")
        if not is_plain_id(created):
            raise make_malformed_failure("a new thread")
        return cast("str", created)

    async def get_thread(self, thread_id: str) -> Mapping[str, Any]:
        """Return a thread."""
        answer = await self._ask(lambda client: client.threads.get(thread_id))
        if not isinstance(answer, Mapping):
            raise make_malformed_failure("a thread")
        return cast("Mapping[str, Any]", answer)

    async def create_run(
        self,
        thread_id: str,
        messages: list[dict[str, Any]],
        options: Mapping[str, Any],
        assistant_id: str | None = None,
    ) -> Run:
        """Start a run of the agent, or of another assistant, on a thread."""
        run_of = assistant_id or self.agent.graph_id
        given = {"messages": messages}
        answer = await self._ask(
            lambda client: client.runs.create(thread_id, assistant_id=run_of, input=given, **options)
        )
        return _as_run(answer)

    async def get_run(self, thread_id: str, run_id: str) -> Run:
        """Return a run."""
        return _as_run(await self._ask(lambda client: client.runs.get(thread_id, run_id)))

    async def get_newest_run(self, thread_id: str) -> Run | None:
        """Return the newest run of a thread, `None` when it has none."""
        answer = await self._ask(lambda client: client.runs.list(thread_id, limit=1))
        if not isinstance(answer, list):
            raise make_malformed_failure("a list of runs")
        runs = cast("list[Any]", answer)
        return _as_run(runs[0]) if runs else None

    async def cancel_run(self, thread_id: str, run_id: str) -> None:
        """Cancel a run."""
        await self._ask(lambda client: client.runs.cancel(thread_id, run_id))

    async def _ask(self, question: Callable[[Any], Any]) -> Any:
        def block() -> Any:
            client = self._clients.get_blocking(self.agent)
            # The client's own timeout bounds each read, not the whole answer, so the caller stops waiting.
            return start_thread(lambda: question(client)).result(self._remaining())

        async def wait() -> Any:
            client = await self._clients.get_awaiting(self.agent)
            return await asyncio.wait_for(question(client), self._remaining())

        try:
            return await IOCall(block, wait)
        except RemoteFailure:
            raise
        except Exception as error:
            raise self._as_failure(error) from error

    def _remaining(self) -> float:
        return max(self._ends - time.monotonic(), _SHORTEST)

    def _as_failure(self, error: Exception) -> RemoteFailure:
        """Describe an error without its own text, which may hold addresses and headers."""
        if isinstance(error, APIStatusError):
            status = error.status_code
            # An answer about credentials may repeat them.
            words = "" if status in (401, 403) else " ".join(error.message.split())
            detail = f": {truncate(html.escape(words, quote=False), _MAX_DETAIL)}" if words else ""
            advice = _ADVICE.get(status, _LATER)
            return RemoteFailure("remote_failed", f"the server answered {status}{detail}. {advice}", status)
        # By name too: the timeouts of httpx are no `TimeoutError`, and it is not imported for them.
        if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
            return RemoteFailure("timeout", f"no answer within {self._seconds:g} s. {_LATER}")
        happened = f"cannot be reached, or hung up ({type(error).__name__})"
        if isinstance(error, ValueError):
            happened = "answered with something that is not JSON"
        return RemoteFailure("remote_failed", f"the server {happened}. {_LATER}")


def make_malformed_failure(expected: str) -> RemoteFailure:
    """Make the failure for an answer that does not follow the protocol."""
    return RemoteFailure(
        "remote_failed",
        f"the server's answer is not that of an Agent Protocol server ({expected}). Do not try again: say "
        "that the url of its spec may be wrong.",
    )


def _as_run(answer: Any) -> Run:
    run = as_mapping(answer)
    status: Any = run.get("status")
    if not is_plain_id(run.get("run_id")) or not isinstance(status, str) or status not in _RUN_STATUSES:
        raise make_malformed_failure("a run")
    return run


class PollSchedule:
    """Decide which tasks may be polled now. It lives in memory; after a restart everything may be polled.

    A server that fails is left alone for 15 s, then for twice as long each time, at most 5 minutes.
    """

    def __init__(self, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval
        self._clock = clock
        self._polled: dict[str, float] = {}
        self._pauses: dict[Hashable, tuple[float, float]] = {}
        self._lock = Lock()

    def choose(self, servers: Mapping[str, Hashable], within: float | None = None) -> list[str]:
        """Choose from tasks, given with their servers, those that were polled longest ago.

        A task is due when it was not polled for `within` seconds; default the interval of this schedule.
        """
        now, least = self._clock(), self._interval if within is None else min(within, self._interval)
        with self._lock:
            age = {task_id: now - self._polled.get(task_id, -math.inf) for task_id in servers}
            due = [
                task_id
                for task_id, server in servers.items()
                if age[task_id] >= least and now >= self._pauses.get(server, (0.0, 0.0))[1]
            ]
            chosen = sorted(due, key=age.__getitem__, reverse=True)[:_MAX_AT_ONCE]
            if len(self._polled) > _MAX_REMEMBERED:
                self._polled.clear()
            # Noted before there is an answer, so that parallel runs do not ask about it as well.
            self._polled.update(dict.fromkeys(chosen, now))
            return chosen

    def note_polled(self, task_id: str, seconds_ago: float = 0.0) -> None:
        """Note that a task was asked about, or given work, outside of a poll."""
        with self._lock:
            self._polled[task_id] = self._clock() - seconds_ago

    def note_answer(self, server: Hashable) -> None:
        """Note that a server answered: it is not left alone any more."""
        with self._lock:
            self._pauses.pop(server, None)

    def note_failure(self, server: Hashable) -> None:
        """Note that a server failed, once for all polls of one round."""
        now = self._clock()
        with self._lock:
            pause, until = self._pauses.get(server, (0.0, 0.0))
            if now >= until:
                pause = min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
                self._pauses[server] = pause, now + pause

"""Ask an Agent Protocol server within a time limit, and work out the status of a task from its answers.

Whatever goes wrong is a `RemoteFailure` with a code.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.errors import APIStatusError

from deepagents._async import IOCall, await_thread, start_thread
from deepagents._text import truncate
from deepagents.errors import ErrorCode, ToolFailure
from deepagents.middleware.async_subagents.spec import RemoteAgent
from deepagents.middleware.async_subagents.state import UNFINISHED, AsyncTask, as_mapping, is_plain_id

Run = Mapping[str, Any]

REQUEST_SECONDS: Final = 20.0
# A timeout of 0 would fail at once, although the server may answer.
_SHORTEST: Final = 0.05
# Requests are minutes apart: a pooled connection would be dead when it is needed again, and leak until then.
_HEADERS: Final = {"Connection": "close"}
_API_KEYS: Final = ("LANGGRAPH_API_KEY", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")
_MAX_DETAIL: Final = 300
_GENERIC_ERROR: Final = "The task failed; its server does not say why."
_NEVER_BEGAN: Final = "The task never began: start it again if it is still needed."
_MAX_ERROR: Final = 4_000
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

    @property
    def is_undecided(self) -> bool:
        """Whether the server may have done what it was asked."""
        return self.status is None and self.code != "not_supported"


class Clients:
    """Make the clients of all servers once: one for blocking calls, and one for each event loop."""

    def __init__(self) -> None:
        self._blocking: dict[Any, Any] = {}
        # A client is bound to the loop that first used it; weak keys let both go when the loop is closed.
        self._awaiting: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, Any]] = WeakKeyDictionary()
        self._lock = Lock()

    def get_blocking(self, agent: RemoteAgent) -> Any:
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

    async def get_awaiting(self, agent: RemoteAgent) -> Any:
        """Return the client of the running event loop."""
        with self._lock:
            made = self._awaiting.setdefault(asyncio.get_running_loop(), {})
        # Made in a thread, since that reads certificates from the disk.
        return made.get(agent.server) or await await_thread(lambda: self._get(made, get_client, agent))

    def _get(self, made: dict[Any, Any], make: Callable[..., Any], agent: RemoteAgent) -> Any:
        with self._lock:
            if agent.server not in made:
                headers = {**_HEADERS, **agent.headers}
                made[agent.server] = make(url=agent.url, headers=headers, timeout=REQUEST_SECONDS)
            return made[agent.server]


@dataclass(slots=True)
class TimeBudget:
    """The seconds that an operation has for all its requests; they run from the first request."""

    seconds: float
    _ends: float | None = None

    def remaining(self) -> float:
        """Return the seconds that are left."""
        if self._ends is None:
            self._ends = time.monotonic() + self.seconds
        return max(self._ends - time.monotonic(), _SHORTEST)


@dataclass(frozen=True, slots=True)
class RemoteClient:
    """The questions that can be put to one agent's server; each answers or raises `RemoteFailure`."""

    agent: RemoteAgent
    clients: Clients = field(repr=False)
    budget: TimeBudget

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
        try:
            client = await IOCall(
                lambda: self.clients.get_blocking(self.agent), lambda: self.clients.get_awaiting(self.agent)
            )
            return await IOCall(lambda: self._block(question, client), lambda: self._wait(question, client))
        except RemoteFailure:
            raise
        except Exception as error:
            raise _as_failure(self.agent, error, self.budget.seconds) from error

    def _block(self, question: Callable[[Any], Any], client: Any) -> Any:
        # The client's own timeout bounds each read, not the whole answer, so the caller stops waiting here.
        return start_thread(lambda: question(client)).result(self.budget.remaining())

    async def _wait(self, question: Callable[[Any], Any], client: Any) -> Any:
        return await asyncio.wait_for(question(client), self.budget.remaining())


def make_malformed_failure(expected: str) -> RemoteFailure:
    """Make the failure for an answer that does not follow the protocol."""
    return RemoteFailure(
        "remote_failed",
        f"the server's answer is not that of an Agent Protocol server ({expected}). Do not try again: say "
        "that the url of its spec may be wrong.",
    )


def redact_secrets(agent: RemoteAgent, text: str) -> str:
    """Replace headers and API keys that a server may have repeated in its text."""
    values = [*agent.headers.values(), *(os.environ.get(key, "") for key in _API_KEYS)]
    # Shorter parts are words such as `Bearer`, which would vanish from any text.
    parts = {part for value in values for part in (value, *value.split()) if len(part) >= 8}
    # The longest first: a shorter part may be inside it.
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, "***")
    return text


def _as_run(answer: Any) -> Run:
    run = as_mapping(answer)
    status: Any = run.get("status")
    if not is_plain_id(run.get("run_id")) or not isinstance(status, str) or status not in _RUN_STATUSES:
        raise make_malformed_failure("a run")
    return run


def _as_failure(agent: RemoteAgent, error: Exception, seconds: float) -> RemoteFailure:
    """Describe an error without its own text, which may hold addresses and headers."""
    if isinstance(error, APIStatusError):
        status = error.status_code
        # An answer about credentials may repeat them.
        detail = "" if status in (401, 403) else _describe_detail(agent, error.message)
        advice = _ADVICE.get(status, _LATER)
        return RemoteFailure("remote_failed", f"the server answered {status}{detail}. {advice}", status)
    # By name too: the timeouts of httpx are no `TimeoutError`, and it is not imported for them.
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return RemoteFailure("timeout", f"no answer within {seconds:g} s. {_LATER}")
    if isinstance(error, ValueError):
        return RemoteFailure(
            "remote_failed", f"the server answered with something that is not JSON. {_LATER}"
        )
    kind = type(error).__name__
    return RemoteFailure("remote_failed", f"the server cannot be reached, or hung up ({kind}). {_LATER}")


def _describe_detail(agent: RemoteAgent, message: str) -> str:
    words = " ".join(redact_secrets(agent, message).split())
    return f": {truncate(words, _MAX_DETAIL)}" if words else ""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The status and run of a task, with its result, its questions to a person, or its error."""

    status: str
    run_id: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    interrupts: tuple[Mapping[str, Any], ...] = ()
    error: str = ""


async def fetch_status(client: RemoteClient, task: AsyncTask) -> TaskStatus:
    """Ask for the status of a task: one request while it runs, two or three when it has ended.

    Raises:
        RemoteFailure: when the server does not say.
    """
    if task["status"] == "cancelled":
        return TaskStatus("cancelled", task["run_id"])
    thread_id, run_id = task["thread_id"], task["run_id"]
    run: Run | None = await client.get_run(thread_id, run_id) if run_id else None
    # An interrupted run may have been replaced by an update, whose run is then the newest of the thread.
    if run is None or run["status"] == "interrupted":
        run = await client.get_newest_run(thread_id)
    if run is None:
        return TaskStatus("error", run_id, error=_NEVER_BEGAN)
    if run["status"] in UNFINISHED or run["status"] == "timeout":
        return TaskStatus(run["status"], run["run_id"])
    thread = await client.get_thread(thread_id)
    # A newer run is under way or has failed, and that is the one that counts.
    if run["status"] == "success" and thread.get("status") in ("busy", "error"):
        run = await client.get_newest_run(thread_id) or run
    return _combine(client, run, thread)


def _combine(client: RemoteClient, run: Run, thread: Mapping[str, Any]) -> TaskStatus:
    values, interrupts = as_mapping(thread.get("values")), _interrupts_of(thread)
    run_id: str = run["run_id"]
    match run["status"], thread.get("status"):
        # The protocol reports a run that stopped to ask a person as a success on an interrupted thread.
        case (("success" | "interrupted"), "interrupted") if interrupts or run["status"] == "success":
            return TaskStatus("waiting", run_id, values, interrupts)
        case "interrupted", _:
            return TaskStatus("cancelled", run_id)
        case ("pending" | "running") as status, _:
            return TaskStatus(status, run_id)
        case "success", "busy":
            return TaskStatus("running", run_id)
        case ("error", _) | (_, "error"):
            return TaskStatus("error", run_id, error=redact_secrets(client.agent, _error_of(thread)))
        case status, _:
            return TaskStatus(status, run_id, values)


def _interrupts_of(thread: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    by_node = as_mapping(thread.get("interrupts"))
    lists = [cast("list[object]", each) for each in by_node.values() if isinstance(each, list)]
    found = [as_mapping(each) for each in chain.from_iterable(lists)]
    return tuple({"id": each.get("id"), "value": each.get("value")} for each in found if each)


def _error_of(thread: Mapping[str, Any]) -> str:
    given: Any = thread.get("error")
    if isinstance(given, Mapping):
        parts = [cast("Mapping[str, Any]", given).get(key) for key in ("error", "message")]
        given = ": ".join(part for part in parts if isinstance(part, str) and part)
    return truncate(given, _MAX_ERROR) if isinstance(given, str) and given else _GENERIC_ERROR

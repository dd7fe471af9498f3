"""Ask an Agent Protocol server within a time limit, as often as it may be asked.

Whatever goes wrong is a `RemoteFailure` with a code.
"""

from __future__ import annotations

import asyncio
import html
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from itertools import chain
from threading import Lock
from typing import Any, Final, NotRequired, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.messages import BaseMessage, message_to_dict
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from deepagents._async import IOCall, await_thread, start_thread, within
from deepagents._text import truncate
from deepagents.errors import ErrorCode, ToolFailure
from deepagents.middleware.async_subagents.spec import (
    UNFINISHED,
    AsyncAgent,
    AsyncTask,
    PlainId,
    RunStatus,
    TaskStatus,
    as_mapping,
)

T = TypeVar("T")


class Run(TypedDict):
    """A run."""

    run_id: PlainId
    status: RunStatus


class Thread(TypedDict):
    """A thread: how it stands, what it holds, and its questions to a person by their nodes."""

    status: NotRequired[str]
    values: NotRequired[Any]
    error: NotRequired[Any]
    interrupts: NotRequired[dict[str, list[dict[str, Any]]] | None]


class _Created(TypedDict):
    thread_id: PlainId


# An adapter is made at its first use: to compile its schema takes long, and most agents have no server.
_adapter = cache(TypeAdapter)
REQUEST_SECONDS: Final = 20.0
_PAUSE: Final = 60.0
"""Seconds for which a server that failed is not polled."""
# Requests are minutes apart: a pooled connection would be dead when it is needed again, and leak until then.
_HEADERS: Final = {"Connection": "close"}
_MAX_DETAIL: Final = 300
_ADVICE: Final = (
    "Go on with something else and try again later; if that fails too, say that the server may be down, or "
    "the url, graph_id, headers or API key of its spec be wrong."
)

_GENERIC_ERROR: Final = "The task failed; its server does not say why."
_NEVER_BEGAN: Final = "The task never began: start it again if it is still needed."
_NO_URL: Final = (
    "no url configured for {!r}: without one, an async subagent is reached inside the server that runs this "
    "agent, and only when the agent is awaited (ainvoke, astream). Give its spec a url to use it here."
)


class RemoteFailure(ToolFailure):
    """A server refused, failed or did not answer; `status` is its HTTP status, if it answered."""

    def __init__(self, code: ErrorCode, text: str, status: int | None = None) -> None:
        super().__init__(code, text)
        self.status = status


class Clients:
    """Make the clients of all servers once: one for blocking calls, and one for each event loop."""

    def __init__(self, seconds: float = REQUEST_SECONDS) -> None:
        self._seconds = seconds
        # A client is bound to the loop that first used it; weak keys let both go when the loop is closed.
        self._made: WeakKeyDictionary[object, dict[Hashable, Any]] = WeakKeyDictionary()
        self._lock = Lock()

    def get(self, agent: AsyncAgent, loop: asyncio.AbstractEventLoop | None = None) -> Any:
        """Return the client of an event loop, or the one for blocking calls."""
        # Here, for most agents have no server to ask and it takes long.
        from langgraph_sdk import get_client, get_sync_client

        make = get_client if loop else get_sync_client
        with self._lock:
            made = self._made.setdefault(loop or self, {})
            if agent.server not in made:
                headers = {**_HEADERS, **agent.headers}
                made[agent.server] = make(url=agent.url, headers=headers, timeout=self._seconds)
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
        given = {"thread_id": thread_id, "metadata": metadata}
        return (await self._ask(_Created, lambda client: client.threads.create(**given)))["thread_id"]

    async def get_thread(self, thread_id: str) -> Thread:
        """Return a thread."""
        return await self._ask(Thread, lambda client: client.threads.get(thread_id))

    async def create_run(
        self,
        thread_id: str,
        messages: Sequence[BaseMessage | dict[str, Any]],
        options: Mapping[str, Any],
        assistant_id: str | None = None,
    ) -> Run:
        """Start a run of the agent, or of another assistant, on a thread."""
        run_of, given = assistant_id or self.agent.graph_id, {"messages": [*map(_to_wire, messages)]}
        return await self._ask(
            Run, lambda client: client.runs.create(thread_id, run_of, input=given, **options)
        )

    async def get_run(self, thread_id: str, run_id: str) -> Run:
        """Return a run."""
        return await self._ask(Run, lambda client: client.runs.get(thread_id, run_id))

    async def get_newest_run(self, thread_id: str) -> Run | None:
        """Return the newest run of a thread, `None` when it has none."""
        return next(
            iter(await self._ask(list[Run], lambda client: client.runs.list(thread_id, limit=1))), None
        )

    async def cancel_run(self, thread_id: str, run_id: str) -> None:
        """Cancel a run."""
        await self._ask(object, lambda client: client.runs.cancel(thread_id, run_id))

    async def status(self, task: AsyncTask) -> TaskStatus:
        """Return how a task stands: one request while it runs, two or three when it has ended."""
        thread_id, run_id = task["thread_id"], task["run_id"]
        if task["status"] == "cancelled":
            return TaskStatus("cancelled", run_id)
        run = await self.get_run(thread_id, run_id) if run_id else None
        # An interrupted run may have been replaced by an update, whose run is then the newest of the thread.
        if run is None or run["status"] == "interrupted":
            run = await self.get_newest_run(thread_id)
        if run is None:
            return TaskStatus("error", run_id, error=_NEVER_BEGAN)
        if run["status"] in UNFINISHED or run["status"] == "timeout":
            return TaskStatus(run["status"], run["run_id"])
        thread = await self.get_thread(thread_id)
        # A newer run is under way or has failed, and that is the one that counts.
        if run["status"] == "success" and thread.get("status") in ("busy", "error"):
            run = await self.get_newest_run(thread_id) or run
        return _combine(run, thread)

    async def _ask(self, form: type[T], question: Callable[[Any], Any]) -> T:
        def block() -> Any:
            if self.agent.url is None:
                raise RemoteFailure("not_supported", _NO_URL.format(self.agent.name))
            client = self._clients.get(self.agent)
            # The client's own timeout bounds each read, not the whole answer, so the caller stops waiting.
            return start_thread(lambda: question(client)).result(self._left())

        async def wait() -> Any:
            loop = asyncio.get_running_loop()
            # In a thread, since to make one reads certificates from the disk.
            client = await await_thread(lambda: self._clients.get(self.agent, loop))
            return await within(self._left(), question(client))

        try:
            return _adapter(form).validate_python(await IOCall(block, wait))
        except RemoteFailure:
            raise
        except ValidationError:
            raise make_malformed_failure() from None
        except Exception as error:
            raise self._as_failure(error) from error

    def _left(self) -> float:
        return max(self._ends - time.monotonic(), 0.0)

    def _as_failure(self, error: Exception) -> RemoteFailure:
        """Describe an error without its own text, which may hold addresses and headers."""
        from langgraph_sdk.errors import APIStatusError

        if isinstance(error, APIStatusError):
            status, words = error.status_code, truncate(html.escape(error.message, quote=False), _MAX_DETAIL)
            # An answer about credentials may repeat them.
            detail = "" if status in (401, 403) else f": {words}"
            return RemoteFailure("remote_failed", f"the server answered {status}{detail}. {_ADVICE}", status)
        if isinstance(error, TimeoutError):
            return RemoteFailure("timeout", f"no answer within {self._seconds:g} s. {_ADVICE}")
        happened = f"cannot be reached, hung up, or sent no JSON ({type(error).__name__})"
        return RemoteFailure("remote_failed", f"the server {happened}. {_ADVICE}")


def _combine(run: Run, thread: Thread) -> TaskStatus:
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
            return TaskStatus("error", run_id, error=_error_of(thread))
        case status, _:
            return TaskStatus(status, run_id, values)


def _interrupts_of(thread: Thread) -> tuple[Mapping[str, Any], ...]:
    found = chain.from_iterable((thread.get("interrupts") or {}).values())
    return tuple({"id": each.get("id"), "value": each.get("value")} for each in found)


def _error_of(thread: Thread) -> str:
    given = thread.get("error")
    parts = (
        [given] if isinstance(given, str) else [as_mapping(given).get(key) for key in ("error", "message")]
    )
    return ": ".join(str(part) for part in parts if part) or _GENERIC_ERROR


def _to_wire(message: BaseMessage | dict[str, Any]) -> dict[str, Any]:
    """Return a message as a server takes it, without the artifact of a tool."""
    if isinstance(message, dict):
        return message
    found = message_to_dict(message)
    # An artifact may be any Python object, which JSON cannot hold.
    return {key: value for key, value in found["data"].items() if key != "artifact"} | {"type": found["type"]}


def make_malformed_failure() -> RemoteFailure:
    """Make the failure for an answer that does not follow the protocol."""
    text = "the answer is not that of an Agent Protocol server; say that the url of its spec may be wrong"
    return RemoteFailure("remote_failed", text)


class PollSchedule:
    """Decide which tasks may be polled now. It lives in memory; after a restart everything may be polled."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._next: dict[str, float] = {}
        self._rests: dict[Hashable, float] = {}
        self._lock = Lock()

    def choose(self, tasks: Mapping[str, AsyncAgent], *, at_edge: bool) -> list[str]:
        """Choose from tasks, given with their agents, those that are due; at the edges of a run all are.

        One of this process is always due, and none of a server that failed a moment ago.
        """
        now = time.monotonic()
        with self._lock:
            # One that is new here was started a moment ago.
            known = {key: at for key, at in self._next.items() if key in tasks or at > now}
            self._next = dict.fromkeys(tasks, now + self._interval) | known
            due = [
                task_id
                for task_id, agent in tasks.items()
                if agent.make
                or (self._rests.get(agent.server, now) <= now and (at_edge or self._next[task_id] <= now))
            ]
            # Noted before there is an answer, so that parallel runs do not ask about it as well.
            self._next.update(dict.fromkeys(due, now + self._interval))
            return due

    def note_failure(self, agent: AsyncAgent) -> None:
        """Note that the server of an agent failed."""
        self._rests[agent.server] = time.monotonic() + _PAUSE

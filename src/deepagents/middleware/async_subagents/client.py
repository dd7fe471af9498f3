"""One question to one server, in both colours, within a time; what goes wrong is a failure with a code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.errors import APIStatusError

from deepagents._async import IOCall, await_thread, start_thread
from deepagents._text import truncate
from deepagents.errors import ErrorCode, ToolFailure
from deepagents.middleware.async_subagents.privacy import without_secrets
from deepagents.middleware.async_subagents.spec import RemoteAgent
from deepagents.middleware.async_subagents.transport import HEADERS, TooMuch, bounded, bounded_async, until

MOST_SECONDS: Final = 20.0
_LONGEST_SILENCE: Final = 25.0
_SHORTEST: Final = 0.05
_MOST_OF_A_DETAIL: Final = 300

_ADVICE: Final = {
    401: "It does not let us in: say so, the headers of its spec or the API key have to be put right.",
    403: "It does not let us in: say so, the headers of its spec or the API key have to be put right.",
    404: "It does not know this: the server may have been restarted, or the graph_id be wrong.",
    409: "It is busy with this task: wait, or cancel it first.",
    422: "It does not take this: the graph_id of the spec may be wrong.",
    429: "It asks to be left alone for a while: go on with something else first.",
}
_LATER: Final = "Go on with something else and try again later; if that fails too, say that it is down."
_NO_URL: Final = (
    "no url configured for {name!r}: without one, an async subagent is reached inside the server that runs "
    "this agent, and only when the agent is awaited (ainvoke, astream). Give its spec a url to use it here."
)


class RemoteFailure(ToolFailure):
    """A server refused, failed, or did not answer; `status` is that of HTTP, where there was an answer."""

    def __init__(self, code: ErrorCode, text: str, status: int | None = None) -> None:
        super().__init__(code, text)
        self.status = status

    @property
    def undecided(self) -> bool:
        """Whether the server may have done what it was asked."""
        return self.status is None and self.code != "not_supported"


@dataclass(slots=True)
class Deadline:
    """The time that a whole operation has, however many questions it asks; it begins with the first."""

    seconds: float
    _until: float | None = None

    @property
    def left(self) -> float:
        """Seconds from now."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self.seconds
        return max(self._until - now, _SHORTEST)


@dataclass(slots=True)
class Clients:
    """The clients of all servers, each made once: for blocking calls, and for each event loop."""

    _blocking: dict[Any, Any] = field(default_factory=dict[Any, Any], repr=False)
    _awaiting: WeakKeyDictionary[Any, dict[Any, Any]] = field(
        default_factory=WeakKeyDictionary[Any, "dict[Any, Any]"], repr=False
    )
    _lock: Any = field(default_factory=Lock, repr=False)

    def blocking(self, agent: RemoteAgent) -> Any:
        """Return the client that blocks.

        Raises:
            RemoteFailure: for an agent without a url.
        """
        if agent.url is None:
            raise RemoteFailure("not_supported", _NO_URL.format(name=agent.name))
        return self._kept(self._blocking, _blocking_client, agent)

    def awaiting(self, agent: RemoteAgent, loop: asyncio.AbstractEventLoop) -> Any:
        """Return the client that is awaited on a loop."""
        with self._lock:
            kept = self._awaiting.setdefault(loop, {})
        return self._kept(kept, _awaiting_client, agent)

    def _kept(
        self, kept: dict[Any, Any], make: Callable[[str | None, dict[str, str]], Any], agent: RemoteAgent
    ) -> Any:
        with self._lock:
            if agent.server not in kept:
                kept[agent.server] = make(agent.url, {**HEADERS, **agent.headers})
            return kept[agent.server]


@dataclass(frozen=True, slots=True)
class Remote:
    """One agent, as questions that either answer or raise `RemoteFailure`."""

    agent: RemoteAgent
    clients: Clients
    deadline: Deadline

    async def ask(self, question: Callable[[Any], Any]) -> Any:
        """Put a question to the client of this call_mode; making the client never blocks an event loop."""
        try:
            client = await IOCall(self._made_blocking, self._made_awaiting)
            return await IOCall(lambda: self._block(question, client), lambda: self._wait(question, client))
        except RemoteFailure:
            raise
        except Exception as error:
            raise failure(self.agent, error, self.deadline) from error

    def _made_blocking(self) -> Any:
        return self.clients.blocking(self.agent)

    async def _made_awaiting(self) -> Any:
        loop = asyncio.get_running_loop()
        return await await_thread(lambda: self.clients.awaiting(self.agent, loop))

    def _block(self, question: Callable[[Any], Any], client: Any) -> Any:
        left = self.deadline.left
        return start_thread(lambda: until(left, lambda: question(client))).result(left)

    async def _wait(self, question: Callable[[Any], Any], client: Any) -> Any:
        return await asyncio.wait_for(question(client), self.deadline.left)


def _blocking_client(url: str | None, headers: dict[str, str]) -> Any:
    return bounded(get_sync_client(url=url, headers=headers, timeout=_LONGEST_SILENCE))


def _awaiting_client(url: str | None, headers: dict[str, str]) -> Any:
    return bounded_async(get_client(url=url, headers=headers, timeout=_LONGEST_SILENCE))


def failure(agent: RemoteAgent, error: Exception, deadline: Deadline) -> RemoteFailure:
    """Say what went wrong; an error's own text stays out of it, because it may hold addresses and headers."""
    if isinstance(error, APIStatusError):
        status = error.status_code
        detail = "" if status in (401, 403) else _detail(agent, error.message)
        return RemoteFailure(
            "remote_failed", f"the server answered {status}{detail}. {_ADVICE.get(status, _LATER)}", status
        )
    if isinstance(error, TooMuch):
        return RemoteFailure("remote_failed", f"the server's answer is too much: {error}. Do not try again.")
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return RemoteFailure("timeout", f"no answer within {deadline.seconds:g} s. {_LATER}")
    if isinstance(error, ValueError):
        return RemoteFailure(
            "remote_failed", f"the server answered with something that is not JSON. {_LATER}"
        )
    return RemoteFailure(
        "remote_failed", f"the server cannot be reached, or hung up ({type(error).__name__}). {_LATER}"
    )


def malformed(what: str) -> RemoteFailure:
    """Make the failure for an answer that is not what the protocol says."""
    return RemoteFailure(
        "remote_failed",
        f"the server's answer is not that of an Agent Protocol server ({what}). Do not try again: say that "
        "the url of its spec may be wrong.",
    )


def _detail(agent: RemoteAgent, said: str) -> str:
    words = " ".join(without_secrets(agent, said).split())
    return f": {truncate(words, _MOST_OF_A_DETAIL)}" if words else ""

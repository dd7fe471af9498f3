"""Several routes at the same time, each for so long: one that never answers does not hide the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeVar

from deepagents._async import Coro, as_io_call
from deepagents.backends._answering import abilities
from deepagents.backends.composite.routes import Route
from deepagents.backends.protocol import ASYNC_GREP_TIMEOUT, BackendProtocol

T = TypeVar("T")
_SECONDS: Final = {"ls": 30.0, "glob": 8.0, "grep": ASYNC_GREP_TIMEOUT + 5}
"""How long to wait for one route among several: less than tools wait for all of them."""


async def in_time(
    route: Route,
    backend: BackendProtocol,
    method: Literal["ls", "glob", "grep"],
    flow: Callable[[], Coro[T]],
) -> T:
    """Ask one of several routes; what runs in this process is waited for.

    Raises:
        BackendError: `timeout`, and whatever the flow raises.
    """
    call = as_io_call(flow)
    if not abilities(backend.capabilities).in_process:
        call = route.patience.bound(call, method, route.patience.seconds or _SECONDS[method])
    return await call

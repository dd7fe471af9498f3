"""Let graphs reach the server that runs them without an address, as `langgraph_sdk.get_client()` does.

The client looks for the application of LangGraph's own server, `langgraph_api.server.app`, and calls it in
this process. Here it finds one that answers for this server, with the rights of the run that asks and no
others.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from types import ModuleType
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Asgi

from deepagents._values import recordclass

OWNER: Final = "deepagents.owner"
"""Where a request from inside says whose run it is; one from outside has no way to say so."""
_running: ContextVar[str | None] = ContextVar("deepagents_run_owner", default=None)
_PACKAGE: Final = "langgraph_api"
_MODULE: Final = f"{_PACKAGE}.server"
_OUTSIDE: Final = JSONResponse({"detail": "Only a run of this server may ask without an address."}, 403)
_STARTING: Final = JSONResponse({"detail": "The server is starting; ask again soon."}, 503)


@recordclass
class Loopback:
    """The application that graphs of this process reach; `app` is the server's own, as soon as it answers."""

    app: ASGIApp | None = None

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        """Answer a request of a run; of anything else in this process none."""
        owner = _running.get()
        answering: ASGIApp = _OUTSIDE if owner is None else self.app or _STARTING
        # The client adds a root path, which is none of this server.
        inside = {**scope, "root_path": "", OWNER: owner}
        # A run that this starts is to inherit nothing of the run that asks, which is in context variables.
        await asyncio.create_task(_answer(answering, inside, receive, send), context=Context())


async def _answer(answering: ASGIApp, scope: Asgi, receive: Receive, send: Send) -> None:
    await answering(scope, receive, send)


def act_for(owner: str) -> None:
    """Let what this task does from now on have the rights of an owner."""
    _running.set(owner)


@contextmanager
def reachable() -> Generator[Loopback]:
    """Let clients find the application while a server is open; graphs look too while they are loaded."""
    made, package, module = Loopback(), ModuleType(_PACKAGE), ModuleType(_MODULE)
    package.__path__ = []
    vars(module)["app"] = made
    # It may be installed: a server that runs is not to import another one.
    hidden = {name: sys.modules.pop(name) for name in (_PACKAGE, _MODULE) if name in sys.modules}
    sys.modules.update({_PACKAGE: package, _MODULE: module})
    try:
        yield made
    finally:
        for name in (_PACKAGE, _MODULE):
            sys.modules.pop(name, None)
        sys.modules.update(hidden)

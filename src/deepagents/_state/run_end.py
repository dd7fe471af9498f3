"""Do what is left to be done when a run ends, however it ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from threading import Lock
from typing import Final

from langchain_core.runnables import RunnableConfig

from deepagents._async import Coro, arun, as_io_call, gather_threads, run, start_thread
from deepagents._state.runtime import configurable_in_graph

# Names that begin with underscores are in no metadata of a trace or a checkpoint.
_RUN_END: Final = "__deepagents_run_end"
_log = logging.getLogger(__name__)


class RunEnd:
    """What is to be done when a run ends, however it ends."""

    def __init__(self) -> None:
        self._due: list[Callable[[], Coro[None]]] = []
        self._is_over = False
        self._lock = Lock()

    def add(self, work: Callable[[], Coro[None]]) -> None:
        """Have this done when the run ends; now, if a step that was cancelled comes too late for that."""
        with self._lock:
            if not self._is_over:
                self._due.append(work)
                return
        start_thread(lambda: run(self._try(work)))

    async def finish(self) -> None:
        """Do all of it, at the same time; what fails is logged."""
        with self._lock:
            due, self._due, self._is_over = self._due, [], True
        await gather_threads([as_io_call(partial(self._try, work)) for work in due])

    async def _try(self, work: Callable[[], Coro[None]]) -> None:
        try:
            await work()
        # The run has ended: there is nobody to tell, and the rest is to be done all the same.
        except Exception:  # noqa: BLE001
            _log.warning("something could not be done at the end of a run", exc_info=True)


def run_end() -> RunEnd | None:
    """Return where to leave what is to be done when this run ends; `None` outside of our agents."""
    return configurable_in_graph().get(_RUN_END)


@contextmanager
def ending(config: RunnableConfig | None) -> Generator[RunnableConfig]:
    """Yield the config of a run, and do at its end what was left for that; one inside another has no end."""
    inside, end = _with_end(config)
    try:
        yield inside
    finally:
        if end:
            run(end.finish())


@asynccontextmanager
async def aending(config: RunnableConfig | None) -> AsyncGenerator[RunnableConfig]:
    """Do the same as `ending`, awaiting."""
    inside, end = _with_end(config)
    try:
        yield inside
    finally:
        if end:
            await arun(end.finish())


def _with_end(config: RunnableConfig | None) -> tuple[RunnableConfig, RunEnd | None]:
    outer, own = run_end(), RunEnd()
    given = config or RunnableConfig()
    # Named anew also for a run inside another: a config that has a configurable hides that of the outer run.
    inside: RunnableConfig = {
        **given,
        "configurable": {**given.get("configurable", {}), _RUN_END: outer or own},
    }
    return inside, None if outer else own

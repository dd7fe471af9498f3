"""Let the agent work: begin with what was sent, ask what must be asked, and stop when the person says so."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future, Task
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage

from deepagents.events import Event, LimitReached, Reasoning, Token
from deepagents_cli.errors import explain_error
from deepagents_cli.project.agents import ModelHandler
from deepagents_cli.protocol import End, Idle, Notice, Working
from deepagents_cli.session.threads.driver import Driver, Waiting, messages_in
from deepagents_cli.session.turns.asking import Asking, Say
from deepagents_cli.session.turns.inbox import Inbox
from deepagents_cli.session.turns.steering import NODE

_INTERRUPTED: Final = "[The person stopped the answer here.]"
_GO_ON: Final = "Go on."
_MODEL: Final = "model"
_PATIENCE: Final = 3.0
"""Seconds after which a step that was stopped is stopped once more, and then left behind."""
_LEFT: Final = (
    "What was stopped does not end. It was left behind: what it returns is dropped, but until you leave, it "
    "may go on with what it does."
)

logger = logging.getLogger(__name__)
Done: TypeAlias = Callable[[End, Exception | None], None]
"""Takes how a turn has ended, and with which failure."""


class RunningCalls(AgentMiddleware[Any, Any, Any]):
    """Knows the calls of models and tools that an agent and its subagents make at the moment."""

    def __init__(self) -> None:
        super().__init__()
        self.running = set[Task[Any]]()

    async def awrap_model_call(self, request: ModelRequest[Any], handler: ModelHandler) -> ModelResponse[Any]:
        """Ask the model."""
        with self._noting():
            return await handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the tool."""
        with self._noting():
            return await handler(request)

    @contextmanager
    def _noting(self) -> Generator[None]:
        task = asyncio.current_task()
        assert task is not None, "calls are awaited"
        self.running.add(task)
        try:
            yield
        finally:
            self.running.discard(task)


class Turns:
    """The turns of one thread, one at a time.

    `patience` is for how many seconds a step that was stopped may ignore that, twice.
    """

    def __init__(
        self,
        driver: Driver,
        inbox: Inbox,
        asking: Asking,
        calls: RunningCalls,
        say: Say,
        done: Done,
        *,
        patience: float = _PATIENCE,
    ) -> None:
        self._driver = driver
        self._inbox = inbox
        self._asking = asking
        self._calls = calls
        self._say = say
        self._done = done
        self._patience = patience
        self._task: Task[None] | None = None
        self._step: Task[Exception | None] | None = None
        self._stopped: Future[None] | None = None
        self._again = self._woken = False
        self._written = ""
        self._reached = False

    @property
    def is_working(self) -> bool:
        """Whether a turn is under way."""
        return self._task is not None

    @property
    def _stopping(self) -> bool:
        return self._stopped is not None and self._stopped.done()

    def begin(self, *, woken: bool = False) -> None:
        """Begin a turn with what waits in the inbox, or go on with what was interrupted.

        With `woken` the model is to read what middleware has to tell it.
        """
        if self._task is None:
            self._woken = woken
            self._again = False
            self._stopped = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run())
        else:
            # What is sent right behind Esc is not a part of what was stopped.
            self._again = self._stopping

    def stop(self) -> None:
        """Cancel the present step, and begin nothing that was sent behind an earlier stop."""
        self._again = False
        self._cancel()

    def _cancel(self) -> None:
        """Cancel the present step; again, its calls, of which one may have swallowed the cancellation."""
        if self._stopped is None:
            return
        if self._stopped.done() and self._calls.running:
            for call in self._calls.running:
                call.cancel()
        elif self._step is not None:
            self._step.cancel()
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def end(self) -> None:
        """Stop, and wait until all is saved."""
        self.stop()
        if self._task is not None:
            await self._task

    def see(self, event: Event) -> None:
        """Note of an event what decides how the turn ends."""
        match event:
            case Token(agent=None, text=text):
                self._written += text
            case Reasoning() | Token():
                pass
            case LimitReached(agent=None):
                self._reached = True
            case _ if getattr(event, "agent", None) is None:
                # Whatever else the main agent does, its model call is over.
                self._written = ""
            case _:
                pass

    async def _run(self) -> None:
        try:
            while await self._turn() == "done" and self._inbox.texts:
                continue
        finally:
            self._task = self._stopped = None
        if self._again:
            self.begin()

    async def _turn(self) -> End:
        self._written, self._reached = "", False
        self._say(Working())
        end, failure = await self._work()
        self._done(end, failure)
        error = explain_error(failure) if failure else None
        self._say(Idle(end, error))
        return end

    async def _work(self) -> tuple[End, Exception | None]:
        # A task of its own: Esc at any moment cancels neither what is saved behind it nor what is told.
        # What an earlier step has left behind is not this one's.
        self._calls.running.clear()
        self._step = step = asyncio.create_task(self._go_on())
        if self._stopping:
            step.cancel()
        await self._wait_for(step)
        if self._calls.running:
            self._say(Notice(_LEFT))
        try:
            await self._settle()
        except Exception as raised:
            logger.exception("The end of the turn was not kept.")
            return "failed", raised
        if self._stopping or step.cancelled():
            return "stopped", None
        failure = step.result()
        return ("failed" if failure else "limited" if self._reached else "done"), failure

    async def _wait_for(self, step: Task[Exception | None]) -> None:
        """Wait for the end of a step, or until it has ignored for long that it was stopped."""
        assert self._stopped is not None, "a turn is under way"
        await asyncio.wait([step, self._stopped], return_when=asyncio.FIRST_COMPLETED)
        if not (await asyncio.wait([step], timeout=self._patience))[0]:
            self._cancel()
        if not (await asyncio.wait([step], timeout=self._patience))[0]:
            # LangGraph then waits no longer for what it has cancelled.
            step.cancel()
            await asyncio.wait([step], timeout=self._patience)

    async def _go_on(self) -> Exception | None:
        """Go on until nothing is left to be done or asked; return the failure that has ended this."""
        try:
            waiting = await self._start()
            while waiting:
                waiting = await self._driver.go_on(await self._asking.resume(self._driver, waiting))
        except Exception as raised:
            # The turn ends with a sentence, and the conversation goes on.
            logger.exception("The turn failed.")
            return raised
        return None

    async def _start(self) -> list[Waiting]:
        if self._inbox.texts:
            return await self._driver.send(self._inbox.hand_over())
        if self._woken:
            self._woken = False
            return await self._driver.send([])
        state = await self._driver.read()
        past = messages_in(state)
        last = past[-1] if past else None
        if isinstance(last, AIMessage) and not last.tool_calls:
            # A model that is asked behind an answer of its own may answer with nothing, or refuse.
            return await self._driver.send([HumanMessage(_GO_ON, additional_kwargs={"lc_source": "go_on"})])
        return await self._driver.go_on() if state.tasks else []

    async def _settle(self) -> None:
        """Keep what was written of an answer that was stopped, and learn what of the inbox was saved."""
        state = await self._driver.read()
        if self._stopping and self._written.strip() and _MODEL in state.next:
            partly = AIMessage(f"{self._written.rstrip()}\n\n{_INTERRUPTED}")
            driver = self._driver
            await driver.agent.aupdate_state(driver.config, {"messages": [partly]}, as_node=NODE)
        self._inbox.settle({each.id for each in messages_in(state)})

"""Drive a thread of an agent, and show its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, TypeAlias

import aiosqlite
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END

from deepagents.checkpoints import OrderedCheckpoints, WholeChanges
from deepagents.events import ApprovalGiven, ApprovalNeeded, ApprovalRequest, Event, QuestionAsked
from deepagents.middleware import is_from_person
from deepagents.observe import Observer, aobserve, resume_with
from deepagents_cli.approval.questions import Decision
from deepagents_cli.session.threads.sessions import BUSY_SECONDS

OWN_COMMAND: Final = "own_command"
"""What marks the message that tells the model of a command of the person, as its `lc_source`."""
Show: TypeAlias = Callable[[Event], None]
Waiting: TypeAlias = ApprovalNeeded | QuestionAsked
"""What a person is waited for."""


class Saver(OrderedCheckpoints, WholeChanges, AsyncSqliteSaver):
    """Finds what was written last also after the clock was set back, and leaves no change half made."""


async def open_saver(path: Path) -> Saver:
    """Open the file that keeps the checkpoints; the caller closes its connection."""
    connection = await aiosqlite.connect(path, timeout=BUSY_SECONDS)
    # With WAL this loses at most the last steps at a power cut, and never the file.
    await connection.execute("PRAGMA synchronous=NORMAL")
    return Saver(connection)


def messages_in(state: Any) -> Sequence[BaseMessage]:
    """Return the messages in the state of a thread."""
    return state.values.get("messages") or ()


def is_from_harness(message: BaseMessage) -> bool:
    """Return whether a message in the role of a person is from none, nor about a command of theirs."""
    is_own = message.additional_kwargs.get("lc_source") == OWN_COMMAND
    return isinstance(message, HumanMessage) and not (is_own or is_from_person(message))


class Driver:
    """Drives a thread of an agent, kept by its checkpointer; returns what then waits for a person.

    A method that is cancelled leaves the thread as after a crash: what was done is kept.
    """

    def __init__(self, agent: Any, thread: str, show: Show) -> None:
        self.agent = agent
        self.config: RunnableConfig = {"configurable": {"thread_id": thread}}
        self._show = show
        self._observer = Observer()

    async def read(self) -> Any:
        """Return the state of the thread."""
        return await self.agent.aget_state(self.config)

    async def send(self, messages: Sequence[HumanMessage]) -> list[Waiting]:
        """Give the agent messages, and show what it does until it stops."""
        if (await self.read()).tasks:
            # A step was cut off. A new input alone would drop the results of its calls that did end.
            await self.agent.aupdate_state(self.config, None, as_node=END)
        return await self.go_on({"messages": [*messages]})

    async def go_on(self, given: Any = None) -> list[Waiting]:
        """Show what the agent does with an input, with answers, or with what it has left undone."""
        waiting: list[Waiting] = []
        # Each step is saved before the next begins, so that a killed run goes on where it was.
        events = aobserve(self.agent, given, self.config, observer=self._observer, durability="sync")
        async with aclosing(events):
            async for event in events:
                if isinstance(event, ApprovalNeeded | QuestionAsked):
                    waiting.append(event)
                self._show(event)
        return waiting

    def answers(self, decided: Sequence[tuple[ApprovalRequest, Decision]]) -> dict[str, Any]:
        """Return decisions by interrupt, as `go_on` takes them in a `Command`, and show them."""
        for asked, made in decided:
            shown = made["type"], made.get("message"), asked.tool_call_id
            self._show(ApprovalGiven(asked.interrupt_id, asked.name, *shown))
        resume: Any = resume_with(decided).resume
        return resume

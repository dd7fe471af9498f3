"""Work with one thread of one agent: send a task, resume, answer approvals; each yields events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from deepagents.events import ApprovalNeeded, Event
from deepagents.observe import Observer, aobserve, interrupts_to_event

Decision: TypeAlias = Mapping[str, Any]
Decisions: TypeAlias = Mapping[str, Sequence[Decision]]


class Session:
    """A conversation with an agent, kept by the agent's checkpointer under one thread."""

    def __init__(self, agent: Any, thread: str) -> None:
        self.thread = thread
        self._agent = agent
        self._config = {"configurable": {"thread_id": thread}}
        self._observer = Observer()

    def send(self, task: str) -> AsyncGenerator[Event]:
        """Give the agent a new task; calls that were left open by a stop are answered as not done."""
        return self._run({"messages": [HumanMessage(task)]})

    def resume(self) -> AsyncGenerator[Event]:
        """Go on with the steps that a stop or a crash left undone."""
        return self._run(None)

    def answer(self, decisions: Decisions) -> AsyncGenerator[Event]:
        """Decide about the calls that wait, by interrupt, and go on."""
        resume = {interrupt: {"decisions": list(made)} for interrupt, made in decisions.items()}
        return self._run(Command(resume=resume))

    async def pending(self) -> ApprovalNeeded | None:
        """Return the calls that wait for a person, if any."""
        state = await self._agent.aget_state(self._config)
        return interrupts_to_event(state.interrupts)

    async def is_cut(self) -> bool:
        """Return whether steps are left to do, or done and not yet followed up."""
        state = await self._agent.aget_state(self._config)
        return bool(state.tasks)

    def _run(self, given: Any) -> AsyncGenerator[Event]:
        # Each step is saved before the next begins, so that a killed run goes on where it was.
        return aobserve(self._agent, given, self._config, observer=self._observer, durability="sync")

"""Where a conversation is held, and by which agent."""

from __future__ import annotations

from dataclasses import dataclass

from langgraph.config import get_config


@dataclass(frozen=True, slots=True)
class Place:
    """Where a conversation is held: its thread, or else a session of its own, and the node's namespace."""

    thread: str | None
    namespace: str
    session: str = ""

    @property
    def agent(self) -> tuple[str, str]:
        """The agent in the conversation, the same for each of its nodes."""
        return self.thread or self.session, self.namespace.rpartition("|")[0]


def this_place(session: str) -> Place:
    """Say in which thread, and in which node of it, this code runs; `session` names the conversation."""
    try:
        configurable = get_config().get("configurable", {})
    except RuntimeError:
        return Place(None, "", session)
    thread = configurable.get("thread_id")
    namespace = str(configurable.get("checkpoint_ns") or "")
    return Place(None if thread is None else str(thread), namespace, session)

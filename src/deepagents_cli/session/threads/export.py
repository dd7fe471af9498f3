"""Read the messages of a thread, write them down and copy them, without the agent that wrote them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from deepagents import DeepAgentState
from deepagents_cli.errors import CommandError
from deepagents_cli.session.display.lines import call_line
from deepagents_cli.session.threads.driver import is_from_harness
from deepagents_cli.session.threads.sessions import BUSY_SECONDS, Session, Sessions, new_thread_id
from deepagents_cli.text import fence, one_line

_WHO: Final = {"human": "Person", "ai": "Agent", "tool": "Result"}


def read_messages(sessions: Sessions, thread: str) -> Sequence[BaseMessage]:
    """Return the messages of a thread, without the agent that wrote them."""
    with closing(MessageReader(sessions.path)) as reader:
        return reader.read(thread)


class MessageReader:
    """Reads threads by a graph that has the state of an agent, and does nothing."""

    def __init__(self, path: Path) -> None:
        graph: Any = StateGraph(DeepAgentState)
        graph.add_node("model", _do_nothing)
        graph.add_edge(START, "model")
        self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
        self.saver = SqliteSaver(self._connection)
        self._graph: Any = graph.compile(checkpointer=self.saver)

    def read(self, thread: str) -> Sequence[BaseMessage]:
        """Return the messages of a thread."""
        return self._graph.get_state({"configurable": {"thread_id": thread}}).values.get("messages", [])

    def steps(self, thread: str) -> Iterator[tuple[str, Sequence[BaseMessage]]]:
        """Yield each checkpoint and the messages it has, the latest first."""
        for state in self._graph.get_state_history({"configurable": {"thread_id": thread}}):
            # One that waits for an input to be taken has that input in it already.
            if state.metadata is None or state.metadata.get("source") != "input":
                yield state.config["configurable"]["checkpoint_id"], state.values.get("messages", [])

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def _do_nothing(state: Any) -> dict[str, Any]:
    return {}


def fork(sessions: Sessions, source: Session, at: int | None) -> str:
    """Copy a thread up to its message of this number, counted from 1; return the id of the copy.

    Raises:
        CommandError: when no step of the thread ended with that message.
    """
    copy = new_thread_id()
    # Not held: a process that works in it may go on. A copy is as of one moment, as after a crash.
    with closing(MessageReader(sessions.path)) as reader:
        last = None
        if at is not None:
            ends = ((checkpoint, len(messages)) for checkpoint, messages in reader.steps(source.id))
            last = next((checkpoint for checkpoint, count in ends if count == at), None)
            if last is None:
                raise CommandError(f"no step of {source.id!r} ended with message {at}; `show` numbers them")
        sessions.copy(source, copy, last)
    return copy


def as_markdown(thread: Session, messages: Sequence[BaseMessage]) -> str:
    """Write a thread for people: what was asked, called and answered, numbered."""
    parts = [f"# {one_line(thread.name) or thread.id}\n\nSession {thread.id} in `{thread.directory}`\n"]
    for number, message in enumerate(messages, 1):
        who = "Harness" if is_from_harness(message) else _WHO.get(message.type, message.type.title())
        text = message.text.strip()
        if isinstance(message, ToolMessage):
            text = fence(text)
        lines = [f"## {number}. {who}", text]
        if isinstance(message, AIMessage):
            lines += [f"- `{call_line(each['name'], each['args'])}`" for each in message.tool_calls]
        parts.append("\n\n".join(filter(None, lines)) + "\n")
    return "\n".join(parts)


def as_json(thread: Session, messages: Sequence[BaseMessage]) -> str:
    """Write a thread for programs: its facts, and its messages as LangChain writes them."""
    facts = {"id": thread.id, "name": thread.name, "directory": str(thread.directory), "used": thread.used}
    dumped = {**facts, "messages": [message_to_dict(each) for each in messages]}
    return json.dumps(dumped, default=str, indent=2) + "\n"

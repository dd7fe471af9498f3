"""`deepagents sessions`: list, search, show, name, remove, export and fork the threads of earlier runs."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from deepagents import DeepAgentState
from deepagents_cli.artifacts import names_of, remove_unused
from deepagents_cli.errors import CommandError, Exit
from deepagents_cli.output import call_line
from deepagents_cli.terminal import clean, one_line
from deepagents_cli.threads import BUSY_SECONDS, InUse, Thread, Threads, new_thread_id, state_dir

_DAY: Final = 86_400
_MEGABYTE: Final = 1_000_000


def run(arguments: Namespace, *, model: Any = None) -> int:
    """Do what the verb says; return the exit code."""
    _VERBS[arguments.verb](Threads(state_dir()), arguments)
    return Exit.DONE


def _list(threads: Threads, arguments: Namespace) -> None:
    _print_list(threads.find_all(_directory(arguments)), with_directory=arguments.all)


def _search(threads: Threads, arguments: Namespace) -> None:
    wanted = arguments.text.casefold()
    with closing(_Reader(threads.path)) as reader:
        found = [
            each
            for each in threads.find_all(_directory(arguments))
            if wanted in each.name.casefold()
            or any(wanted in message.text.casefold() for message in reader.read(each.id))
        ]
    _print_list(found, with_directory=arguments.all)


def _show(threads: Threads, arguments: Namespace) -> None:
    found = threads.find(arguments.session)
    sys.stdout.write(clean(as_markdown(found, read_messages(threads, found.id))))


def _export(threads: Threads, arguments: Namespace) -> None:
    found = threads.find(arguments.session)
    write = as_json if arguments.json else as_markdown
    written = write(found, read_messages(threads, found.id))
    # In a file it stays as it was; at a terminal it must not steer it.
    sys.stdout.write(clean(written) if sys.stdout.isatty() else written)


def _rename(threads: Threads, arguments: Namespace) -> None:
    threads.rename(threads.find(arguments.session).id, arguments.name)


def _delete(threads: Threads, arguments: Namespace) -> None:
    # All are found before the first is removed: a typing error removes nothing.
    _remove(threads, [threads.find(name) for name in arguments.session])


def _prune(threads: Threads, arguments: Namespace) -> None:
    """Remove what is older than asked, then the oldest until the rest is as small as asked."""
    if arguments.older is None and arguments.keep is None:
        raise CommandError("say what to remove: --older DAYS, --keep MB, or both", Exit.USAGE)
    now, kept, surplus = time.time(), 0, list[Thread]()
    for each in threads.find_all(_directory(arguments)):
        too_old = arguments.older is not None and now - each.used > arguments.older * _DAY
        too_large = arguments.keep is not None and kept + each.size > arguments.keep * _MEGABYTE
        if too_old or too_large:
            surplus.append(each)
        else:
            kept += each.size
    _remove(threads, surplus)


def _fork(threads: Threads, arguments: Namespace) -> None:
    sys.stdout.write(f"{fork(threads, threads.find(arguments.session), arguments.at)}\n")


def _remove(threads: Threads, surplus: Sequence[Thread]) -> None:
    """Remove sessions and their files; one in use keeps none of the others."""
    if not surplus:
        return
    kept: list[str] = []
    gone: dict[Path, set[str]] = {}
    for each in surplus:
        try:
            with threads.hold(each.id):
                gone.setdefault(each.directory, set()).update(names_of(threads, each.id))
                threads.forget(each.id)
        except InUse:
            kept.append(each.id)
        else:
            sys.stdout.write(f"removed {each.id}  {one_line(each.name)}\n")
    for folder, count, size in remove_unused(threads, gone):
        where = one_line(str(folder))
        sys.stdout.write(f"removed {count:,} of their files ({size / _MEGABYTE:.1f} MB) from {where}\n")
    threads.shrink()
    if kept:
        raise CommandError(f"in use by a run, and kept: {', '.join(kept)}")


def _directory(arguments: Namespace) -> Path | None:
    return None if arguments.all else arguments.dir.expanduser().resolve()


_VERBS: Final = {
    "list": _list,
    "search": _search,
    "show": _show,
    "export": _export,
    "rename": _rename,
    "delete": _delete,
    "prune": _prune,
    "fork": _fork,
}


def read_messages(threads: Threads, thread: str) -> Sequence[BaseMessage]:
    """Return the messages of a thread, without the agent that wrote them."""
    with closing(_Reader(threads.path)) as reader:
        return reader.read(thread)


class _Reader:
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


def fork(threads: Threads, source: Thread, at: int | None) -> str:
    """Copy a thread up to its message of this number, counted from 1; return the id of the copy.

    Raises:
        CommandError: when no step of the thread ended with that message.
    """
    copy = new_thread_id()
    # Not held: a process that works in it may go on. A copy is as of one moment, as after a crash.
    with closing(_Reader(threads.path)) as reader:
        last = None
        if at is not None:
            ends = ((checkpoint, len(messages)) for checkpoint, messages in reader.steps(source.id))
            last = next((checkpoint for checkpoint, count in ends if count == at), None)
            if last is None:
                raise CommandError(f"no step of {source.id!r} ended with message {at}; `show` numbers them")
        threads.copy(source, copy, last)
    return copy


def as_markdown(thread: Thread, messages: Sequence[BaseMessage]) -> str:
    """Write a thread for people: what was asked, called and answered, numbered."""
    parts = [f"# {one_line(thread.name) or thread.id}\n\nSession {thread.id} in `{thread.directory}`\n"]
    for number, message in enumerate(messages, 1):
        who = {"human": "Person", "ai": "Agent", "tool": "Result"}.get(message.type, message.type.title())
        text = message.text.strip()
        if isinstance(message, ToolMessage):
            text = _fence(text)
        lines = [f"## {number}. {who}", text]
        if isinstance(message, AIMessage):
            lines += [f"- `{call_line(each['name'], each['args'])}`" for each in message.tool_calls]
        parts.append("\n\n".join(filter(None, lines)) + "\n")
    return "\n".join(parts)


def as_json(thread: Thread, messages: Sequence[BaseMessage]) -> str:
    """Write a thread for programs: its facts, and its messages as LangChain writes them."""
    facts = {"id": thread.id, "name": thread.name, "directory": str(thread.directory), "used": thread.used}
    dumped = {**facts, "messages": [message_to_dict(each) for each in messages]}
    return json.dumps(dumped, default=str, indent=2) + "\n"


def _print_list(threads: Sequence[Thread], *, with_directory: bool) -> None:
    for each in threads:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.used))
        where = f"  {one_line(str(each.directory))}" if with_directory else ""
        sys.stdout.write(
            f"{each.id}  {used}  {each.size / _MEGABYTE:6.1f} MB{where}  {one_line(each.name)}\n"
        )


def _fence(text: str) -> str:
    """Put a text into a fence that is longer than each one inside it."""
    longest = max((len(each) for each in re.findall(r"^ *(`{3,})", text, re.MULTILINE)), default=2)
    return f"{'`' * (longest + 1)}\n{text}\n{'`' * (longest + 1)}"

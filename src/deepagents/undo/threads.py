"""Know which records a checkpoint of a thread has: the key in its state, and what the store says of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple, NotRequired, TypedDict, cast

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.runnables import RunnableConfig
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, get_checkpoint_id

from deepagents._async import IOCall, in_thread
from deepagents._state.schema import NOT_SHARED
from deepagents.errors import UndoError
from deepagents.undo.plans import Seen
from deepagents.undo.store import Store
from deepagents.undo.tables import FORGOTTEN

KEY: Final = "file_history"


class Missed(TypedDict):
    """A name for steps that could not be recorded, and why; the state of their thread has it."""

    name: str
    why: str


class FileMark(TypedDict):
    """Up to which change the files of a checkpoint are known: by number, in the records of a thread.

    `earlier` are the marks of other stores, which recorded the thread before.
    """

    store: str
    thread: str
    seen: int
    missed: NotRequired[Missed]
    earlier: NotRequired[list[FileMark]]


def keep_newest(known: FileMark | None, given: FileMark) -> FileMark:
    """Return the later of two marks; parallel calls of a step write one each."""
    if not known:
        return given
    same = (known["store"], known["thread"]) == (given["store"], given["thread"])
    # One of no store is of a step before which none could be opened.
    newest = known if not given["store"] or (same and known["seen"] > given["seen"]) else given
    marks = [FileMark(store=each["store"], thread=each["thread"], seen=each["seen"]) for each in _list(known)]
    if earlier := [each for each in marks if each["store"] not in ("", newest["store"])]:
        newest: FileMark = {**newest, "earlier": earlier}
    return with_missed(newest, given.get("missed") or known.get("missed"))


def _list(mark: FileMark) -> list[FileMark]:
    return [mark, *mark.get("earlier", ())]


def with_missed(mark: FileMark, missed: Missed | None) -> FileMark:
    """Return a mark that also tells of steps that could not be recorded."""
    return {**mark, "missed": missed} if missed else mark


class FileHistoryState(AgentState[Any]):
    """Up to which change the files of this step are known."""

    file_history: NotRequired[
        Annotated[
            FileMark, BinaryOperatorAggregate[Any](cast(Any, dict), keep_newest), PrivateStateAttr, NOT_SHARED
        ]
    ]


class Line(NamedTuple):
    """The records of a thread, with those of the threads it was copied from, up to that point."""

    members: tuple[tuple[str, int | None], ...]

    @property
    def thread(self) -> str:
        """The thread itself."""
        return self.members[0][0]

    def select(self, columns: str, table: str, after: int, until: int | None = None) -> tuple[str, list[Any]]:
        """Return a query for rows of these threads, by number, behind one number and up to another."""
        parts: list[str] = []
        values: list[Any] = []
        for thread, end in self.members:
            number = "ended" if table == "steps" else "id"
            last = min((each for each in (end, until) if each is not None), default=None)
            parts.append(
                f"(thread = ? AND {number} > ?" + ("" if last is None else f" AND {number} <= ?") + ")"
            )
            values += [thread, after] if last is None else [thread, after, last]
        return f"SELECT {columns} FROM {table} WHERE {' OR '.join(parts)} ORDER BY id", values

    def seen(self, store: Store, after: int, until: int | None = None) -> list[Seen]:
        """Return the changes of these threads, in their order."""
        query, values = self.select("id, path, before, after, shared", "seen", after, until)
        rows = store.read(query, *values)
        return [Seen(number, os.fsdecode(path), *rest) for number, path, *rest in rows if path is not None]


def name_thread(config: Any) -> str:
    """Return the thread that a config names.

    Raises:
        UndoError: where it names none.
    """
    given: Mapping[str, Any] = cast("Mapping[str, Any]", config) if isinstance(config, Mapping) else {}
    thread = given.get("configurable", {}).get("thread_id")
    if thread is None:
        raise UndoError(
            f"a config with a thread_id is needed, got {config!r}; write "
            '{"configurable": {"thread_id": "1"}}'
        )
    return str(thread)


def saver_of(agent: Any) -> BaseCheckpointSaver[Any]:
    """Return what saves the threads of an agent.

    Raises:
        UndoError: where nothing does.
    """
    saver = getattr(agent, "checkpointer", None)
    if not isinstance(saver, BaseCheckpointSaver):
        raise UndoError("the agent has no checkpointer, so there is nothing to go back to; give it one")
    return cast("BaseCheckpointSaver[Any]", saver)


def place(thread: str, checkpoint: str | None = None) -> RunnableConfig:
    """Return the config of a thread, or of a checkpoint of it."""
    configurable: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": configurable | ({"checkpoint_id": checkpoint} if checkpoint else {})}


async def read_checkpoint(saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> CheckpointTuple | None:
    """Return a checkpoint, the newest where the config names none."""
    return await IOCall(lambda: saver.get_tuple(config), lambda: saver.aget_tuple(config))


def checkpoint_id(found: CheckpointTuple | None) -> str:
    """Return the id of a checkpoint, `""` for none."""
    return (get_checkpoint_id(found.config) or "") if found else ""


def parent_id(found: CheckpointTuple) -> str:
    """Return the id of the checkpoint before."""
    return (get_checkpoint_id(found.parent_config) or "") if found.parent_config else ""


def is_half_done(found: CheckpointTuple) -> bool:
    """Return whether some calls of the step behind a checkpoint are done, and others not."""
    # What the library itself notes, as that an approval is waited for, is none of a call's work.
    return any(not channel.startswith("__") for _, channel, _ in found.pending_writes or ())


def mark_in(state: Mapping[str, Any], store: Store) -> FileMark | None:
    """Return the mark in a state, if it is of this store, with the name that its records have there."""
    given = cast("FileMark | None", state.get(KEY))
    mark = next((each for each in _list(given) if each["store"] == store.name), None) if given else None
    if not mark:
        return None
    # Where that thread was dropped, its records have another name, which ends with the last of their numbers.
    query, first = "SELECT name FROM about WHERE name >= ? AND name < ?", f"{FORGOTTEN}{mark['thread']}\n"
    names = sorted(store.read(query, f"{first}{mark['seen']:015}", f"{first}:"))
    return {**mark, "thread": names[0][0].removeprefix(FORGOTTEN)} if names else mark


def mark_of(found: CheckpointTuple | None, store: Store) -> FileMark | None:
    """Return the mark that a checkpoint holds, if it is of this store."""
    return mark_in(found.checkpoint["channel_values"], store) if found else None


def note_source(thread: str, mark: FileMark | None, store: Store) -> None:
    """Keep which thread one was copied from, as its state says."""
    if mark and mark["thread"] != thread:
        with store.write() as database:
            values = [thread, mark["thread"], mark["seen"]]
            database.execute("INSERT OR IGNORE INTO lines VALUES (?, ?, ?)", values)


def note_checkpoint(thread: str, checkpoint: str, seen: int, store: Store) -> None:
    """Keep up to which change the files of a checkpoint are known, where its own state does not say so."""
    with store.write() as database:
        database.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)", [thread, checkpoint, seen])


def find_line(thread: str, head: CheckpointTuple, store: Store) -> IOCall[Line]:
    """Return the records of a thread with this newest checkpoint."""
    return in_thread(lambda: _find_line(thread, mark_of(head, store), store))


def _find_line(thread: str, mark: FileMark | None, store: Store) -> Line:
    members: list[tuple[str, int | None]] = [(thread, None)]
    rows = store.read("SELECT source, until FROM lines WHERE thread = ?", thread)
    if not rows and mark and mark["thread"] != thread:
        rows = [(mark["thread"], mark["seen"])]
    while rows:
        source, until = rows[0]
        members.append((source, until))
        rows = store.read("SELECT source, until FROM lines WHERE thread = ?", source)
        # A copy of a copy ends where the first of them does.
        rows = [(name, min(end, until)) for name, end in rows if name not in dict(members)]
    return Line(tuple(members))


async def find_mark(saver: BaseCheckpointSaver[Any], found: CheckpointTuple, line: Line, store: Store) -> int:
    """Return up to which change the files of a checkpoint are known.

    It is the later of what its state says and what the store says of it, or of the nearest ancestor that the
    store knows.
    """
    mark = await in_thread(lambda: mark_of(found, store))
    known = mark["seen"] if mark else 0
    marks = ", ".join("?" * len(line.members))
    query = f"SELECT id, seen FROM checkpoints WHERE seen > ? AND id <= ? AND thread IN ({marks})"
    values = [known, checkpoint_id(found), *(thread for thread, _ in line.members)]
    later = dict(await in_thread(lambda: store.read(query, *values)))
    # Ids grow, so what is above the last of them is none of these; and to read a checkpoint costs.
    first, at = min(later, default=""), found
    while later and checkpoint_id(at) >= first:
        if checkpoint_id(at) in later:
            return later[checkpoint_id(at)]
        above = await read_checkpoint(saver, at.parent_config) if at.parent_config else None
        if above is None:
            break
        at = above
    return known


async def find_copy(
    saver: BaseCheckpointSaver[Any], thread: str, left: str, parent: str
) -> RunnableConfig | None:
    """Return the copy of a checkpoint with this parent that was written after `left`, if there is one."""

    def is_last(found: CheckpointTuple) -> bool:
        is_copy = found.metadata.get("source") == "fork" and parent_id(found) == parent
        return is_copy or checkpoint_id(found) == left

    found = await IOCall(
        lambda: next(filter(is_last, saver.list(place(thread))), None),
        lambda: anext((each async for each in saver.alist(place(thread)) if is_last(each)), None),
    )
    return found.config if found and checkpoint_id(found) != left else None

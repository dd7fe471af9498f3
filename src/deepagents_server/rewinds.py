"""Take a thread back to a checkpoint, with the files that its agent has changed since."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from deepagents import undo
from deepagents._values import valueclass
from deepagents.errors import PlanOutdated, UndoBusy, UndoError
from deepagents_server.database.engine import Row
from deepagents_server.database.quotas import check_kept
from deepagents_server.database.runs import count_active, lock_leases
from deepagents_server.database.tables import leases, threads
from deepagents_server.errors import ApiError
from deepagents_server.graphs import Graphs, history_of
from deepagents_server.serialize import show_checkpoint
from deepagents_server.server import Server
from deepagents_server.state import ThreadGraph, open_graph, read_shown

if TYPE_CHECKING:
    from deepagents.undo import Change, FileHistory, Plan, RewindResult

Choice = Literal["keep", "take"]
_BUSY: Final = "The thread is busy with a run; wait for it, or cancel it."
_OUTDATED: Final = "A file or the thread has changed since the plan was made; ask for a new one."
_log: Final = logging.getLogger("deepagents.server")


@valueclass
class Wanted:
    """Which checkpoint a thread is to go back to; or with `rewind_id`, which going back is taken back."""

    checkpoint_id: str | None = None
    rewind_id: str | None = None


@valueclass
class ThreadFiles(ThreadGraph):
    """A thread, and the history of the files that its agent changes."""

    history: FileHistory

    def name(self, path: Path) -> str:
        """Return a path as the agent's tools have it; where it lies on this machine is the server's own."""
        return self.history.name_path(self.graph, path)

    async def plan(self, wanted: Wanted) -> Plan:
        """Find out what going back would do.

        Raises:
            ApiError: if the thread has no such checkpoint, or the history cannot be used.
        """
        checkpoint_id = wanted.checkpoint_id
        config: Any = self.config({"checkpoint_id": checkpoint_id})
        if await self.graph.checkpointer.aget_tuple(config) is None:
            named = f"checkpoint {checkpoint_id!r}" if checkpoint_id else "checkpoint yet"
            raise ApiError(422, f"checkpoint_id: the thread has no {named}.")
        with _refusing():
            return await self.history.aplan(self.graph, _make_target(config, wanted.rewind_id))

    def show(self, plan: Plan) -> dict[str, Any]:
        """Show what a plan would do, by the paths of the agent."""
        kinds = {name: getattr(plan, name) for name in ("restored", "removed", "conflicts", "not_kept")}
        shown = {name: [self._show(each) for each in found] for name, found in kinds.items()}
        return {
            "plan": sign(plan),
            "checkpoint_id": plan.target.checkpoint,
            **shown,
            "uncovered": self.show_uncovered(plan),
        }

    def show_uncovered(self, plan: Plan) -> list[str]:
        """Show the sentences about what else is not taken back, without places of this machine."""
        roots = {str(root): self.name(root) for root in self.history.roots(self.graph)}
        roots[str(self.history.directory)] = "its directory"
        return [_without_roots(each, roots) for each in plan.uncovered]

    def _show(self, change: Change) -> dict[str, str]:
        return {"path": self.name(change.path), "kind": change.kind, "reason": change.reason}

    def find_choices(
        self, plan: Plan, conflicts: Choice | Mapping[str, Choice]
    ) -> Choice | dict[Path, Choice]:
        """Return what is to become of conflicts, by the paths of this machine.

        Raises:
            ApiError: for a path that the plan does not have.
        """
        if isinstance(conflicts, str):
            return conflicts
        every = (*plan.restored, *plan.removed, *plan.conflicts, *plan.not_kept)
        known = {self.name(each.path): each.path for each in every}
        for path in conflicts:
            if path not in known:
                raise ApiError(422, f"conflicts: the plan has no {path!r}.")
        return {known[path]: choice for path, choice in conflicts.items()}


def _make_target(config: Any, rewind_id: str | None) -> Any:
    if rewind_id is None:
        return config
    return undo.RewindResult(config, config, rewind=rewind_id, moved=True)


def _without_roots(sentence: str, roots: Mapping[str, str]) -> str:
    for root, name in sorted(roots.items(), key=lambda each: len(each[0]), reverse=True):
        sentence = sentence.replace(root, "the agent's directory" if name in ("/", root) else name)
    return sentence


def sign(plan: Plan) -> str:
    """Return a text that is another one once anything about a plan is."""
    every = (*plan.restored, *plan.removed, *plan.conflicts, *plan.not_kept)
    shown = [(str(each.path), each.reason) for each in every]
    return sha256(repr((plan.target, plan.items, shown)).encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def _refusing() -> Generator[None]:
    """Refuse what cannot be taken back; the reason may name paths of this machine, and is for its log.

    Raises:
        ApiError: 409 where it may be possible later, 503 where the history cannot be used.
    """
    try:
        yield
    except PlanOutdated as error:
        raise ApiError(409, _OUTDATED) from error
    except UndoBusy as error:
        raise ApiError(
            409, "A step of an agent is under way in the directory of these files; wait until it ends."
        ) from error
    except UndoError as error:
        _log.warning("A thread cannot be taken back: %s", error)
        raise ApiError(503, "This cannot be taken back now; the server's log says why.") from error


@asynccontextmanager
async def open_files(server: Server, thread: Row) -> AsyncGenerator[ThreadFiles]:
    """Open a thread with the history of its files.

    Raises:
        ApiError: if its agent keeps none.
    """
    async with open_graph(server, thread) as opened:
        history = opened and history_of(opened.graph)
        if opened is None or history is None:
            raise ApiError(
                422,
                "The agent of this thread keeps no history of files, so it cannot be taken back; "
                "create_deep_agent takes one as file_history.",
            )
        yield ThreadFiles(opened.graph, opened.thread_id, history)


async def keep_points(server: Server, copied: Row) -> None:
    """Let a copied thread go back as far as the one it was made of, also when that is removed."""
    async with open_graph(server, copied) as opened:
        if opened and (history := history_of(opened.graph)):
            try:
                await history.anote_copy(opened.graph, cast(Any, opened.config({})))
            except UndoError as error:
                _log.warning("Thread %s has no files to go back to: %s", copied["thread_id"], error)


async def forget_files(graphs: Graphs, thread_ids: Iterable[str]) -> None:
    """Drop what is kept of the files that agents changed on threads that are gone."""
    for history in await graphs.find_histories():
        for thread_id in thread_ids:
            try:
                await asyncio.to_thread(history.forget, thread_id)
            except UndoError as error:
                _log.warning("Files of thread %s are still kept: %s", thread_id, error)


async def fence(connection: AsyncConnection, thread_id: str) -> int | None:
    """Take the next number of a lease without a run; `None` if runs wait or work on the thread.

    The next run gets a later one: from then on, what is written with this one is refused.
    """
    await lock_leases(connection, [thread_id])
    if await count_active(connection, thread_id):
        return None
    raised = leases.update().where(leases.c.thread_id == thread_id, leases.c.run_id.is_(None))
    return (
        await connection.execute(raised.values(token=leases.c.token + 1).returning(leases.c.token))
    ).scalar()


async def rewind_thread(
    server: Server,
    thread: Row,
    wanted: Wanted,
    *,
    files: bool,
    conversation: bool,
    conflicts: Choice | Mapping[str, Choice],
    plan: str | None,
) -> dict[str, Any]:
    """Take a thread back, while no run is at work on it; with `plan`, only if that is still the plan.

    Raises:
        ApiError: if a run waits or works there, a plan is outdated, or there is nothing to go back to.
    """
    async with open_files(server, thread) as opened:
        async with server.database.write() as connection:
            await check_kept(connection, server.database.owner)
            token = await fence(connection, thread["thread_id"])
        if token is None:
            raise ApiError(409, _BUSY)
        made = await opened.plan(wanted)
        if plan is not None and plan != await asyncio.to_thread(sign, made):
            raise ApiError(409, _OUTDATED)
        choices: Any = opened.find_choices(made, conflicts)
        # A run that begins from here on has a later number, and the checkpoint to go on from is refused.
        leased = opened.graph.copy({"checkpointer": opened.graph.checkpointer.under(token)})
        try:
            with _refusing():
                done = await opened.history.arewind(
                    leased, made, files=files, conversation=conversation, conflicts=choices
                )
        except ApiError as error:
            of_thread = leases.c.thread_id == thread["thread_id"]
            held = await server.database.row(sa.select(leases.c.token).where(of_thread))
            if held != {"token": token}:
                raise ApiError(409, _OUTDATED) from error
            raise
        if done.config != done.left:
            await _show_in_row(server, opened, token)
        return _show_done(opened, done, made)


async def _show_in_row(server: Server, opened: ThreadFiles, token: int) -> None:
    """Let the thread show where it stands, unless a run has begun that does so when it ends."""
    state = await opened.graph.aget_state(cast(Any, opened.config({})))
    shown = read_shown(opened.graph, state)
    thread_id = opened.thread_id
    async with server.database.write() as connection:
        await lock_leases(connection, [thread_id])
        status = "busy" if await count_active(connection, thread_id) else shown["status"]
        mine = sa.exists().where(leases.c.thread_id == thread_id, leases.c.token == token)
        changed = threads.update().where(threads.c.thread_id == thread_id, mine)
        await connection.execute(changed.values({**shown, "status": status}))


def _show_done(opened: ThreadFiles, done: RewindResult, plan: Plan) -> dict[str, Any]:
    def names(paths: Iterable[Path]) -> list[str]:
        return [opened.name(each) for each in paths]

    at = show_checkpoint(done.config) or {}
    return {
        "checkpoint": at,
        "checkpoint_id": at["checkpoint_id"],
        "left": show_checkpoint(done.left),
        "rewind_id": done.rewind or None,
        "changed": names(done.changed),
        "kept": names(done.kept),
        "failed": names(done.failed),
        "uncovered": opened.show_uncovered(plan),
    }

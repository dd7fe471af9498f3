"""Keep what agents change, and take it back: the public face of undo."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from deepagents._async import in_thread, sync_and_async
from deepagents.backends.handle import open_backend
from deepagents.errors import PlanOutdated, UndoError
from deepagents.permissions import Rules
from deepagents.undo import threads
from deepagents.undo.agents import NOT_ON_DISK, AgentFiles
from deepagents.undo.index import Bounds
from deepagents.undo.journal import Journal, Target
from deepagents.undo.middleware import FileHistoryMiddleware, MainFileHistoryMiddleware
from deepagents.undo.planner import Planner, list_names
from deepagents.undo.plans import Change, Item, by_path, settle, show_change
from deepagents.undo.recorder import Recorder
from deepagents.undo.results import Coverage, Plan, RewindResult
from deepagents.undo.rewinds import Rewinds
from deepagents.undo.store import Store, StoreOff
from deepagents.undo.threads import Line, Missed, place

Choice: TypeAlias = Literal["keep", "take"]
T = TypeVar("T")
_log = logging.getLogger(__name__)


class FileHistory:
    """Keeps what the tools and commands of agents change on disk, so that it can be taken back.

    Args:
        directory: where it is kept. Other users cannot read it. It must not be in a project.
        max_bytes: most bytes on disk. The oldest records go first, never the newest of a thread.
        max_age_days: records of more days than this are dropped.
        max_file_bytes: larger files are known and not kept.
        max_files: of a directory with more files, only what file tools change is kept.
        max_tree_bytes: the same for the bytes of its files.
        ignored: whether to keep what git ignores, too.
        report: called with a sentence when steps cannot be recorded from now on, as on a full disk, and with
            `None` when they can again; in the thread of the step.

    It raises nothing where it cannot write: `coverage` says so, and agents work as without it. What was
    changed meanwhile, plans name or say that they do not know.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_bytes: int = 2_000_000_000,
        max_age_days: float = 30,
        max_file_bytes: int = 5_000_000,
        max_files: int = 50_000,
        max_tree_bytes: int = 1_000_000_000,
        ignored: bool = False,
        report: Callable[[str | None], None] | None = None,
    ) -> None:
        self.directory = Path(directory).expanduser().resolve()
        self._store = Store(self.directory, max_bytes, max_age_days)
        self._recorder = Recorder(self._store, Bounds(max_file_bytes, max_files, max_tree_bytes, ignored))
        self._report = report
        self._off: StoreOff | None = None
        self._trouble: str | None = None
        self._agents: WeakKeyDictionary[Any, AgentFiles] = WeakKeyDictionary()
        self._planner = Planner(self._recorder)
        self._rewinds = Rewinds(self._recorder, max_file_bytes)

    def size(self) -> int:
        """Return how many bytes it has on disk."""
        return self._store.size()

    def close(self) -> None:
        """Let go of its file; the next use opens it again."""
        self._store.close()

    def forget(self, thread_id: str) -> None:
        """Drop the records of a thread."""
        with self._reporting():
            self._store.forget(thread_id)

    # -- agents

    def describe(self, backend: Any, rules: Rules, *, has_tools: bool, hands_on: bool) -> AgentFiles:
        """Find out where an agent's tools change files; `create_deep_agent` does so."""
        handle = open_backend(backend)
        runs_anything = has_tools or hands_on or handle.capabilities().execute
        return AgentFiles(handle, rules, runs_anything=runs_anything, foreign=hands_on)

    def make_middleware(self, files: AgentFiles, *, is_main: bool) -> FileHistoryMiddleware:
        """Make what records the calls of one agent; `create_deep_agent` does so."""
        return (MainFileHistoryMiddleware if is_main else FileHistoryMiddleware)(self, files)

    def attach(self, agent: Any, files: AgentFiles) -> None:
        """Know an agent by its graph, of which there may be copies; `create_deep_agent` does so."""
        self._agents[agent.builder] = files

    def arecording(self, agent: Any) -> AbstractAsyncContextManager[None]:
        """Record what changes meanwhile as the work of the thread whose run this is.

        It is for middleware that itself runs commands, outside of the calls of tools.

        Raises:
            UndoError: where there is no history of this agent.
        """
        return MainFileHistoryMiddleware(self, self._find(agent)).recording()

    def attempt(self, work: Callable[[Recorder], T], missed: Callable[..., None] | None = None) -> T | None:
        """Do what a step needs; where that fails, the step goes on, and `missed` notes it and `why`.

        The next step tries again, unless the file of the history is broken.
        """
        error = self._off
        if error is None:
            try:
                if self._trouble:
                    # To read may well be possible: that does not mean that the next step is recorded.
                    self._store.try_to_write()
                self._recorder.make_up()
                found = work(self._recorder)
            except StoreOff as raised:
                error = raised
            # Whatever is wrong here, the work of the agent must not end for it.
            except Exception as raised:  # noqa: BLE001
                _log.warning("a step was not recorded", exc_info=True)
                text = f"the history of files in {self.directory} fails: {raised}"
                error = StoreOff(text, type(raised).__name__)
            else:
                self._tell(None)
                return found
        self._off = error if error.lasts else None
        self._tell(str(error))
        if missed:
            missed(self._recorder, why=error.why)
        return None

    def missed_of(self, thread: str) -> Missed | None:
        """Return which steps of a thread could not be recorded yet."""
        missed = self._recorder.missed.get(thread)
        return missed[0] if missed else None

    def has_made_up(self, thread: str) -> bool:
        """Return whether something was recorded late that the state of a thread does not know."""
        return thread in self._recorder.made_up

    def _tell(self, trouble: str | None) -> None:
        """Report that steps cannot be recorded from now on, or that they can again."""
        if (trouble is None) == (self._trouble is None):
            return
        self._trouble = trouble
        if trouble:
            _log.warning("steps are not recorded: %s", trouble)
        if self._report:
            self._report(trouble)

    @contextmanager
    def _reporting(self) -> Any:
        """Raise `UndoError` for a store that cannot be used."""
        if self._off is not None:
            raise UndoError(str(self._off)) from self._off
        try:
            yield
        except StoreOff as error:
            raise UndoError(str(error)) from error

    def _find(self, agent: Any) -> AgentFiles:
        files = self._agents.get(getattr(agent, "builder", None))
        if files is None:
            raise UndoError(
                "this agent has no history of files, or another one; pass this one to create_deep_agent as "
                "file_history="
            )
        return files

    async def _note_copy(self, agent: Any, config: RunnableConfig) -> None:
        """Keep the records that a copied thread goes on from, also when that which it was made of is dropped.

        A run of the copy does so by itself.

        Raises:
            UndoError: where there is no such thread, or no history of this agent.
        """
        self._find(agent)
        with self._reporting():
            _, head, thread = await self._read(agent, config)
            await in_thread(
                lambda: threads.note_source(thread, threads.mark_of(head, self._store), self._store)
            )

    note_copy, anote_copy = sync_and_async(_note_copy)

    def name_path(self, agent: Any, path: Path) -> str:
        """Return how an agent's tools name what lies at a path on disk; the path itself where they do not.

        Raises:
            UndoError: where there is no history of this agent.
        """
        return self._find(agent).name_of(path)

    def roots(self, agent: Any) -> tuple[Path, ...]:
        """Return the directories in which an agent's tools change files.

        Raises:
            UndoError: where there is no history of this agent.
        """
        return tuple(map(Path, self._find(agent).places.roots))

    # -- questions

    async def _coverage(self, agent: Any) -> Coverage:
        """Return what of this agent's changes can be taken back; the first look may be taken now."""
        files = self._find(agent)
        if not files.places.roots:
            return Coverage(False, False, NOT_ON_DISK)
        why = await in_thread(
            lambda: self.attempt(lambda recorder: recorder.look_at_all(files.places, once=True))
        )
        if why is None:
            return Coverage(False, False, self._trouble)
        return Coverage(True, not why, why[0] if why else None)

    coverage, acoverage = sync_and_async(_coverage)

    async def _changes(
        self, agent: Any, config: RunnableConfig, until: RunnableConfig | None = None
    ) -> tuple[Change, ...]:
        """Return what a thread has changed since a checkpoint, till another or until now.

        Raises:
            UndoError: as `plan` does.
        """
        self._find(agent)
        with self._reporting():
            after, line = await self._find_place(agent, config)
            before = (await self._find_place(agent, until))[0] if until else None
            changed = await in_thread(lambda: by_path(line.seen(self._store, after, before)))
            pairs = ((path, seen[0].before, seen[-1].after) for path, seen in sorted(changed.items()))
            return tuple(show_change(*each, self._store) for each in pairs if each[1] != each[2])

    changes, achanges = sync_and_async(_changes)

    async def _find_place(self, agent: Any, config: RunnableConfig) -> tuple[int, Line]:
        found, head, thread = await self._read(agent, config)
        line = await threads.find_line(thread, head, self._store)
        return await threads.find_mark(threads.saver_of(agent), found, line, self._store), line

    async def _read(self, agent: Any, config: Any) -> tuple[CheckpointTuple, CheckpointTuple, str]:
        """Return the checkpoint that a config names, the newest of its thread, and that thread."""
        saver, thread = threads.saver_of(agent), threads.name_thread(config)
        wanted = config["configurable"].get("checkpoint_id")
        head = await threads.read_checkpoint(saver, place(thread))
        found = await threads.read_checkpoint(saver, place(thread, wanted)) if wanted else head
        if head is None or found is None:
            named = f"checkpoint {wanted!r} in thread" if wanted else "thread"
            raise UndoError(f"there is no {named} {thread!r}")
        return found, head, thread

    # -- plans

    async def _plan(self, agent: Any, target: RunnableConfig | RewindResult) -> Plan:
        """Find out what going back to a checkpoint would do, or what taking a going back back would.

        Raises:
            UndoError: where there is no such checkpoint, no checkpointer, or no history of this agent.
        """
        files = self._find(agent)
        # What went back without the conversation goes forth without it.
        done = target if isinstance(target, RewindResult) else RewindResult(target, target, moved=True)
        config = done.left
        with self._reporting():
            await self._recover(agent, config)
            found, head, thread = await self._read(agent, config)
            state = head.checkpoint["channel_values"]
            await in_thread(lambda: self._recorder.make_up_for(thread, files.places, state))
            await in_thread(lambda: self._recorder.note_made_up(thread, threads.checkpoint_id(head)))
            line = await threads.find_line(thread, head, self._store)
            is_head = threads.checkpoint_id(found) == threads.checkpoint_id(head)
            mark = await threads.find_mark(threads.saver_of(agent), found, line, self._store)
            where = Target(
                line,
                threads.checkpoint_id(head),
                threads.checkpoint_id(found),
                threads.parent_id(found),
                done.moved and (not is_head or threads.is_half_done(found)),
                mark,
                done.rewind,
                tuple(map(str, done.changed)),
            )
            return await in_thread(lambda: self._planner.plan(files, where, self))

    plan, aplan = sync_and_async(_plan)

    # -- going back

    async def _rewind(
        self,
        agent: Any,
        plan: Plan,
        *,
        files: bool = True,
        conversation: bool = True,
        conflicts: Choice | Mapping[Path, Choice] = "keep",
    ) -> RewindResult:
        """Carry out a plan: for the files, the conversation, or both, all or nothing.

        `conflicts` says what becomes of these paths: `keep` leaves them, `take` carries the plan out there
        too; or a mapping says so for each.

        Raises:
            PlanOutdated: where a path or the thread has changed since the plan. UndoError: where a step is
            under way in these directories, or there is no room.
        """
        found = self._find(agent)
        if plan.history is not self:
            raise UndoError("this plan is of another history of files; make it with this one")
        takes = _read_choices(conflicts, {each.path for each in plan.items})
        target = plan.target
        with self._reporting():
            await self._recover(agent, place(target.line.thread))
            head = await threads.read_checkpoint(threads.saver_of(agent), place(target.line.thread))
            if threads.checkpoint_id(head) != target.head:
                raise PlanOutdated(f"thread {target.line.thread!r} has gone on since the plan was made")
            items = await in_thread(lambda: self._check_again(found, plan, takes)) if files else []
            left = place(target.line.thread, target.head)
            applied = [each for each in items if each.is_applied]
            moves = conversation and target.moves
            kept = tuple(Path(each.path) for each in items if not each.is_applied)
            if not applied and not moves:
                return RewindResult(left, left, kept=kept)
            journal = Journal.of(plan.rewind, target, found.places.roots, applied, moves=moves)
            config, failed = await self._rewinds.carry_out(agent, journal, target.checkpoint)
            changed = tuple(Path(each.path) for each in applied if each.path not in failed)
            return RewindResult(config, left, changed, kept, tuple(map(Path, failed)), journal.rewind, moves)

    rewind, arewind = sync_and_async(_rewind)

    def _check_again(self, files: AgentFiles, plan: Plan, takes: Callable[[Item], bool]) -> list[Item]:
        """Return the items of a plan as they are to be carried out, if they are still what they were.

        Raises:
            PlanOutdated: naming a path that is not.
        """
        planned = {each.path: each for each in plan.items}
        items = self._planner.decide(files, plan.target)
        for item in items:
            if planned.pop(item.path, None) != item:
                raise PlanOutdated(f"{item.path} has changed since the plan was made")
        if planned:
            raise PlanOutdated(f"{next(iter(planned))} has changed since the plan was made")
        paths = [each.path for each in items]
        self._rewinds.check_free([*files.places.roots, *paths])
        return settle(items, list_names, takes)

    # -- after a kill

    async def _recover_thread(self, agent: Any, config: RunnableConfig) -> None:
        """Finish or drop what a kill cut off in this thread or these directories; plans and runs do so."""
        with self._reporting():
            await self._recover(agent, config)

    recover, arecover = sync_and_async(_recover_thread)

    async def _recover(self, agent: Any, config: RunnableConfig) -> None:
        roots = self._find(agent).places.roots
        await in_thread(self._recorder.make_up)
        await self._rewinds.finish_left(threads.saver_of(agent), threads.name_thread(config), roots)

    async def finish_rewinds(self, saver: Any, thread: str, roots: Sequence[str]) -> None:
        """Finish or drop what was cut off in a thread or below these directories, for a run that starts."""
        await self._rewinds.finish_left(saver, thread, roots)


def _read_choices(conflicts: Any, planned: Collection[str]) -> Callable[[Item], bool]:
    is_mapping = isinstance(conflicts, Mapping)
    choices = cast("Mapping[Any, Any]", conflicts) if is_mapping else {None: conflicts}
    for choice in choices.values():
        if choice not in ("keep", "take"):
            raise UndoError(
                f"conflicts must be 'keep' or 'take', or a mapping of paths to these, got {choice!r}"
            )
    named = {str(path): choice for path, choice in choices.items() if path is not None}
    for path in named:
        if path not in planned:
            raise UndoError(f"this plan has no {path!r}; name absolute paths from its conflicts")
    default = choices.get(None, "keep")
    return lambda item: named.get(item.path, default) == "take"

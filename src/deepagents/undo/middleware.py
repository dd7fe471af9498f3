"""Record what the tools of an agent change, and tell the model which files were taken back."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, get_checkpoint_id

from deepagents._async import arun, finish_first, in_thread, run, setting, start_thread
from deepagents._state.run_end import run_end
from deepagents._state.runtime import (
    has_channel,
    place_of_agent,
    running_saver,
    step_under_way,
    write_channel,
    writes_undone_on_failure,
)
from deepagents._values import replace
from deepagents.errors import HarnessError
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response, ToolResult, with_changes
from deepagents.tools._versions import VERSIONS_CHANNEL
from deepagents.undo.recorder import Recorder
from deepagents.undo.steps import Directories, RecordedStep
from deepagents.undo.store import StoreOff
from deepagents.undo.threads import (
    KEY,
    FileHistoryState,
    FileMark,
    checkpoint_id,
    mark_in,
    note_source,
    parent_id,
    place,
    read_checkpoint,
    with_missed,
)

if TYPE_CHECKING:
    from deepagents.undo.agents import AgentFiles
    from deepagents.undo.history import FileHistory

_OWNER: ContextVar[str | None] = ContextVar("deepagents_undo_thread", default=None)
_HEADER: Final = (
    "[System notification: the user took these files back to an earlier state. The user did not write this. "
    "Read them again before you rely on what they hold.]"
)
_MOST_NAMED: Final = 50
_END_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 20.0
_REFUSALS: Final = frozenset(
    {
        "already_exists", "ambiguous_match", "file_not_found", "invalid_argument", "invalid_encoding",
        "invalid_path", "is_directory", "limit_reached", "no_match", "not_a_directory", "not_run",
        "not_supported", "parallel_mutation", "permission_denied", "stale_version", "too_large",
    }
)  # fmt: skip
"""Codes of failures before anything was changed; others may have come behind that."""
_log = logging.getLogger(__name__)


class FileHistoryMiddleware(BaseMiddleware):
    """Records what each call of a tool changes, for the thread that the run is of."""

    is_main = False

    def __init__(self, history: FileHistory, files: AgentFiles) -> None:
        super().__init__()
        self._history = history
        self._files = files
        self.tools = []

    @property
    def name(self) -> str:
        """The same for the main agent and for subagents."""
        return "FileHistoryMiddleware"

    async def _around_tool(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]
    ) -> ToolResult:
        kind = self._files.kind_of(request.tool)
        # What works for a thread, in the background too, has threads of its own; the first one counts.
        thread = _OWNER.get() or place_of_agent()[0]
        if kind is None or thread is None or not self._files.places.roots:
            result = await inner(handler, request)
            if thread is not None and self._files.tells_of_others(request.tool):
                find_last = partial(Recorder.last_of, thread=thread)
                self._note(thread, await in_thread(lambda: self._find_mark(thread, find_last)))
            return result
        arguments, notes = request.tool_call["args"], list[str]()
        begin: Callable[[Recorder], RecordedStep | None]
        if kind == "all":
            begin = partial(Recorder.begin, thread=thread, places=self._files.places)
        else:
            paths, notes = self._files.paths_in(request.tool, arguments)
            begin = partial(
                Recorder.begin_files, thread=thread, paths=paths, places=self._files.places, notes=notes
            )
        step = await self._begin(begin, thread)
        if step is None:
            return await inner(handler, request)
        result: Any = None
        try:
            with setting(_OWNER, thread):
                result = await inner(handler, request)
        finally:
            if command := _started_command(result):
                follow = partial(self._follow, step, command, cast(Any, request).runtime)
                await finish_first(in_thread(follow))
            else:
                await self._end(replace(step, untrue=notes) if _did_nothing(result) else step)
        return result

    @asynccontextmanager
    async def recording(self) -> AsyncGenerator[None]:
        """Record what changes meanwhile as a step of the thread whose run this is."""
        thread = place_of_agent()[0]
        if thread is None or not self._files.places.roots:
            yield
            return
        begin = partial(Recorder.begin, thread=thread, places=self._files.places)
        step = await arun(self._begin(begin, thread))
        try:
            yield
        finally:
            if step:
                await arun(self._end(step))

    async def _begin(
        self, begin: Callable[[Recorder], RecordedStep | None], thread: str
    ) -> RecordedStep | None:
        missed = partial(Recorder.note_missed, thread=thread, places=self._files.places)
        step = await finish_first(
            in_thread(lambda: self._history.attempt(lambda recorder: recorder.start(begin), missed))
        )
        if step is None:
            self._note(thread, None)
        return step

    async def _end(self, step: RecordedStep) -> None:
        mark = await finish_first(in_thread(lambda: self._close(step)))
        self._note(step.thread, mark)

    def _close(self, step: RecordedStep) -> FileMark | None:
        close = partial(Recorder.close, step=step, places=self._files.places)
        late = partial(Recorder.note_late, step=step, places=self._files.places)
        return self._find_mark(step.thread, close, late)

    def _find_mark(
        self, thread: str, find: Callable[[Recorder], int | None], missed: Callable[..., None] | None = None
    ) -> FileMark | None:
        """Attempt what finds the last change of a thread, and return the mark that names it."""

        def make(recorder: Recorder) -> FileMark | None:
            seen = find(recorder)
            return FileMark(store=recorder.store.name, thread=thread, seen=seen) if seen else None

        return self._history.attempt(make, missed)

    def _note(self, thread: str, mark: FileMark | None) -> None:
        """Let the state of the thread name the last change; what works for it has a state of its own."""
        missed = self._history.missed_of(thread)
        if (mark or missed) and self.is_main and place_of_agent()[0] == thread:
            write_channel(KEY, with_missed(mark or FileMark(store="", thread=thread, seen=0), missed))

    def _follow(self, step: RecordedStep, command_id: str, runtime: Any) -> None:
        """Let a step go on until a command in the background has ended."""
        self._history.attempt(lambda recorder: recorder.keep_open(step))
        files = self._files.handle.files(runtime)
        over = threading.Event()

        def follow() -> None:
            offset = 0
            try:
                while (
                    status := run(files.poll_command(command_id, offset, _POLL_SECONDS))
                ).exit_code is None:
                    offset = status.next_offset
            except HarnessError:
                _log.debug("a command in the background is not known any more", exc_info=True)
            finally:
                self._close(step)
                over.set()

        # Without the context of the run, whose time limit is not this command's.
        threading.Thread(target=follow, name="deepagents-undo", daemon=True).start()
        end = run_end()
        if end is not None and not files.capabilities().keeps_commands:
            # The run ends the command; who goes on after the run finds its changes recorded.
            end.add(lambda: _wait(over))


async def _wait(over: threading.Event) -> None:
    await in_thread(lambda: over.wait(_END_SECONDS))


def _did_nothing(result: Any) -> bool:
    """Return whether a file tool was refused before it changed anything, as far as its error says."""
    return (
        isinstance(result, ToolMessage)
        and result.status == "error"
        and result.additional_kwargs.get("error_code") in _REFUSALS
    )


def _started_command(result: Any) -> str | None:
    artifact: Any = result.artifact if isinstance(result, ToolMessage) else None
    if not isinstance(artifact, dict) or "exit_code" in artifact:
        return None
    return cast("dict[str, Any]", artifact).get("command_id")


class MainFileHistoryMiddleware(FileHistoryMiddleware):
    """Does the same for the agent whose thread it is, and keeps the thread and its records together."""

    is_main = True
    state_schema = FileHistoryState

    async def _before_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Finish what was cut off, and let the state name all that this thread has changed."""
        thread, saver = place_of_agent()[0], running_saver()
        if thread is None or saver is None or not self._files.places.roots:
            return None
        begin = partial(_begin, thread=thread, state=state, places=self._files.places)
        if await in_thread(lambda: self._history.attempt(begin)) is None:
            return None
        try:
            await self._history.finish_rewinds(saver, thread, self._files.places.roots)
        except StoreOff as error:
            _log.warning("a going back was not finished: %s", error)
        if self._files.runs_anything:
            # While the model thinks: only the first look at a tree takes long.
            look = partial(Recorder.look_at_all, places=self._files.places, once=True)
            start_thread(lambda: self._history.attempt(look))
        before = await self._find_before(saver, thread) if self._history.has_made_up(thread) else ""
        return await in_thread(
            lambda: self._history.attempt(partial(_catch_up, thread=thread, state=state, before=before))
        )

    async def _find_before(self, saver: BaseCheckpointSaver[Any], thread: str) -> str:
        """Return the checkpoint from which a run that begins goes on."""
        head, step = await read_checkpoint(saver, place(thread)), step_under_way()
        # Where the saver lags behind, the newest is perhaps none of this run.
        is_own = step is not None and checkpoint_id(head) == get_checkpoint_id(step.place)
        while is_own and head and head.parent_config and head.metadata.get("source") != "input":
            head = await read_checkpoint(saver, head.parent_config)
        return parent_id(head) if head and head.metadata.get("source") == "input" else checkpoint_id(head)

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        thread = place_of_agent()[0]
        rows = None
        if thread is not None and self._files.places.roots:
            rows = await in_thread(
                lambda: self._history.attempt(
                    lambda recorder: recorder.store.read(
                        "SELECT path, alone FROM news WHERE thread = ?", thread
                    )
                )
            )
        if thread is not None and self._history.has_made_up(thread):
            take = partial(Recorder.take_made_up, thread=thread)
            self._note(thread, await in_thread(lambda: self._find_mark(thread, take)))
        if not rows:
            return await inner(handler, request)
        with writes_undone_on_failure():
            response = await inner(handler, self._tell(request, rows))
        # Only now: a request that failed is made again.
        await in_thread(
            lambda: self._history.attempt(lambda recorder: _forget_news(recorder, thread or "", rows))
        )
        return response

    def _tell(self, request: Request, rows: list[tuple[bytes, int]]) -> Request:
        paths = {os.fsdecode(path): alone for path, alone in rows}
        state = cast("Mapping[str, Any]", request.state)
        known = self._files.find_virtual(state.get(VERSIONS_CHANNEL) or {}, set(paths))
        if known and has_channel(VERSIONS_CHANNEL):
            write_channel(VERSIONS_CHANNEL, dict.fromkeys(known))
        named = sorted(path.encode("utf-8", "replace").decode() for path, alone in paths.items() if alone)
        if not named:
            return request
        more = [f"... and {len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
        text = "\n".join([_HEADER, *named[:_MOST_NAMED], *more])
        message = HumanMessage(text, id=str(uuid4()), additional_kwargs={"lc_source": KEY})
        write_channel("messages", [message])
        return with_changes(request, messages=[*request.messages, message])


def _forget_news(recorder: Recorder, thread: str, rows: list[tuple[bytes, int]]) -> None:
    with recorder.store.write() as database:
        database.executemany(
            "DELETE FROM news WHERE thread = ? AND path = ?", [(thread, path) for path, _ in rows]
        )


def _begin(recorder: Recorder, thread: str, state: Mapping[str, Any], places: Directories) -> str:
    """Begin a turn, and record that steps are not known of which its state tells; return the store's name."""
    recorder.begin_turn(thread, places)
    recorder.make_up_for(thread, places, state)
    return recorder.store.name


def _catch_up(
    recorder: Recorder, thread: str, state: Mapping[str, Any], before: str
) -> dict[str, Any] | None:
    """Return the mark of a state that lags behind, or that is of the thread this one was copied from.

    What was made up for is older than this run: the checkpoint `before` it has that.
    """
    store = recorder.store
    if before:
        recorder.note_made_up(thread, before)
    mark = mark_in(state, store)
    last = recorder.last_of(thread)
    if mark and mark["thread"] != thread:
        note_source(thread, mark, store)
        return {KEY: FileMark(store=store.name, thread=thread, seen=max(last, mark["seen"]))}
    if last and (mark is None or mark["seen"] < last):
        return {KEY: FileMark(store=store.name, thread=thread, seen=last)}
    return None

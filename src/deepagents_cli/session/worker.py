"""Take what a screen sends: open a directory, enter its threads, and carry out what is asked, in order."""

from __future__ import annotations

import logging
from asyncio import Future, Queue, create_task, get_running_loop, sleep, to_thread, wait
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

from deepagents_cli import protocol
from deepagents_cli.errors import (
    CommandError,
    Exit,
    choose_exit_code,
    describe_error,
    explain_error,
    is_for_people,
)  # fmt: skip
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.session.slash import carry_out, list_commands
from deepagents_cli.session.threads.sessions import InUse
from deepagents_cli.session.turns.asking import Say
from deepagents_cli.session.workplace.editor import Editor
from deepagents_cli.session.workplace.workplace import Workplace
from deepagents_cli.session.workplace.worktrees import settle_place

logger = logging.getLogger(__name__)
_MOST_SECONDS: Final = 15.0
"""For a thread that another process is about to leave."""
_BETWEEN: Final = 0.2
_CHOICES: Final = ("mode", "model", "effort")
"""Commands that a stop drops not: an editor reads and changes these beside its prompts."""
_WAITS: Final = (
    "Another process works in this session. It is opened once that has ended, within {seconds:.0f} seconds. "
    "Ctrl-C twice leaves; for a copy to work in: deepagents sessions fork {thread}"
)


class Worker:
    """The worker of a screen: it opens one directory, and one of its threads at a time."""

    def __init__(self, say: Say, end: Callable[[int], None], editor: Editor | None = None) -> None:
        self._say = say
        self._end = end
        self._editor = editor
        self._orders: Queue[tuple[protocol.Order | protocol.Stop, int]] = Queue()
        """What is to be carried out, and how many stops had come before it."""
        self._stops = 0
        self._sent = 0
        """How many texts have not been taken yet."""
        self._task = create_task(self._carry_out_orders())
        self._trust: Future[bool] = get_running_loop().create_future()
        self._talk: Conversation | None = None
        self._held = ExitStack()
        """The thread that is open, for no other process."""
        self._place: Workplace | None = None
        self._opening: protocol.Open | None = None

    def take(self, message: protocol.ToWorker) -> None:
        """Take a message of the screen."""
        match message:
            case protocol.Stop() if self._talk is not None:
                self._talk.take(message)
                self._stops += 1
                if self._sent:
                    # It was pressed behind a text that has begun no turn yet.
                    self._orders.put_nowait((message, self._stops))
            case protocol.Open() | protocol.Send() | protocol.Invoke() | protocol.Save() | protocol.Replay():
                self._sent += isinstance(message, protocol.Send)
                self._orders.put_nowait((message, self._stops))
            case protocol.Trusted():
                self._trust.set_result(message.agreed)
            case protocol.Close():
                self._end(Exit.DONE)
            case _ if self._talk is not None:
                self._talk.take(message)
            case _:
                pass

    async def close(self) -> None:
        """Stop the turn, and finish writing."""
        self._task.cancel()
        # What it was opening is closed by itself.
        await wait([self._task])
        if self._talk is not None:
            await self._talk.end()
        self._held.close()
        if self._place is not None:
            await self._place.close()

    async def _carry_out_orders(self) -> None:
        while True:
            order, stops = await self._orders.get()
            try:
                await self._carry_out(order, stopped=stops != self._stops)
            except Exception as error:
                # Whatever is wrong with one text or command, the person is told and the conversation goes on.
                if not is_for_people(error):
                    logger.exception("%r failed.", type(order).__name__)
                if isinstance(order, protocol.Open):
                    code = choose_exit_code(error)
                    self._say(protocol.Failed(describe_error(error), code))
                    self._end(code)
                elif isinstance(order, protocol.Replay):
                    self._say(protocol.Result(order.id, error=explain_error(error)))
                else:
                    self._say(protocol.Notice(explain_error(error)))
            self._sent -= isinstance(order, protocol.Send)

    async def _carry_out(self, order: protocol.Order | protocol.Stop, *, stopped: bool) -> None:
        if isinstance(order, protocol.Open):
            await self._open(order)
        elif self._talk is None:
            raise CommandError("Nothing is open yet")
        elif isinstance(order, protocol.Send):
            await self._talk.send(order)
        elif isinstance(order, protocol.Stop):
            self._talk.take(order)
        elif isinstance(order, protocol.Replay):
            await self._talk.replay()
            self._say(protocol.Result(order.id))
        elif stopped and isinstance(order, protocol.Invoke) and order.name not in _CHOICES:
            self._say(protocol.Result(order.id, error=protocol.STOPPED))
        else:
            await carry_out(self._talk, order)

    async def _open(self, order: protocol.Open) -> None:
        is_resumed = bool(order.thread) or order.resume
        order, notice = await to_thread(settle_place, order)
        self._opening = order
        self._place = place = await self._open_place(order)
        if notice:
            self._say(protocol.Notice(notice))
        thread = place.sessions.choose(place.directory, order.thread, latest=order.resume)
        await self._enter_once_free(place, thread, resumed=is_resumed)
        place.repository.look(place.project)

    async def _open_place(self, order: protocol.Open) -> Workplace:
        place = Workplace(
            order, lambda text: self._say(protocol.Notice(text)), self._say_status, self._editor
        )
        try:
            trust = False
            if place.setup.items and not place.setup.trusted:
                items = [each.show() for each in place.setup.items]
                self._trust = get_running_loop().create_future()
                self._say(protocol.Trust(str(place.directory), items))
                trust = await self._trust
            await place.open(trust=trust)
        except BaseException:
            await place.close()
            raise
        return place

    async def _enter_once_free(self, place: Workplace, thread: str, *, resumed: bool) -> None:
        """Open a thread; the worker of a screen that was killed may hold it until all is saved."""
        end: float | None = None
        while True:
            try:
                await self._enter(place, thread, resumed=resumed)
                return
            except InUse:
                if end is not None and monotonic() > end:
                    raise
                # An editor hears nothing of a session before it is open.
                if end is None and self._editor is None:
                    self._say(protocol.Notice(_WAITS.format(seconds=_MOST_SECONDS, thread=thread)))
                end = end or monotonic() + _MOST_SECONDS
            await sleep(_BETWEEN)

    async def _enter(
        self, place: Workplace, thread: str, *, resumed: bool, directory: Path | None = None
    ) -> None:
        """Open a thread, of another directory where one is named, and tell the screen.

        Raises:
            CommandError: when another process works in it; the present one stays open then.
        """
        if directory not in (None, place.directory):
            await self._move(place, directory, thread, resumed=resumed)
            return
        with ExitStack() as held:
            held.enter_context(place.sessions.hold(thread))
            texts = await place.record.texts(thread)
            await place.recall_effort(thread)
            if self._talk is not None:
                await self._talk.end()
            self._held.close()
            self._held = held.pop_all()
        self._talk = Conversation(place, thread, texts, self._say, partial(self._enter, place))
        await self._talk.begin(list_commands(place.setup.commands), resumed=resumed)
        place.begin_looking(self._talk.driver.agent)

    async def _move(self, place: Workplace, directory: Path, thread: str, *, resumed: bool) -> None:
        """Open a thread of another directory, with the model and the mode of the present one."""
        assert self._opening is not None, "a place is open"
        order = replace(
            self._opening, directory=str(directory), model=place.named, mode=place.policy.mode, thread=thread
        )
        there = await self._open_place(order)
        try:
            await self._enter(there, thread, resumed=resumed)
        except BaseException:
            await there.close()
            raise
        self._place = there
        there.repository.look(there.project)
        await place.close()

    def _say_status(self) -> None:
        if self._talk is not None:
            self._talk.say_status()

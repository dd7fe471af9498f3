"""Hold a thread for one task: nobody types more, and the answer, which may be a plan, ends it."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepagents.events import RunFailed, RunStarted, RunStopped
from deepagents_cli.errors import CommandError
from deepagents_cli.protocol import End, Ready
from deepagents_cli.session.agent.agents import expand_command, find_command
from deepagents_cli.session.conversation.conversation import Conversation
from deepagents_cli.session.threads.driver import messages_in
from deepagents_cli.session.threads.record import Text
from deepagents_cli.session.turns.asking import Say
from deepagents_cli.session.workplace.workplace import Workplace


class Task(Conversation):
    """A thread that is open for one task; its events say too how the run begins and ends."""

    presents = False

    def __init__(
        self, place: Workplace, thread: str, texts: Sequence[Text], say: Say, schema: dict[str, Any] | None
    ) -> None:
        self._schema = schema
        self.failure: Exception | None = None
        super().__init__(place, thread, texts, say, self._stay)

    async def carry_out(self, text: str | None, *, resumed: bool, with_model: bool) -> None:
        """Begin with a text, or go on with what a stop or a crash left undone.

        Args:
            text: what was typed; a command from a file may begin it.
            resumed: whether the thread is taken up again.
            with_model: whether the model that such a command names answers.

        Raises:
            CommandError: when there is nothing to do.
        """
        place = self.workplace
        self.say(Ready(self.thread, self.name, place.label, str(place.directory), notices=place.notices))
        await self.undo.settle()
        state = await self.driver.read()
        self.inbox.settle({each.id for each in messages_in(state)})
        await to_thread(place.sessions.note, self.thread, place.directory, text or "")
        if text is not None:
            command, _ = find_command(text, place.setup)
            text = await expand_command(text, place.setup, place.policy)
            if command and not with_model:
                command = replace(command, model=None)
            await self.inbox.put(text, text, command)
        elif not (state.tasks or self.inbox.texts):
            raise CommandError(
                'Nothing is left to do in this session; give it a task: deepagents --continue "TASK"'
            )
        self.show(RunStarted(self.thread, text, place.label, str(place.directory), resumed=resumed))
        self.turns.begin()
        place.begin_looking(self.driver.agent)

    def make_agent(self) -> Any:
        """Make the agent of the thread."""
        return self.workplace.make_agent(self.steering, self.calls, self.call_diffs, schema=self._schema)

    def say_status(self) -> None:
        """Tell nothing: there is no status line."""

    def end_turn(self, end: End, failure: Exception | None) -> None:
        """Note how the run has ended."""
        self.failure = failure
        if end == "stopped":
            self.show(RunStopped(self.thread))
        if failure:
            self.show(RunFailed(type(failure).__name__, str(failure)))

    async def _stay(self, thread: str, /, *, resumed: bool, directory: Path | None = None) -> None:
        raise CommandError("A task stays in its session")

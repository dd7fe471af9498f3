"""Hold what the person sent until the agent reads it: once each, whatever is killed in between."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage

from deepagents_cli.project.commands import FileCommand
from deepagents_cli.session.threads.record import Record, Text
from deepagents_cli.text import clean

MODEL: Final = "deepagents_model"
"""Where a message names the model that is to answer it."""


class Inbox:
    """The texts of one thread that wait: what was typed, and what commands of the person have printed.

    A text is kept in the record until its message is known to be in a checkpoint: what was given over, and
    not saved, waits again. What a command approves is not kept: after a crash, its calls ask.
    """

    def __init__(
        self,
        record: Record,
        thread: str,
        texts: Sequence[Text],
        changed: Callable[[Sequence[str]], None],
        on_given: Callable[[FileCommand | None], None],
    ) -> None:
        self._record = record
        self._thread = thread
        self._changed = changed
        self._on_given = on_given
        self._commands: dict[str, FileCommand] = {}
        self._texts = [*texts]
        self._unsaved: list[Text] = []

    @property
    def texts(self) -> list[str]:
        """What was typed and waits, for a terminal: a command from a file may have made a text."""
        return [clean(each.shown) for each in self._texts if not each.source]

    @property
    def outputs(self) -> list[str | list[Any]]:
        """What commands of the person have printed, and waits."""
        return [each.content for each in self._texts if each.source]

    async def put(self, shown: str, content: str | list[Any], command: FileCommand | None = None) -> None:
        """Add a text, which a command from a file may have made; it is saved when this returns."""
        text = self._record.add_text(self._thread, shown, content, command.model if command else None)
        # Read while it is saved, it would first be told as read and then as waiting.
        await self._record.flush()
        if command:
            self._commands[text.id] = command
        self._texts.append(text)
        self._changed(self.texts)

    async def put_output(self, shown: str, content: str, source: str) -> None:
        """Add what a command has printed: the agent reads it at its next step, and does not begin by it."""
        text = self._record.add_text(self._thread, shown, content, source=source)
        await self._record.flush()
        self._texts.append(text)

    async def put_again(self, outputs: Sequence[BaseMessage], source: str) -> None:
        """Add what commands have printed, and the thread does not know any more."""
        for each in outputs:
            self._texts.append(
                self._record.add_text(self._thread, "", each.content, source=source, id=each.id)
            )
        await self._record.flush()

    def take_back(self) -> list[str]:
        """Remove what waits, and return it as it was typed."""
        taken = [each for each in self._texts if not each.source]
        self._texts = [each for each in self._texts if each.source]
        for each in taken:
            self._record.remove_text(each)
        return [each.shown for each in taken]

    def hand_over(self) -> list[HumanMessage]:
        """Return what waits as messages, to be saved with the next step.

        What commands have printed comes first: a text that was typed while one ran may be about it.
        """
        given, self._texts = sorted(self._texts, key=lambda each: not each.source), []
        self._unsaved += given
        if typed := [each for each in given if not each.source]:
            self._changed([])
            self._on_given(self._commands.get(typed[-1].id))
        return [HumanMessage(each.content, id=each.id, additional_kwargs=_marks_of(each)) for each in given]

    def settle(self, saved: Collection[str | None]) -> None:
        """Forget what is in the thread; `saved` are the ids of its messages."""
        kept = [*self._unsaved, *self._texts]
        self._unsaved = []
        self._texts = [each for each in kept if each.id not in saved]
        for each in kept:
            if each.id in saved:
                self._record.remove_text(each)
        if self.texts:
            self._changed(self.texts)


def _marks_of(text: Text) -> dict[str, str]:
    marks = {MODEL: text.model, "lc_source": text.source}
    return {name: value for name, value in marks.items() if value}

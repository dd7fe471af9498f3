"""A person who answers questions line by line, without a terminal."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deepagents.events import ApprovalNeeded, ApprovalRequest
from deepagents_cli.approval.policy import Policy
from deepagents_cli.protocol import Answer, Decide, Preview, ToScreen, ToWorker
from deepagents_cli.session.threads.driver import Driver
from deepagents_cli.session.turns.asking import Asking
from deepagents_cli.views.conversation.chat import Chat
from deepagents_cli.views.lines import Lines
from deepagents_cli.views.rendering.render import Renderer
from deepagents_cli.views.terminal.theme import find_look


class _Person(Lines):
    def __init__(self, policy: Policy) -> None:
        self.out = io.StringIO()
        self.asking = Asking(self._hear, policy, lambda mode: None)
        talk = Chat(self._say, set_theme=lambda theme: None, leave=lambda code: None)
        look = replace(find_look(), colours=False, styled=False)
        super().__init__(talk, lambda: Renderer(look, 400), self.out, editor=None, changeable=())

    def take_line(self, line: str) -> None:
        self.print("That is not an answer.")

    def _hear(self, message: ToScreen) -> None:
        self.talk.take(message)
        self.show()

    def _say(self, message: ToWorker) -> None:
        match message:
            case Preview() | Answer() | Decide():
                self.asking.take(message)
            case _:
                raise AssertionError(message)


async def answer(
    request: ApprovalRequest, policy: Policy, lines: Sequence[str], agent: str | None = None
) -> tuple[str, Any]:
    """Return what a person sees of a call until these lines are typed, and what is decided by them."""
    person = _Person(policy)
    waiting = [ApprovalNeeded((request,), agent=agent)]
    deciding = asyncio.create_task(person.asking.resume(Driver(None, "t", lambda event: None), waiting))
    for line in lines:
        while not (person.answerable or deciding.done()):
            await asyncio.sleep(0.01)
        person.take_typed(line)
        person.show()
    answers: Any = (await deciding).resume
    return person.out.getvalue(), next(iter(answers.values()))["decisions"][0]

"""Carry out what the screen sends: the thread that is open, its agent, and the turns of it."""

from __future__ import annotations

import logging
from asyncio import Future, Queue, Task, create_task, get_running_loop, sleep, to_thread
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from deepagents.events import Event, ToolCalled, ToolFinished, Usage
from deepagents.models.traits import input_window
from deepagents_cli.diffs import name_in
from deepagents_cli.errors import CommandError, choose_exit_code, describe_error, explain_error, is_for_people
from deepagents_cli.project.commands import FileCommand
from deepagents_cli.protocol import Message, Mode, PastMessage
from deepagents_cli.session.asking import Asking, Say
from deepagents_cli.session.attachments import find_attachments, looks_like_secret, read_attachments
from deepagents_cli.session.changes import Changes
from deepagents_cli.session.hosts import Hosts
from deepagents_cli.session.inbox import Inbox
from deepagents_cli.session.lines import call_line, result_line
from deepagents_cli.session.notices import notice_line
from deepagents_cli.session.proposal import Proposal
from deepagents_cli.session.repository import Repository
from deepagents_cli.session.session import Session, messages_in
from deepagents_cli.session.slash import carry_out, find_skills, list_commands
from deepagents_cli.session.steering import Steering, present_plan
from deepagents_cli.session.threads import InUse
from deepagents_cli.session.turns import Turns
from deepagents_cli.session.usage import UsageCounter, last_context, sum_used
from deepagents_cli.session.workplace import Workplace
from deepagents_cli.text import clean, one_line

logger = logging.getLogger(__name__)
_IN_ORDER: Final = frozenset({"open", "send", "command", "save"})
"""What is carried out one after the other; the rest at once, also while such a thing is under way."""
_MOST_SECONDS: Final = 15.0
"""For a thread that another process is about to leave."""
_BETWEEN: Final = 0.2
_MOST_SHOWN: Final = 40
"""Messages of a thread that is opened again."""
_LONGEST_SHOWN: Final = 20_000
"""Characters of one of them."""


class Conversation:
    """A conversation: one thread of an agent at a time."""

    def __init__(self, say: Say, end: Callable[[int], None]) -> None:
        self.say = say
        self._end = end
        self._orders: Queue[Message] = Queue()
        self._task: Task[None] = create_task(self._carry_out_orders())
        self._held = ExitStack()
        self._workplace: Workplace | None = None
        self.proposed: dict[int, Proposal] = {}
        self._trust: Future[str] | None = None
        self.thread = self.name = ""
        self.made: dict[str, FileCommand] = {}
        """The commands from files that made texts, by these."""

    def take(self, message: Message) -> None:
        """Take a message of the screen."""
        kind = message.get("do")
        if kind in _IN_ORDER:
            self._orders.put_nowait(message)
        elif kind == "trust" and self._trust is not None and not self._trust.done():
            self._trust.set_result(message["answer"])
        elif self._workplace is not None and self.thread:
            self._take_at_once(str(kind), message)

    async def close(self) -> None:
        """Stop the turn, and finish writing."""
        self._task.cancel()
        if self.thread:
            await self.turns.end()
            await self.usage.finish()
            await self.repository.close()
        self._held.close()
        if self._workplace is not None:
            await self._workplace.close()

    @property
    def workplace(self) -> Workplace:
        """What the agent is made of."""
        if self._workplace is None:
            raise CommandError("Nothing is open yet")
        return self._workplace

    @property
    def mode(self) -> Mode:
        """What is asked about."""
        return self.workplace.policy.mode

    def set_mode(self, mode: Mode) -> None:
        """Change the mode, for the calls from now on."""
        self.workplace.policy.mode = mode
        self.say_status()

    def require_idle(self, what: str) -> None:
        """Refuse what cannot be done while the agent works.

        Raises:
            CommandError: when it does.
        """
        if self.turns.is_working:
            raise CommandError(f"The agent is working; stop it with Esc to {what}")

    async def enter(self, thread: str, *, resumed: bool) -> None:
        """Open a thread, and tell the screen.

        Raises:
            CommandError: when another process works in it; the present one stays open then.
        """
        place = self.workplace
        with ExitStack() as held:
            held.enter_context(place.threads.hold(thread))
            self._held.close()
            self._held = held.pop_all()
        self.thread = thread
        texts = await place.record.texts(thread)
        self.inbox = Inbox(
            place.record, thread, texts, lambda texts: self.say("queued", {"texts": texts}), self._approve
        )
        self.asking = Asking(self.say, place.policy, self.set_mode)
        self.session = Session(self.make_agent(), thread, self._show)
        self.turns = Turns(self.session, self.inbox, self.asking, self.say, self._end_turn)
        state = await self.session.read()
        messages = messages_in(state)
        self.inbox.settle({each.id for each in messages})
        await self.usage.open(thread, last_context(messages))
        self.name = next((each.name for each in place.threads.find_all() if each.id == thread), "")
        # What only waits for the person does nothing but ask again.
        asks = all(each.interrupts for each in state.tasks) and not self.inbox.texts
        self._say_ready(messages, resumed=resumed, waiting=bool(state.tasks) and not asks)
        if self.inbox.texts:
            self.say("queued", {"texts": self.inbox.texts})
        self.say_status()
        if state.tasks and asks:
            self.turns.begin()

    def make_agent(self) -> Any:
        """Make the agent of the open thread."""
        self.steering = Steering(self)
        self.changes = Changes(self.workplace.policy, self.workplace.record, self.thread)
        hosts = Hosts(self.workplace.policy, self.asking.ask_about_host)
        return self.workplace.make_agent(self.steering, self.changes, hosts)

    def hand_over(self) -> list[HumanMessage]:
        """Return what was typed since the agent's last step."""
        return self.inbox.hand_over()

    def model_for(self, name: str) -> BaseChatModel | None:
        """Return the model that a message asks for, if it can be had."""
        return self.workplace.model_for(name)

    async def facts(self) -> str:
        """Return what the model is to know of the repository."""
        state = await self.repository.at_first()
        return f"Git state when this conversation began: {state}" if state else ""

    def say_status(self) -> None:
        """Tell what the status line shows."""
        place, (tokens, cost) = self.workplace, sum_used(self.usage.used)
        window = input_window(place.model)
        in_context = self.usage.in_context
        self.say(
            "status",
            {
                "model": place.label,
                "mode": self.mode,
                "branch": place.project.branch(),
                "state": self.repository.state,
                "context": min(in_context / window, 1.0) if window and in_context else None,
                "in_context": in_context,
                "window": window,
                "input_tokens": tokens.input,
                "output_tokens": tokens.output,
                "cost": cost,
                "name": self.name,
            },
        )

    async def _carry_out_orders(self) -> None:
        while True:
            message = await self._orders.get()
            try:
                await self._carry_out(message)
            except Exception as error:
                # Whatever is wrong with one text or command, the person is told and the conversation goes on.
                if not is_for_people(error):
                    logger.exception("%s failed.", message["do"])
                if message["do"] == "open":
                    self._fail(error)
                else:
                    self.say("notice", {"text": explain_error(error)})

    def _fail(self, error: Exception) -> None:
        code = choose_exit_code(error)
        self.say("failed", {"text": describe_error(error), "code": code})
        self._end(code)

    async def _carry_out(self, message: Message) -> None:
        match message["do"]:
            case "open":
                await self._open(message)
            case "send":
                await self._send_or_return(message)
            case _:
                await carry_out(self, message)

    async def _open(self, message: Message) -> None:
        place = Workplace(message, lambda text: self.say("notice", {"text": text}))
        trust = False
        if place.setup.items and not place.setup.trusted:
            items = [each.show() for each in place.setup.items]
            self._trust = get_running_loop().create_future()
            self.say("trust", {"directory": str(place.directory), "items": items})
            trust = await self._trust == "yes"
        await place.open(trust=trust)
        self._workplace = place
        self.usage = UsageCounter(place.record, self.say_status)
        self.repository = Repository(place.project, self.usage.note_change)
        wanted, latest = message.get("thread"), bool(message.get("resume"))
        thread = place.threads.choose(place.directory, wanted, latest=latest)
        await self._enter_once_free(thread, resumed=bool(wanted) or latest)
        self.repository.look()

    async def _enter_once_free(self, thread: str, *, resumed: bool) -> None:
        """Open a thread; the worker of a screen that was killed may hold it until all is saved."""
        end: float | None = None
        while True:
            try:
                await self.enter(thread, resumed=resumed)
                return
            except InUse:
                if end is None:
                    end = monotonic() + _MOST_SECONDS
                    text = (
                        "Another process works in this session. It is opened once that has ended, within "
                        f"{_MOST_SECONDS:.0f} seconds. Ctrl-C twice leaves; for a copy to work in: "
                        f"deepagents sessions fork {thread}"
                    )
                    self.say("notice", {"text": text})
                elif monotonic() > end:
                    raise
            await sleep(_BETWEEN)

    async def _send_or_return(self, message: Message) -> None:
        try:
            await self._send(message)
        except Exception:
            self.say("refused", {"texts": [message.get("text") or ""]})
            self.say("queued", {"texts": self.inbox.texts})
            raise

    async def _send(self, message: Message) -> None:
        text: str = message.get("text") or ""
        attached: list[str] = message.get("attachments") or []
        if text.strip() or attached:
            found = find_attachments(attached, self.workplace)
            agreed = {name: path for name, path in found.items() if await self._may_attach(name, path)}
            content, left_out = await to_thread(read_attachments, text, agreed, self.workplace)
            for each in left_out:
                self.say("notice", {"text": f"Sent without a file: {each}."})
            # Not in the event loop: the saver may be in the middle of a change, which needs the loop.
            await to_thread(self.workplace.threads.note, self.thread, self.workplace.directory, text)
            self.name = self.name or one_line(text)[:80]
            await self.inbox.put(text, content, self.made.pop(text, None))
        self.turns.begin()

    async def _may_attach(self, name: str, path: Path) -> bool:
        if self.mode == "full" or not looks_like_secret(name, path):
            return True
        return await self.asking.ask_about_file(name)

    def _approve(self, command: FileCommand | None) -> None:
        """Let through what the command approves whose text the agent reads."""
        self.workplace.policy.grant(command.rules(self.workplace.directory) if command else ())

    def _end_turn(self) -> None:
        self._approve(None)
        self.usage.flush()
        self.repository.look()

    def _take_at_once(self, kind: str, message: Message) -> None:
        match kind:
            case "stop":
                self.turns.stop()
            case "take_back":
                # In this order: a text that leaves the queue before it is taken back has been read.
                self.say("taken_back", {"texts": self.inbox.take_back()})
                self.say("queued", {"texts": []})
            case "decide":
                self.asking.take(message["ask"], message)
            case "preview":
                self.asking.preview(message["ask"], message["text"])
            case "answer":
                self.asking.take(message["ask"], message["text"])
            case _:
                pass

    def _show(self, event: Event) -> None:
        self.turns.see(event)
        line, details = None, []
        match event:
            case Usage():
                self.usage.count(self.workplace.model, event)
            case ToolCalled(name=name, args=args):
                line = call_line(name, args, directory=str(self.workplace.directory))
            case ToolFinished(name=name, status=status, text=text):
                line = result_line(name, status, text, exit_code=event.exit_code)
                details = self.changes.take_diff(event.call_id)
                # What a person has seen or said is not shown to them again.
                if event.call_id in self.asking.approved:
                    details = []
                if event.call_id in self.asking.answered:
                    line = None
            case _:
                line = notice_line(event)
        self.say("event", {"event": event.as_dict(), "line": line, "details": details})

    def _say_ready(self, messages: Sequence[BaseMessage], *, resumed: bool, waiting: bool) -> None:
        place = self.workplace
        self.say(
            "ready",
            {
                "thread": self.thread,
                "name": self.name,
                "model": place.label,
                "mode": self.mode,
                "directory": str(place.directory),
                "branch": place.project.branch(),
                "resumed": resumed,
                "memory": [name_in(str(each), str(place.directory)) for each in place.project.memory()],
                "skills": [*find_skills(place.project)],
                "agents": list(place.setup.agents),
                "notices": place.notices,
                "commands": list_commands(place.setup.commands),
                "history": [each for message in messages[-_MOST_SHOWN:] for each in _show_past(message)],
                "waiting": waiting,
            },
        )


def _show_past(message: BaseMessage) -> Iterator[PastMessage]:
    text = clean(message.text[:_LONGEST_SHOWN]).strip()
    if isinstance(message, HumanMessage):
        # What the library adds for the model is marked with where it came from.
        if "lc_source" not in message.additional_kwargs:
            yield {"who": "person", "text": text}
    elif isinstance(message, AIMessage):
        if text:
            yield {"who": "agent", "text": text}
        for call in message.tool_calls:
            if call["name"] == present_plan.name:
                yield {"who": "agent", "text": clean(str(call["args"].get("plan", "")))}
            else:
                yield {"who": "tool", "text": call_line(call["name"], call["args"])}

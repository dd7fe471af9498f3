"""Keep one thread open: its agent, its turns, and what the person types for it."""

from __future__ import annotations

from asyncio import Task, create_task, to_thread
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from langchain_core.messages import AIMessage, BaseMessage

from deepagents import __version__
from deepagents.events import (
    ApprovalRequest,
    CacheBroken,
    CommandEnded,
    Event,
    ToolCalled,
    ToolFinished,
    Usage,
)
from deepagents.middleware import is_from_person
from deepagents.models.traits import input_window, model_identifier
from deepagents.tools.background import COMMANDS_CHANNEL
from deepagents_cli import protocol
from deepagents_cli.diffs import name_in
from deepagents_cli.errors import CommandError
from deepagents_cli.project.commands import FileCommand
from deepagents_cli.session.conversation.attachments import (
    find_attachments,
    looks_like_secret,
    read_attachments,
)
from deepagents_cli.session.conversation.background import Background, Wakes
from deepagents_cli.session.conversation.own_commands import OwnCommands, read_past, shown_of
from deepagents_cli.session.conversation.replay import replay
from deepagents_cli.session.conversation.undo import Undo
from deepagents_cli.session.display.call_diffs import CallDiffs
from deepagents_cli.session.display.lines import call_line, line_of
from deepagents_cli.session.display.results import Results
from deepagents_cli.session.threads.driver import OWN_COMMAND, Driver, messages_in
from deepagents_cli.session.threads.record import Text
from deepagents_cli.session.threads.usage import last_context, sum_used
from deepagents_cli.session.turns.asking import Asking, Say
from deepagents_cli.session.turns.hosts import Hosts
from deepagents_cli.session.turns.inbox import Inbox
from deepagents_cli.session.turns.steering import Steering, present_plan
from deepagents_cli.session.turns.turns import RunningCalls, Turns
from deepagents_cli.session.workplace.workplace import Workplace
from deepagents_cli.text import clean, one_line
from deepagents_cli.values import Mode, next_mode

_MOST_SHOWN: Final = 40
"""Messages of a thread that is opened again."""
_LONGEST_SHOWN: Final = 20_000
"""Characters of one of them."""


class Enter(Protocol):
    """Opens another thread, which may be of another directory, in the place of this one.

    This one stays open where another process works in that.
    """

    def __call__(
        self, thread: str, /, *, resumed: bool, directory: Path | None = None
    ) -> Awaitable[None]: ...


class Conversation:
    """A thread that is open; `texts` were typed for it and not read."""

    presents = True
    """Whether a person decides about plans."""

    def __init__(self, place: Workplace, thread: str, texts: Sequence[Text], say: Say, enter: Enter) -> None:
        self.workplace = place
        self.thread = thread
        self.name = place.sessions.name_of(thread)
        self.say = say
        self.enter = enter
        self.made: dict[str, FileCommand] = {}
        """The commands from files that made texts, by these."""
        self.inbox = Inbox(
            place.record, thread, texts, lambda texts: say(protocol.Queued(texts)), self._approve
        )
        self.asking = Asking(say, place.policy, self.set_mode, place.editor)
        self.steering = Steering(self.inbox, place, presents=self.presents)
        self.call_diffs = CallDiffs(place.policy)
        self.calls = RunningCalls()
        self.results = Results(str(place.directory))
        self.is_commanded = False
        """Whether a slash command is carried out, which may go back or compact."""
        self.stop_command: Callable[[], object] = lambda: None
        """Stops what takes long of a slash command."""
        self._looking: Task[None] | None = None
        self.driver = Driver(self.make_agent(), thread, self.show)
        self._asking_hosts: Task[None] | None = None
        self.own = OwnCommands(place.policy, say, self._keep_output, self._own_ended)
        self.undo = Undo(place, self.driver, self.inbox)
        self.turns = Turns(self.driver, self.inbox, self.asking, self.calls, say, self.end_turn)
        self.background = Background(place.policy)
        self._wakes = Wakes(
            self.background,
            place.setup.settings.wakes,
            lambda: self.turns.is_working,
            lambda: self.asking.is_open or self.is_commanded,
            lambda: self.turns.begin(woken=True),
            self._show_end,
        )
        self._seeing: Task[None] | None = None

    async def begin(self, commands: Mapping[str, str], *, resumed: bool) -> None:
        """Tell the screen what is in the thread and which commands there are, and ask what it waits for."""
        await self.undo.settle()
        place, state = self.workplace, await self.driver.read()
        messages = messages_in(state)
        self.inbox.settle({each.id for each in messages})
        self.results.recall(messages)
        await place.usage.open(self.thread, last_context(messages))
        # What only waits for the person does nothing but ask again.
        asks = all(each.interrupts for each in state.tasks) and not self.inbox.texts
        self.say(
            protocol.Ready(
                self.thread,
                self.name,
                place.label,
                str(place.directory),
                resumed=resumed,
                memory=[name_in(str(each), str(place.directory)) for each in place.project.memory()],
                skills=[*place.project.find_skills()],
                agents=[*place.setup.agents],
                notices=place.notices,
                commands=commands,
                history=[
                    *(each for message in messages[-_MOST_SHOWN:] for each in _show_past(message)),
                    *(protocol.PastMessage("command", shown_of(each)) for each in self.inbox.outputs),
                ],
                waiting=bool(state.tasks) and not asks,
            )
        )
        if self.inbox.texts:
            self.say(protocol.Queued(self.inbox.texts))
        self.say_status()
        if state.tasks and asks:
            self.turns.begin()
        else:
            self._watch(state, "done")

    async def reread(self) -> None:
        """Take the thread as it is now: it has gone back or forth."""
        state = await self.driver.read()
        messages = messages_in(state)
        self.inbox.settle({each.id for each in messages})
        await self.workplace.usage.open(self.thread, last_context(messages))
        self.say_status()
        # What it now knows of no longer, is not to wake it.
        self._watch(state, "done")

    def take(self, message: protocol.AtOnce) -> None:
        """Take what is done at once, also while the agent works."""
        match message:
            case protocol.Stop():
                self.turns.stop()
                self.stop_command()
            case protocol.TakeBack():
                self.say(protocol.TakenBack(self.inbox.take_back()))
            case protocol.Run():
                self.own.begin(message.command)
            case protocol.StopRun():
                self.own.stop()
            case protocol.NextMode():
                self.set_mode(next_mode(self.mode))
            case protocol.Decide() | protocol.Answer() | protocol.Preview():
                self.asking.take(message)
            case protocol.ShowWhole():
                self._looking = create_task(self._look(message.back))

    async def end(self) -> None:
        """Stop what is under way, and wait until all is saved."""
        await self.own.end()
        await self.turns.end()
        self._wakes.rest()
        for task in (self._asking_hosts, self._seeing):
            if task is not None:
                task.cancel()

    async def send(self, message: protocol.Send) -> None:
        """Give the agent a text; one that cannot be taken comes back."""
        try:
            await self._send(message)
        except Exception:
            self.say(protocol.Refused([message.text]))
            self.say(protocol.Queued(self.inbox.texts))
            raise

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
        if self.own.is_running:
            raise CommandError(f"Your command runs; {self._stop_it} to {what}")
        if self.turns.is_working:
            raise CommandError(f"The agent is working; {self._stop_it} to {what}")

    @property
    def _stop_it(self) -> str:
        return "stop it with Esc" if self.workplace.editor is None else "stop it"

    def make_agent(self) -> Any:
        """Make the agent of the thread, with the model of this moment."""
        self.steering.request = None
        self.hosts = Hosts(self.workplace.policy, self.asking.ask_about_host)
        return self.workplace.make_agent(self.steering, self.calls, self.call_diffs, self.hosts)

    def say_status(self) -> None:
        """Tell what the status line shows."""
        place = self.workplace
        tokens, cost = sum_used(place.usage.used)
        window = input_window(place.model)
        in_context = place.usage.in_context
        status = protocol.Status(
            model=place.label,
            mode=self.mode,
            effort=place.effort,
            branch=place.project.branch(),
            context=min(in_context / window, 1.0) if window and in_context else None,
            in_context=in_context,
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            cost=cost,
            own=place.own_line.text if place.own_line else "",
        )
        self.say(status)
        if place.own_line is not None:
            place.own_line.see(self._facts(status, window))

    def _facts(self, status: protocol.Status, window: int | None) -> dict[str, Any]:
        """Return what the command of a status line gets, in the names of Claude Code where it has them."""
        place = self.workplace
        directory = str(place.directory)
        return {
            "session_id": self.thread,
            "session_name": self.name,
            "cwd": directory,
            "workspace": {"current_dir": directory, "project_dir": str(place.project.root)},
            "model": {"id": model_identifier(place.model) or place.label, "display_name": place.label},
            "effort": {"level": status.effort},
            "mode": status.mode,
            "branch": status.branch,
            "version": __version__,
            "cost": {"total_cost_usd": status.cost},
            "context_window": {
                "total_input_tokens": status.input_tokens,
                "total_output_tokens": status.output_tokens,
                "context_window_size": window,
                "used_percentage": None if status.context is None else round(100 * status.context),
            },
        }

    async def _send(self, message: protocol.Send) -> None:
        text = message.text
        self._wakes.hear()
        if text.strip() or message.attachments:
            found = find_attachments(message.attachments, self.workplace)
            agreed = {name: path for name, path in found.items() if await self._may_attach(name, path)}
            content, left_out = await to_thread(read_attachments, text, agreed, self.workplace)
            for each in left_out:
                self.say(protocol.Notice(f"Sent without a file: {each}."))
            # Not in the event loop: the saver may be in the middle of a change, which needs the loop.
            await to_thread(self.workplace.sessions.note, self.thread, self.workplace.directory, text)
            self.name = self.name or one_line(text)[:80]
            await self.inbox.put(text, content, self.made.pop(text, None))
            if self.own.is_running:
                # It may be about what the command prints; an empty text does not wait.
                return
        self.turns.begin()

    async def _look(self, back: int) -> None:
        self.say(await self.results.find(back, self.workplace.policy.backend))

    async def _keep_output(self, shown: str, content: str) -> None:
        self.results.add(shown, content)
        await to_thread(self.workplace.sessions.note, self.thread, self.workplace.directory)
        await self.inbox.put_output(shown, content, OWN_COMMAND)

    def _own_ended(self) -> None:
        if self.inbox.texts:
            self.turns.begin()
        self._asking_hosts = create_task(self._ask_about_hosts())

    async def _ask_about_hosts(self) -> None:
        if allowed := await self.hosts.ask_about_wanted():
            text = f"Commands reach {', '.join(allowed)} from now on; run yours again."
            self.say(protocol.Notice(text))

    async def _may_attach(self, name: str, path: Path) -> bool:
        if self.mode == "full" or not looks_like_secret(name, path):
            return True
        return await self.asking.ask_about_file(name)

    def _approve(self, command: FileCommand | None) -> None:
        """Let through what the command approves whose text the agent reads."""
        self.workplace.policy.grant(command.rules(self.workplace.directory) if command else ())

    def end_turn(self, end: protocol.End, failure: Exception | None) -> None:
        """Note how a turn has ended."""
        self._approve(None)
        self.workplace.usage.flush()
        # The tree may have grown beyond the bounds, or the disk be full.
        self.workplace.begin_looking(self.driver.agent)
        self._seeing = create_task(self._see_commands(end))

    async def _see_commands(self, end: protocol.End) -> None:
        self._watch(await self.driver.read(), end)

    def _watch(self, state: Any, end: protocol.End) -> None:
        """Watch the commands that the agent has left in the background; wake it when one ends."""
        known: Mapping[str, Any] = state.values.get(COMMANDS_CHANNEL) or {}
        running = {number: each for number, each in known.items() if not each.get("ended")}
        # An editor takes what an agent does as the answer to a prompt, and there is none.
        wakes = end == "done" and not state.tasks and self.workplace.editor is None
        self._wakes.watch(running, wakes=wakes)

    def _show_end(self, ended: CommandEnded, asleep: bool) -> None:
        self.say(protocol.Happened(ended))
        if asleep:
            self.say(protocol.Notice("The agent reads this with your next message."))

    def show(self, event: Event) -> None:
        """Tell the view what happened."""
        self.turns.see(event)
        line, details = line_of(event, str(self.workplace.directory)), []
        self.results.take(event, line)
        changes: Sequence[protocol.FileChange] = ()
        match event:
            case Usage():
                self.workplace.usage.count(self.workplace.model, event)
            case CacheBroken():
                self.workplace.usage.count_break(event)
            case ToolFinished():
                details, changes = self.call_diffs.take(event.call_id)
                # What a person has seen or said is not shown to them again.
                if event.call_id in self.asking.approved:
                    details = []
                if event.call_id in self.asking.answered:
                    line = None
            case _:
                pass
        self.say(self._for_editor(protocol.Happened(event, line, details, changes)))

    async def replay(self) -> None:
        """Tell again all that is in the thread."""
        state = await self.driver.read()
        directory = str(self.workplace.directory)
        for each in replay(messages_in(state), state.values.get("todos") or ()):
            if isinstance(each, protocol.PastMessage):
                self.say(each)
            else:
                self.say(self._for_editor(protocol.Happened(each, line_of(each, directory))))

    def _for_editor(self, message: protocol.Happened) -> protocol.Happened:
        """Add what an editor shows of a call; a screen would only carry it."""
        if self.workplace.editor is None:
            return replace(message, changes=())
        if not isinstance(message.event, ToolCalled):
            return message
        called = ApprovalRequest("", message.event.name, message.event.args)
        return replace(message, paths=self.workplace.policy.places_of(called))


def _show_past(message: BaseMessage) -> Iterator[protocol.PastMessage]:
    text = clean(message.text[:_LONGEST_SHOWN]).strip()
    if (command := read_past(message)) is not None:
        yield protocol.PastMessage("command", command)
    elif is_from_person(message):
        yield protocol.PastMessage("person", text)
    elif isinstance(message, AIMessage):
        if text:
            yield protocol.PastMessage("agent", text)
        for call in message.tool_calls:
            if call["name"] == present_plan.name:
                yield protocol.PastMessage("agent", clean(str(call["args"].get("plan", ""))))
            else:
                yield protocol.PastMessage("tool", call_line(call["name"], call["args"]))

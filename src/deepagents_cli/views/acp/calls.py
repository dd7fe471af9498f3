"""Show calls of tools while they are under way, and the commands of the person."""

from __future__ import annotations

from typing import Final

from acp import helpers, schema

from deepagents import events
from deepagents_cli import protocol
from deepagents_cli.session.turns.steering import present_plan
from deepagents_cli.views.acp import updates
from deepagents_cli.views.acp.outbox import Outbox

_LONGEST_OUTPUT: Final = 8_000
"""Characters at the end of what a command has printed so far."""


class Calls:
    """The calls of one session that are under way, with the commands that they run."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._commands: dict[str, str | None] = {}
        self._in_terminals: set[str] = set()
        self._printed: dict[str, str] = {}
        self._runs = 0
        self.is_running = False
        """Whether a command of the person runs."""
        self.plan: str | None = None
        """The call that has shown a plan last."""

    def take(self, message: protocol.Happened) -> None:
        """Show an event."""
        self._note(message.event)
        if update := updates.update_for(message):
            if isinstance(update, schema.ToolCallProgress) and update.tool_call_id in self._in_terminals:
                # The terminal shows all of it.
                update = update.model_copy(update={"content": None})
            self._outbox.put(update)

    def find(self, command: str) -> str | None:
        """Return a call whose command this is, and is in no terminal yet."""
        found = (call_id for call_id, known in self._commands.items() if known == command)
        return next((each for each in found if each not in self._in_terminals), None)

    def show_terminal(self, call_id: str, terminal: str) -> None:
        """Show the terminal of the client in which the command of a call runs."""
        self._in_terminals.add(call_id)
        self._outbox.put(updates.in_progress(call_id, helpers.tool_terminal_ref(terminal)))

    def end(self) -> None:
        """Show of calls that were cut off that nothing runs any more."""
        for call_id in self._commands:
            self._outbox.put(helpers.update_tool_call(call_id, status="failed"))
        self._commands.clear()
        self._printed.clear()

    def take_run(self, message: protocol.OfRun) -> None:
        """Show a command of the person, as a call."""
        match message:
            case protocol.Running(command=command):
                self._runs, self.is_running = self._runs + 1, True
                title = updates.sound(f"!{command}")
                begun = helpers.start_tool_call(self._run, title, kind="execute", status="in_progress")
                self._outbox.put(begun)
            case protocol.Printed(text=text):
                self._print(self._run, text)
            case protocol.Ran():
                self.is_running = False
                self._printed.pop(self._run, None)
                self._outbox.put(updates.run_ended(self._run, message))

    @property
    def _run(self) -> str:
        return f"run-{self._runs}"

    def _note(self, event: events.Event) -> None:
        match event:
            case events.ToolCalled(name=name, args=args, call_id=call_id) if updates.is_shown(name):
                self._commands[call_id] = args.get("command")
                self.plan = call_id if name == present_plan.name else self.plan
            case events.ToolFinished(call_id=call_id):
                self._commands.pop(call_id, None)
                self._printed.pop(call_id, None)
            case events.CommandOutput(command_id=None, call_id=call_id, text=text):
                self._print(call_id, text)
            case _:
                pass

    def _print(self, call_id: str, text: str) -> None:
        self._printed[call_id] = (self._printed.get(call_id, "") + text)[-_LONGEST_OUTPUT:]
        self._outbox.put(updates.in_progress(call_id, updates.fenced(self._printed[call_id])))

"""Show one session: its worker's messages become updates, and what the client sends goes to the worker."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future, Task
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, TypeAlias, TypeGuard

from acp import helpers, schema
from acp.exceptions import RequestError
from acp.interfaces import Client

from deepagents import events
from deepagents_cli import protocol
from deepagents_cli.approval.backends import Gate, GatedBuffers
from deepagents_cli.errors import CommandError, explain_error
from deepagents_cli.session.slash import COMMANDS
from deepagents_cli.session.worker import Worker
from deepagents_cli.session.workplace.editor import Editor
from deepagents_cli.views.acp import updates
from deepagents_cli.views.acp.calls import Calls
from deepagents_cli.views.acp.files import ClientFiles
from deepagents_cli.views.acp.options import Options
from deepagents_cli.views.acp.outbox import Outbox
from deepagents_cli.views.acp.prompts import Block, Prompt, PromptReader
from deepagents_cli.views.acp.questions import Pending, ask_client, ask_in_form
from deepagents_cli.views.acp.terminals import ClientTerminals

logger = logging.getLogger(__name__)
FAILED: Final = -32603
_HIDDEN: Final = frozenset({"new", "sessions", "resume", "fork", "clear", "theme", "worktree"})
"""Commands that open another session in the place of this one, which an editor does itself."""
_Text: TypeAlias = Literal["none", "sent", "waits", "read"]


class Talk:
    """A session that is open in an editor; at most one prompt is worked on at a time."""

    def __init__(
        self,
        client: Client,
        opening: protocol.Open,
        editor: Editor,
        offers: schema.ClientCapabilities,
        gate: Gate,
    ) -> None:
        self._client = client
        self._outbox = Outbox(client)
        self._calls = Calls(self._outbox)
        self._has_forms = bool(offers.elicitation and offers.elicitation.form)
        files = offers.fs or schema.FileSystemCapabilities()
        if files.read_text_file:
            # One that is only written could hold what was not saved, and would lose it.
            shown = ClientFiles(client, self._session, self._tell, writes=bool(files.write_text_file))
            editor = replace(editor, files=GatedBuffers(shown, gate))
        if offers.terminal:
            runs = ClientTerminals(
                client,
                self._session,
                opening.directory,
                self._calls.find,
                self._calls.show_terminal,
                self._tell,
            )
            editor = replace(editor, terminals=runs)
        self._worker = Worker(self._take, lambda code: None, replace(editor, has_forms=self._has_forms))
        self._ready: Future[protocol.Ready] = asyncio.get_running_loop().create_future()
        self._results: dict[int, Future[protocol.Result]] = {}
        self._ids = count(1)
        self._scratch = TemporaryDirectory(prefix="deepagents-")
        self._reader = PromptReader(Path(opening.directory), Path(self._scratch.name))
        self._one_by_one = asyncio.Lock()
        self._prompts: dict[Task[schema.StopReason], object] = {}
        """Those that are not answered, with the ids of their requests."""
        self._present: Task[schema.StopReason] | None = None
        self._turn: Future[schema.StopReason] | None = None
        self._text: _Text = "none"
        self._is_cancelled = False
        self._asked: protocol.Ask | protocol.Question | None = None
        self._asking: Task[None] | None = None
        self._question: protocol.Question | None = None
        """What was asked in words: the next prompt answers it."""
        self._is_named = False
        self._written = ""
        self._stop_reason: schema.StopReason = "end_turn"
        self.options = Options(self._invoke)
        self._worker.take(opening)

    async def open(self) -> protocol.Ready:
        """Return what is known of the session once it is open.

        Raises:
            CommandError: when it cannot be opened.
        """
        return await self._ready

    def start(self) -> None:
        """Tell the client what happens, from now on."""
        ready = self._ready.result()
        self._outbox.start(ready.thread)
        for text in ready.notices:
            self._tell(text)
        self._outbox.put(updates.commands(self._commands))
        if ready.waiting:
            self._tell("A run was cut off here. Your next prompt goes on with it.")

    async def replay(self) -> None:
        """Tell the client all that is in the session.

        Raises:
            RequestError: when something in it cannot be shown.
        """
        result = await self._carry_out(protocol.Replay(next(self._ids)))
        if result.error:
            raise RequestError(FAILED, f"The session is open, and cannot be shown: {result.error}")
        self._calls.end()
        await self._outbox.flush()

    async def prompt(self, blocks: Sequence[Block], request: object) -> schema.StopReason:
        """Let the agent work on a prompt, and return why it has stopped.

        Raises:
            RequestError: when the turn fails, with a sentence that says why.
        """
        work = asyncio.create_task(self._work_on(blocks))
        self._prompts[work] = request
        try:
            await asyncio.wait([work])
        finally:
            del self._prompts[work]
            work.cancel()
        return "cancelled" if work.cancelled() else work.result()

    async def _work_on(self, blocks: Sequence[Block]) -> schema.StopReason:
        async with self._one_by_one:
            self._present = asyncio.current_task()
            given = self._reader.read(blocks)
            self._is_cancelled, self._stop_reason = False, "end_turn"
            self._turn = turn = asyncio.get_running_loop().create_future()
            work = asyncio.create_task(self._begin(given))
            try:
                return await turn
            finally:
                self._turn, self._text = None, "none"
                work.cancel()
                await self._outbox.flush()
                self._present = None

    def cancel(self, request: object = None) -> None:
        """Stop what the present prompt does, and begin none of those that wait; or one request alone."""
        self._drop_waiting(request)
        if request is not None and (self._present is None or self._prompts.get(self._present) != request):
            return
        if self._turn is None:
            if self._question is not None:
                self._worker.take(protocol.Stop())
            return
        self._is_cancelled = True
        self._stop_asking()
        self._reject_apart(self._asked)
        self._worker.take(protocol.Stop())
        self._worker.take(protocol.StopRun())
        if self._text == "none" and not self._calls.is_running:
            self._end_prompt("cancelled")

    def _drop_waiting(self, request: object = None) -> None:
        for work, each in self._prompts.items():
            if work is not self._present and request in (None, each):
                work.cancel()

    async def close(self) -> None:
        """Stop the turn, end all that it has started, and finish writing."""
        self._drop_waiting()
        self._stop_asking()
        await self._worker.close()
        self._end_prompt("cancelled")
        for waiting in self._results.values():
            if not waiting.done():
                waiting.set_exception(RequestError(FAILED, "The session was closed."))
        await self._outbox.close()
        self._scratch.cleanup()

    def _tell(self, text: str) -> None:
        self._outbox.put(updates.notice(text))

    def _session(self) -> str:
        return self._ready.result().thread

    @property
    def _commands(self) -> dict[str, str]:
        known = self._ready.result().commands
        return {name: about for name, about in known.items() if name not in _HIDDEN}

    async def _begin(self, given: Prompt) -> None:
        try:
            typed = given.typed.strip()
            name = typed.partition(" ")[0].removeprefix("/") if typed.startswith("/") else ""
            if self._question is not None:
                self._answer(self._question, given)
            elif typed.startswith("!") and typed[1:].strip():
                self._leave_out("A command of yours", given)
                self._worker.take(protocol.Run(typed[1:].strip()))
            elif name in self._commands:
                await self._command(name, given)
            elif name in _HIDDEN:
                self._tell(f"/{name} is for the terminal; the editor does that.")
                self._end_prompt("end_turn")
            else:
                self._name_session(given.text)
                self._send(given.text, given.attached)
            self._ask_now()
        except Exception as error:
            # Whatever is wrong with one prompt, its request is answered and the session goes on.
            logger.exception("A prompt failed.")
            self._end_prompt(RequestError(FAILED, explain_error(error)))

    def _name_session(self, text: str) -> None:
        """Tell the name that the first prompt gives to a session."""
        if not self._is_named and text.strip():
            self._is_named = True
            self._outbox.put(updates.title(text))

    def _send(self, text: str, attached: Sequence[str] = ()) -> None:
        # An empty one, which goes on with what was cut off, does not wait to be read.
        self._text = "sent" if text.strip() or attached else "read"
        self._worker.take(protocol.Send(text, attached))

    def _answer(self, question: protocol.Question, given: Prompt) -> None:
        self._question, self._text = None, "read"
        self._worker.take(protocol.Answer(question.id, given.line))
        if given.behind or given.attached:
            # A server may have asked, and these are for the agent: it reads them at its next step.
            self._send(f"With my answer: {given.text}", given.attached)

    def _leave_out(self, what: str, given: Prompt) -> None:
        """Say that what came with a command, which an editor may add by itself, is not used."""
        if given.text != given.typed or given.attached:
            self._tell(f"{what} takes what is typed; the files with it are left out.")

    async def _command(self, name: str, given: Prompt) -> None:
        is_own = name in COMMANDS
        arguments = (given.typed if is_own else given.text).lstrip().partition(" ")[2]
        result = await self._invoke(name, arguments)
        if result.send:
            self._send(f"{result.send}{given.behind if is_own else ''}", given.attached)
            return
        self._leave_out(f"/{name}", given)
        if result.draft is not None:
            saved = await self._propose(result.draft)
            result = saved or protocol.Result(text="It was not written.")
        shown = updates.notice(result.error) if result.error else updates.result(name, result)
        self._outbox.put(shown)
        if name in ("model", "effort"):
            self._outbox.put(updates.offered(await self.options.read()))
        self._end_prompt("end_turn")

    async def _propose(self, draft: protocol.Draft) -> protocol.Result | None:
        """Show a file before it is written; return what became of it if it was."""
        change = protocol.FileChange(draft.path, None, draft.text)
        title = f"wants to write {draft.path}"
        asked = protocol.Ask(f"draft-{draft.id}", title, [], ["approve", "reject"], changes=[change])
        answer = await self._ask_client(asked)
        if not isinstance(answer, protocol.Decide) or answer.decision != "approve":
            return None
        return await self._carry_out(protocol.Save(draft.id, draft.text))

    async def _invoke(self, name: str, arguments: str) -> protocol.Result:
        return await self._carry_out(protocol.Invoke(next(self._ids), name, arguments))

    async def _carry_out(self, order: protocol.Invoke | protocol.Replay | protocol.Save) -> protocol.Result:
        # What `Save` gives has this id.
        number = 0 if isinstance(order, protocol.Save) else order.id
        self._results[number] = asyncio.get_running_loop().create_future()
        self._worker.take(order)
        return await self._results[number]

    def _take(self, message: protocol.ToScreen) -> None:
        match message:
            case protocol.Ready():
                self._opened(message)
            case protocol.Trust():
                # Nobody can be asked before the session is there; a notice says what is left out.
                self._worker.take(protocol.Trusted(agreed=False))
            case protocol.Failed():
                if not self._ready.done():
                    self._ready.set_exception(CommandError(message.text))
            case protocol.Result():
                if (waiting := self._results.pop(message.id, None)) and not waiting.done():
                    waiting.set_result(message)
            case protocol.Ask() | protocol.Question():
                self._asked = message
                self._ask_now()
            case _:
                self._show(message)

    def _show(self, message: protocol.ToScreen) -> None:
        match message:
            case protocol.PastMessage():
                for update in updates.past(message, Path(self._ready.result().directory)):
                    self._outbox.put(update)
            case protocol.Happened():
                self._happened(message)
            case protocol.Notice(text=text):
                self._tell(text)
            case protocol.Status():
                self._status(message)
            case protocol.Running() | protocol.Printed() | protocol.Ran():
                self._calls.take_run(message)
                if isinstance(message, protocol.Ran):
                    self._end_prompt("cancelled" if self._is_cancelled else "end_turn")
            case _:
                self._follow(message)

    def _follow(self, message: protocol.ToScreen) -> None:
        """Follow how far the turn is that the present prompt has begun."""
        match message:
            case protocol.Queued(texts=texts):
                if self._text in ("sent", "waits"):
                    self._text = "waits" if texts else "read" if self._text == "waits" else "sent"
            case protocol.Refused():
                # Why it was not taken is said right behind this.
                asyncio.get_running_loop().call_soon(self._end_prompt, "end_turn")
            case protocol.Idle():
                self._idle(message)
            case _:
                pass

    def _opened(self, message: protocol.Ready) -> None:
        if not self._ready.done():
            self._is_named = bool(message.name)
            self._ready.set_result(message)
        elif message.thread != self._ready.result().thread:
            self._tell(f"From now on this works in another session: {message.thread}")

    def _status(self, status: protocol.Status) -> None:
        before, self.options.status = self.options.status, status
        if status.mode != before.mode:
            self._outbox.put(helpers.update_current_mode(status.mode))
            if offered := self.options.offered:
                self._outbox.put(updates.offered(offered))
        if used := updates.usage(status):
            self._outbox.put(used)

    def _happened(self, message: protocol.Happened) -> None:
        self._note_answer(message.event)
        self._calls.take(message)

    def _note_answer(self, event: events.Event) -> None:
        match event:
            case events.Token(agent=None, text=text):
                self._written += text
            case events.ToolCalled(agent=None):
                self._written = ""
            case events.AnswerBroken(agent=None, kind=kind):
                self._stop_reason = _REASONS.get(kind, self._stop_reason)
            case events.LimitReached(agent=None, kind=kind):
                self._stop_reason = "max_tokens" if kind == "tokens" else "max_turn_requests"
            case events.FinalAnswer(text=text) if not self._written.endswith(text):
                self._outbox.put(updates.answer(text))
            case _:
                pass

    def _idle(self, message: protocol.Idle) -> None:
        self._written, self._question = "", None
        if not _is_apart(self._asked):
            self._asked = None
            self._stop_asking()
        self._calls.end()
        # Only a turn that has read the prompt answers it; the next one reads what waits.
        if self._text in ("none", "sent") or (self._text == "waits" and message.end == "done"):
            if message.error:
                self._tell(message.error)
            return
        if message.end == "stopped":
            self._worker.take(protocol.TakeBack())
        if message.end == "failed":
            self._end_prompt(RequestError(FAILED, message.error or "The turn failed."))
        else:
            self._end_prompt("cancelled" if message.end == "stopped" else self._stop_reason)

    def _end_prompt(self, end: schema.StopReason | RequestError) -> None:
        if self._turn is None or self._turn.done():
            return
        if isinstance(end, RequestError):
            self._turn.set_exception(end)
        else:
            self._turn.set_result(end)

    def _ask_now(self) -> None:
        """Ask what waits, while there is a prompt: an editor shows questions of a turn."""
        if self._asked is None or self._turn is None or self._asking is not None:
            return
        if _is_in_words(self._asked) and not (self._has_forms or self._asked.form):
            self._question, self._asked = self._asked, None
            self._tell(f"{self._question.agent or 'The agent'}: {self._question.text}")
            self._end_prompt("end_turn")
            return
        self._asking = asyncio.create_task(self._ask(self._asked))

    async def _ask(self, asked: protocol.Ask | protocol.Question) -> None:
        answer: Pending | None = protocol.Stop()
        try:
            answer = await self._ask_client(asked)
        except Exception:
            # Without an answer the turn would wait for ever.
            logger.exception("A question failed.")
        finally:
            self._asking = None
        if answer is None:
            self._has_forms = False
            self._ask_now()
            return
        if isinstance(answer, protocol.Stop):
            self._reject_apart(asked)
            self.cancel()
        else:
            self._worker.take(answer)
        if self._asked is asked:
            self._asked = None

    async def _ask_client(self, asked: protocol.Ask | protocol.Question) -> Pending | None:
        await self._outbox.flush()
        if _is_in_words(asked):
            return await ask_in_form(self._client, self._session(), asked)
        answer, further = await ask_client(self._client, self._session(), asked, self._calls.plan)
        for update in further:
            self._outbox.put(update)
        return answer

    def _reject_apart(self, asked: protocol.Ask | protocol.Question | None) -> None:
        """Reject what no step of the agent waits for: stopping the agent would not end the question."""
        if asked is not None and _is_apart(asked):
            self._asked = None
            self._worker.take(protocol.Decide(asked.id, "reject"))

    def _stop_asking(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None


_REASONS: Final[dict[str, schema.StopReason]] = {"length": "max_tokens", "filtered": "refusal"}
"""Why an answer broke off, in the words of the protocol."""


def _is_in_words(asked: protocol.Ask | protocol.Question) -> TypeGuard[protocol.Question]:
    """Return whether the answer to a question is any text."""
    return isinstance(asked, protocol.Question) and not asked.choices


def _is_apart(asked: protocol.Ask | protocol.Question | None) -> bool:
    """Return whether this is about no call, but a file to be sent or a host that a command wanted."""
    return isinstance(asked, protocol.Ask) and asked.call_id is None

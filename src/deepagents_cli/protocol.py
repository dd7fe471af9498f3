"""Define what the screen and the worker of a conversation say to each other: values, one a line.

The screen shows and asks; the worker holds the agent. Both have the same version, so a message that is not
known, or has other fields, is a fault: reading it raises an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Final, Literal, TypeAlias, dataclass_transform, get_args, get_origin, get_type_hints

from deepagents._values import valueclass
from deepagents.events import Event
from deepagents.limits import Price
from deepagents_cli.values import Mode, Scope

End: TypeAlias = Literal["done", "stopped", "failed", "limited"]
STOPPED: Final = "Stopped; nothing more comes of it"
"""What is said of a slash command that was stopped."""
_SHOWN: Final = 200
"""Characters of a line that is not a message."""


@dataclass_transform(frozen_default=True)
class Value:
    """A message, or a part of one."""

    def __init_subclass__(cls) -> None:
        valueclass(cls)


class Open(Value):
    """Begin: in this directory, a new thread, the one with this id, or the directory's last one.

    `options` are the others of the command line. `terminal` is a descriptor of a terminal that the screen has
    made raw: the worker puts it back where the screen was killed.
    """

    directory: str
    options: Mapping[str, Any]
    thread: str | None = None
    resume: bool = False
    model: str | None = None
    mode: Mode | None = None
    price: Price | None = None
    terminal: int | None = None


class Trusted(Value):
    """Answer `Trust`."""

    agreed: bool


class Send(Value):
    """Send a text to the agent; while it works, it reads the text before its next model call.

    An empty one goes on with what was stopped or interrupted.
    """

    text: str
    attachments: Sequence[str] = ()


class TakeBack(Value):
    """Take back what the agent has not read yet."""


class Stop(Value):
    """Stop the present step, and keep what is done."""


class Run(Value):
    """Run a command of the person at once, also while the agent works; its end is a `Ran`."""

    command: str


class StopRun(Value):
    """Stop the command of the person, and nothing else."""


class NextMode(Value):
    """Change to the next mode."""


class Decide(Value):
    """Decide about a call that waits: `message` is why not, or what the agent reads in its place.

    A `rule`, one of those that the question offered, is kept for this `scope`. `unasked` where no person
    could be asked.
    """

    ask: str
    decision: Literal["approve", "reject", "respond"]
    message: str | None = None
    rule: str | None = None
    scope: Scope = "session"
    unasked: bool = False


class Preview(Value):
    """Show what a call would do with a text that the person has edited."""

    ask: str
    text: str


class Answer(Value):
    """Answer a `Question`, a form by its `content`; `cancelled` where it is left, and the step goes on."""

    ask: str
    text: str
    cancelled: bool = False
    content: Mapping[str, Any] | None = None


class ShowWhole(Value):
    """Ask for all of what a call has returned or a model has thought: the last, or one so many before it."""

    back: int = 0


class Invoke(Value):
    """Carry out a slash command; the `Result` has the same id."""

    id: int
    name: str
    arguments: str = ""


class Replay(Value):
    """Tell again all that is in the thread, as messages of the person and events; gives a `Result`."""

    id: int


class Save(Value):
    """Write a `Draft` as the person has left it; gives a `Result`."""

    draft: str
    text: str


class Close(Value):
    """Finish writing, and end."""


class PastMessage(Value):
    """Show a message of a thread that is resumed; a `command` is one of the person, with its output.

    An editor gets the `files` that came with it apart from the text, by their names, and the `pictures`, as
    base64 and of which kind.
    """

    who: Literal["person", "agent", "tool", "command"]
    text: str
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    pictures: Sequence[tuple[str, str]] = ()


class Ready(Value):
    """Say that a thread is open, also when another one is; `waiting` where an interrupted run can go on.

    `commands` are the slash commands by name, with what each does and what may stand behind it.
    """

    thread: str
    name: str
    model: str
    directory: str
    resumed: bool = False
    memory: Sequence[str] = ()
    skills: Sequence[str] = ()
    agents: Sequence[str] = ()
    notices: Sequence[str] = ()
    commands: Mapping[str, str] = field(default_factory=dict[str, str])
    history: Sequence[PastMessage] = ()
    waiting: bool = False


class Trust(Value):
    """Ask whether to use what the directory brings and can run; once, before `Ready`."""

    directory: str
    items: Sequence[str]
    id: str = "trust"


class FileChange(Value):
    """Hold a file before and after a change; `None` where there is none, or none of text."""

    path: str
    before: str | None
    after: str | None


class Happened(Value):
    """Show an event of the run; `line` is a call, its result or a notice in one cleaned line.

    `details` is the diff of a call that has changed files, where the person was not asked and saw none. An
    editor gets the `changes` too, and with a call the `paths` of its files on this machine.
    """

    event: Event
    line: str | None = None
    details: Sequence[str] = ()
    changes: Sequence[FileChange] = ()
    paths: Sequence[str] = ()


class Editable(Value):
    """Give the part of a call that a person edits as text, and the suffix that tells an editor what it is."""

    text: str
    suffix: str


class Ask(Value):
    """Ask about a call, in one `line`, that waits for the person; again after a `Preview`.

    `rules` is what "always" can mean for it: a label for each rule. An editor gets the `changes` too.
    """

    id: str
    title: str
    details: Sequence[str]
    choices: Sequence[str]
    agent: str | None = None
    call_id: str | None = None
    line: str | None = None
    language: Literal["diff", "sh", "json", "text"] = "text"
    edit: Editable | None = None
    rules: Mapping[str, str] = field(default_factory=dict[str, str])
    changes: Sequence[FileChange] = ()


class Choice(Value):
    """Offer a row of a picker; `value` is given to the same command as its arguments."""

    value: str
    label: str
    detail: str = ""
    usable: bool = True


class Question(Value):
    """Ask what a tool or a server asks; the answer is the `value` of a choice, or without choices any text.

    About a plan, a text may be the answer too: it says what is to be different. One that `can_cancel` may
    be left unanswered: a server that asks waits for its answer, whatever becomes of the step. An editor with
    forms gets all that a server asks at once as a `form`; where it cannot show that, each part is asked for.
    """

    id: str
    agent: str | None
    text: str
    choices: Sequence[Choice] = ()
    is_plan: bool = False
    can_cancel: bool = False
    form: Mapping[str, Any] | None = None


class Queued(Value):
    """List what waits for the agent to read it."""

    texts: Sequence[str]


class TakenBack(Value):
    """Return all that was queued: the agent reads it no more."""

    texts: Sequence[str]


class Refused(Value):
    """Return what was sent and could not be taken."""

    texts: Sequence[str]


class Whole(Value):
    """Show all of what a call has returned or a model has thought; `back` of `count` came after it.

    Without a `title` there is no such one.
    """

    title: str
    text: str
    back: int = 0
    count: int = 0


class Status(Value):
    """Tell what the status line shows; `context` is the share of the window that `in_context` tokens fill.

    `own` is a line of the person's own, which may hold colours.
    """

    model: str
    mode: Mode
    effort: str | None = None
    branch: str | None = None
    context: float | None = None
    in_context: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    own: str = ""


class Notice(Value):
    """Tell what the person must know, in a sentence."""

    text: str


class Working(Value):
    """Say that a turn begins: the agent reads what was queued."""


class Idle(Value):
    """Say that the turn is over."""

    end: End
    error: str | None = None


class Running(Value):
    """Say that a command of the person runs, and where, in one word."""

    command: str
    where: str


class Printed(Value):
    """Show what the command of the person has printed."""

    text: str
    stream: str = "stdout"


class Ran(Value):
    """Say that the command of the person has ended, and how; `output` is all of it, within bounds."""

    output: str
    how: str
    failed: bool = False


class Draft(Value):
    """Show a whole file before it is written by `Save`; it `replaces` so many other bytes."""

    id: str
    text: str
    path: str
    replaces: int = 0


class Result(Value):
    """Return what a slash command gave: a text, a picker, formatted text, a file to agree to, a text to send.

    `typed` is a text that the person may change and send again.
    `error` is a sentence that says why it gave nothing. What `Save` gave has the id 0.
    """

    id: int = 0
    text: str = ""
    error: str = ""
    choices: Sequence[Choice] = ()
    ansi: str = ""
    draft: Draft | None = None
    send: str = ""
    typed: str = ""


class Failed(Value):
    """Say that the worker cannot go on, and ends."""

    text: str
    code: int


Order: TypeAlias = Open | Send | Invoke | Save | Replay
"""What the worker carries out one after the other."""
AtOnce: TypeAlias = Stop | TakeBack | Run | StopRun | NextMode | Decide | Preview | Answer | ShowWhole
"""What it does at once, also while an order is under way."""
ToWorker: TypeAlias = Order | AtOnce | Trusted | Close
OfTurn: TypeAlias = Working | Idle | Queued | TakenBack | Refused | Notice
"""What tells how far the turns of the open thread are."""
OfThread: TypeAlias = PastMessage | Happened | Whole
"""What the thread holds, and what is new in it."""
OfRun: TypeAlias = Running | Printed | Ran
"""What tells of the command of the person."""
ToScreen: TypeAlias = Ready | Trust | Ask | Question | OfTurn | OfRun | OfThread | Status | Result | Failed


def write(message: ToWorker | ToScreen) -> bytes:
    """Write a message as one line; half a character, as a model may give it, stays in its escape."""
    return json.dumps(message, default=_plain).encode() + b"\n"


def read_for_worker(line: bytes | str) -> ToWorker:
    """Read what the screen has written.

    Raises:
        ValueError: for a line that is not such a message.
    """
    return _read_line(ToWorker, line)


def read_for_screen(line: bytes | str) -> ToScreen:
    """Read what the worker has written.

    Raises:
        ValueError: for a line that is not such a message.
    """
    return _read_line(ToScreen, line)


def _read_line(form: Any, line: bytes | str) -> Any:
    try:
        return _read(form, json.loads(line))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{line[:_SHOWN]!r} is not a message of this version: {error!r}") from error


def _plain(value: Any) -> Any:
    if not is_dataclass(value):
        return str(value)
    return {"is": type(value).__name__, **{each.name: getattr(value, each.name) for each in fields(value)}}


def _read(form: Any, value: Any) -> Any:
    """Read what is declared as this type: messages and their parts are made; the rest is as JSON has it."""
    inner, known = get_args(form), _classes(form)
    if get_origin(form) in (Sequence, tuple):
        made = [_read(inner[0], each) for each in value]
        return made if get_origin(form) is Sequence else tuple(made)
    if not known or (NoneType in inner and value is None):
        return value
    return _make(known, **value)


def _make(known: Mapping[str, Any], **given: Any) -> Any:
    kind = known[given.pop("is")]
    return kind(**{name: _read(_types(kind)[name], each) for name, each in given.items()})


@cache
def _classes(form: Any) -> Mapping[str, Any]:
    return {
        each.__name__: each for each in get_args(form) or (form,) if hasattr(each, "__dataclass_fields__")
    }


# Once each: to look up what names mean takes longer than reading a message.
@cache
def _types(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)

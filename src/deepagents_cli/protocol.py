"""Define what the screen and the worker of a conversation say to each other: JSON objects, one a line.

The screen shows and asks; the worker holds the agent. Unknown kinds and unknown keys are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypedDict, cast

Mode: TypeAlias = Literal["ask", "auto", "plan", "full"]
MODES: Final[tuple[Mode, ...]] = ("ask", "auto", "plan", "full")
Scope: TypeAlias = Literal["session", "directory", "everywhere"]
End: TypeAlias = Literal["done", "stopped", "failed", "limited"]


class Remember(TypedDict):
    """A rule that the person wants to be kept: one of those that the question offered."""

    scope: Scope
    rule: str


class Open(TypedDict, total=False):
    """Begin: in this directory, a new thread, the one with this id, or the directory's last one.

    `terminal` is a descriptor of a terminal that the screen has made raw: the worker puts it back where the
    screen was killed.
    """

    do: Literal["open"]
    terminal: int | None
    directory: str
    thread: str | None
    resume: bool
    model: str | None
    mode: Mode
    options: Mapping[str, Any]


class Trusted(TypedDict):
    """The answer to `trust`."""

    do: Literal["trust"]
    answer: Literal["yes", "no"]


class Send(TypedDict):
    """A text for the agent; while it works, it reads the text before its next model call.

    An empty one goes on with what was stopped or interrupted.
    """

    do: Literal["send"]
    text: str
    attachments: Sequence[str]


class TakeBack(TypedDict):
    """Take back what the agent has not read yet."""

    do: Literal["take_back"]


class Stop(TypedDict):
    """Stop the present step, and keep what is done."""

    do: Literal["stop"]


class Decide(TypedDict):
    """Decide about a call that waits."""

    do: Literal["decide"]
    ask: str
    decision: Mapping[str, Any]
    remember: Remember | None


class Preview(TypedDict):
    """Show what a call would do with a text that the person has edited."""

    do: Literal["preview"]
    ask: str
    text: str


class Answer(TypedDict):
    """Answer a `question`."""

    do: Literal["answer"]
    ask: str
    text: str


class Invoke(TypedDict):
    """Carry out a slash command; the `result` has the same id."""

    do: Literal["command"]
    id: int
    name: str
    arguments: str


class Save(TypedDict):
    """Write what the `result` of this id proposed to write, as the person has left it; gives a `result`."""

    do: Literal["save"]
    id: int
    text: str


class Close(TypedDict):
    """Finish writing, and end."""

    do: Literal["close"]


class CommandInfo(TypedDict):
    """A slash command, for help and completion."""

    name: str
    description: str
    arguments: str


class PastMessage(TypedDict):
    """A message of a thread that is resumed."""

    who: str
    text: str


class Ready(TypedDict):
    """A thread is open; `waiting` where an interrupted run can go on. Sent again when the thread changes."""

    thread: str
    name: str
    model: str
    mode: Mode
    directory: str
    branch: str | None
    resumed: bool
    memory: Sequence[str]
    skills: Sequence[str]
    agents: Sequence[str]
    notices: Sequence[str]
    commands: Sequence[CommandInfo]
    history: Sequence[PastMessage]
    waiting: bool


class Runnable(TypedDict):
    """Something that the directory brings and that can run."""

    kind: str
    name: str
    what: str


class Trust(TypedDict):
    """Ask whether to use what the directory brings; once, before `ready`."""

    directory: str
    items: Sequence[Runnable]


class Happened(TypedDict):
    """An event of the run in its plain form; `line` is a call, its result or a notice in one cleaned line.

    `details` is the diff of a call that has changed files, where the person was not asked and saw none.
    """

    event: Mapping[str, Any]
    line: str | None
    details: Sequence[str]


class Rule(TypedDict):
    """What "always" can mean for a call."""

    rule: str
    label: str


class Editable(TypedDict):
    """The part of a call that a person edits as text, and how its file ends."""

    text: str
    suffix: str


class Ask(TypedDict):
    """A call, in one `line`, waits for the person; sent again with `edited` after a `preview`."""

    id: str
    agent: str | None
    name: str
    call_id: str | None
    line: str | None
    title: str
    details: Sequence[str]
    language: Literal["diff", "sh", "json"]
    choices: Sequence[str]
    edit: Editable | None
    rules: Sequence[Rule]
    edited: bool


class Choice(TypedDict):
    """One row of a picker; `value` is given to the same command as its arguments."""

    value: str
    label: str
    detail: str
    usable: bool


class Question(TypedDict):
    """A tool asks something; the answer is any text, or the `value` of one of the choices."""

    id: str
    agent: str | None
    text: str
    choices: Sequence[Choice] | None


class Decided(TypedDict):
    """A call was decided about; those that were refused unasked too."""

    ask: str
    decision: str
    by: Literal["mode", "person"]
    name: str
    message: str | None


class Texts(TypedDict):
    """What waits for the agent to read it (`queued`), came back (`taken_back`), was not taken (`refused`)."""

    texts: Sequence[str]


class Status(TypedDict):
    """What the status line shows; `context` is the share of the `window` in use, by `in_context` tokens.

    `state` is what has changed in the repository: "clean", "2 changed, 1 untracked", `None` if not known.
    """

    model: str
    mode: Mode
    branch: str | None
    state: str | None
    context: float | None
    in_context: int | None
    window: int | None
    input_tokens: int
    output_tokens: int
    cost: float | None
    name: str


class Notice(TypedDict):
    """Something that the person must know, in a sentence."""

    text: str


class Working(TypedDict):
    """A turn began, with these texts."""

    queued: Sequence[str]


class Idle(TypedDict):
    """The turn is over, after so many seconds of work."""

    end: End
    error: str | None
    seconds: float


class Proposal(TypedDict):
    """A whole file to be shown before it is written by `save`; it `replaces` so many other bytes."""

    text: str
    path: str
    replaces: int


class Result(TypedDict):
    """What a slash command gave: a text, a picker, formatted text, a file to agree to, a message to send.

    `error` is a sentence that says why it gave nothing.
    """

    id: int
    text: str | None
    error: str | None
    choices: Sequence[Choice] | None
    ansi: str | None
    edit: Proposal | None
    send: str | None


class Failed(TypedDict):
    """The worker cannot go on, and ends."""

    text: str
    code: int


Message: TypeAlias = Mapping[str, Any]


def write(message: Message) -> bytes:
    """Write a message as one line; half a character, as a model may give it, stays in its escape."""
    return json.dumps(message, default=str).encode() + b"\n"


def read(line: bytes | str) -> Message | None:
    """Read a message; `None` for a line that is none."""
    try:
        value: object = json.loads(line)
    except ValueError:
        return None
    return cast("Message", value) if isinstance(value, dict) else None

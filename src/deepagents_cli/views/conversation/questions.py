"""Ask the person: what a question shows, which lines answer it, and what these mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from deepagents._values import recordclass
from deepagents_cli.protocol import Ask, Choice, Draft, Editable, Question, Trust
from deepagents_cli.text import clean, one_line
from deepagents_cli.views.conversation.transcript import Block, Kind

_SHOWN_LINES: Final = 500
_BLOCK_LINES: Final = 100
_CHOICES: Final = {"approve": "y", "reject": "n", "edit": "e", "respond": "r"}
LABELS: Final = {
    "y": "[y]es", "n": "[n]o", "e": "[e]dit", "r": "[r]eply", "a": "[a]lways", "v": "[v]iew", "?": "[?]"
}  # fmt: skip
WORDS: Final = {"y": "yes", "n": "no", "e": "edit", "r": "reply", "a": "always", "v": "view", "?": "help"}
EXPLAINED: Final = {
    "y": "do it, this once",
    "n": "refuse it; the model reads your reason",
    "e": "change it in your editor ($VISUAL or $EDITOR), else here; you see the change before it is done",
    "r": "answer in the tool's place; nothing runs",
    "a": "do it and calls like it from now on; you choose which, and for how long",
    "v": "show the lines that were left out; what was not shown cannot be agreed to",
}


@recordclass
class Pending:
    """A question that waits; `shown` counts the lines of its details that were shown."""

    message: Ask | Question | Trust | Draft
    title: str
    details: Sequence[str]
    kind: Kind = "dim"
    shown: int = 0
    may: Sequence[str] = ()

    @property
    def call_id(self) -> str | None:
        """The call that waits for the answer."""
        return self.message.call_id if isinstance(self.message, Ask) else None

    @property
    def unseen(self) -> int:
        """How many lines were not shown yet."""
        return len(self.details) - self.shown

    @property
    def lets_work_go_on(self) -> bool:
        """Whether no call waits for the answer: a file is proposed, or a host was wanted."""
        return isinstance(self.message, Draft | Ask) and not self.call_id

    @property
    def is_text(self) -> bool:
        """Whether it is answered by a text, and not by a key."""
        return isinstance(self.message, Question) and not self.answers

    @property
    def can_cancel(self) -> bool:
        """Whether it may be left unanswered while the step goes on."""
        return isinstance(self.message, Question) and self.message.can_cancel

    @property
    def answers(self) -> Mapping[str, Choice]:
        """The answers that a tool offers, by the key that gives each."""
        offered = self.message.choices if isinstance(self.message, Question) else ()
        return {str(number): each for number, each in enumerate(offered, 1)}

    def show(self) -> list[Block]:
        """Return the next lines of its details as blocks, the title before the first."""
        blocks = [] if self.shown else [Block("title", self.title)]
        part = self.details[self.shown :] if self.shown else self.details[:_SHOWN_LINES]
        self.shown += len(part)
        # Markdown is one text; of lines, a key need not wait for all.
        size = len(part) if self.kind == "markdown" else _BLOCK_LINES
        for at in range(0, len(part), size or 1):
            blocks.append(Block(self.kind, "\n".join(part[at : at + size]), follows=True))
        if self.unseen:
            more = f"... {self.unseen:,} more lines; view them to agree"
            blocks.append(Block("notice", more, follows=True))
        return blocks

    @property
    def offered(self) -> dict[str, str]:
        """The keys that answer now, with what is shown for each."""
        if self.unseen:
            # A payload could stand behind any number of dull lines.
            return {key: LABELS[key] for key in ("v", *self.may, "?") if key in "vnr?"}
        named = {key: f"[{key}] {one_line(each.label)}" for key, each in self.answers.items()}
        return named | {key: LABELS[key] for key in (*self.may, "?")}

    def read_key(self, line: str) -> str | None:
        """Return the key that a line stands for, offered now or not: itself or its word, and nothing else."""
        typed = line.strip().lower()
        lines = {key: (key,) for key in self.answers} | {key: (key, word) for key, word in WORDS.items()}
        return None if self.is_text else next((key for key in lines if typed in lines[key]), None)

    def explain(self, stop_key: str) -> Block:
        """Say what each key does."""
        answers = {key: one_line(f"{each.label}: {each.detail}") for key, each in self.answers.items()}
        meant = EXPLAINED | ({"r": "answer with a text of your own"} if answers else {}) | answers
        lines = [f"{key}\t{meant[key]}" for key in self.offered if key != "?"]
        stop = "refuse, and stop the present step"
        if self.can_cancel:
            stop = "cancel: the server reads that you did not answer; again: stop the present step"
        lines.append(f"{stop_key}\t{stop}")
        return Block("terms", "\n".join(lines))

    def edited_text(self) -> tuple[str, str]:
        """Return the text to be edited, and how its file ends."""
        match self.message:
            case Draft(text=text, path=path):
                return text, Path(path).suffix or ".txt"
            case Ask(edit=Editable(text=text, suffix=suffix)):
                return text, one_line(suffix).replace("/", "")
            case _:
                return "", ".txt"


def read_question(message: Ask | Question | Trust | Draft) -> Pending:
    """Return what a person sees of a question, and which keys answer it."""
    match message:
        case Ask():
            return _read_ask(message)
        case Question():
            who, lines = one_line(message.agent or "The agent"), clean(message.text).split("\n")
            if message.is_plan:
                return Pending(message, f"{who} proposes a plan", lines, kind="markdown", may="r")
            return Pending(message, f"{who} asks:", lines)
        case Trust():
            title = f"Do you trust {one_line(message.directory)}? It brings what can run:"
            return Pending(message, title, clean("\n".join(message.items)).split("\n"), may="yn")
        case Draft():
            lost = message.replaces
            instead = f" It replaces the {lost:,} bytes that are there." if lost else ""
            title = f"Write {one_line(message.path)}?{instead}"
            return Pending(message, title, clean(message.text).split("\n"), may="yne")


def _read_ask(message: Ask) -> Pending:
    keys = {_CHOICES[each] for each in message.choices}
    if message.edit is None:
        keys.discard("e")
    if message.rules and "y" in keys:
        keys.add("a")
    # A line may hold several, and each of them is counted.
    details = clean("\n".join(message.details)).split("\n")
    kind: Kind = "dim" if message.language == "text" else message.language
    title = one_line(f"{message.agent or 'The agent'} {message.title}")
    return Pending(message, title, details if any(details) else [], kind, may=sorted(keys, key="ynera".index))

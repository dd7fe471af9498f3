"""Answer calls that wait: by the policy alone, or by a person at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Console

from deepagents.events import ApprovalRequest
from deepagents_cli.approval.policy import Policy, Scope
from deepagents_cli.approval.questions import Decision, Question, apply_edit, decision_by, make_question
from deepagents_cli.terminal import READING, style_text, take_typed_ahead
from deepagents_cli.text import one_line
from deepagents_cli.views.editor import edit_text

_REFUSED_UNASKED: Final = (
    "Refused: this call needs a person's approval and nobody can be asked. Do not try again; say in your "
    "answer what you would have done."
)
_SHOWN_LINES: Final = 500
DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}
_SCOPES: Final[Mapping[str, Scope]] = {
    "s": "session", "d": "directory", "e": "everywhere",
    "session": "session", "directory": "directory", "everywhere": "everywhere",
}  # fmt: skip


class _Choice(NamedTuple):
    """What a person can type; offered where the call allows the decision, if it is one."""

    word: str
    decision: str | None
    help: str


_CHOICES: Final = {
    "y": _Choice("yes", "approve", "let this call run"),
    "n": _Choice("no", "reject", "refuse it; the model reads your reason"),
    "e": _Choice("edit", "edit", "change the command, or the text that the file shall get, and see it again"),
    "r": _Choice("reply", "respond", "answer in the tool's place; nothing runs"),
    "a": _Choice(
        "always", "approve", "let it and calls like it run from now on; you choose which, and where"
    ),
    "v": _Choice("view", None, "show the lines that were left out"),
}


def approve(request: ApprovalRequest, agent: str | None) -> Decision:
    """Approve whatever waits."""
    return {"type": "approve"}


class Unattended:
    """Decides by the policy, and refuses what a person would be asked about, with a reason for the model."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.refused = 0

    def __call__(self, request: ApprovalRequest, agent: str | None) -> Decision:
        """Decide about a call."""
        if decided := decision_by(self._policy, request):
            return decided
        self.refused += 1
        return {"type": "reject", "message": _REFUSED_UNASKED, "verbatim": True}


class AskPerson:
    """Shows each call that the policy asks about, with its diff, and reads a decision."""

    def __init__(
        self,
        console: Console,
        policy: Policy,
        pause: Callable[[], None],
        editor: str | None = None,
    ) -> None:
        self._console = console
        self._pause = pause
        self._policy = policy
        self._editor = editor
        self._begun = ""
        """What stands already in the line that is read next."""

    def __call__(self, request: ApprovalRequest, agent: str | None) -> Decision:
        """Ask about a call; the end of input is Ctrl-C."""
        if decided := decision_by(self._policy, request):
            return decided
        asked = request
        question, unseen = self._show(asked, agent)
        while True:
            choice = self._choose(question, len(unseen))
            if choice == "v":
                self._print_lines(unseen)
                unseen = ()
            elif choice == "e":
                asked = self._edit(asked, question)
                question, unseen = self._show(asked, agent)
            elif choice != "a" or self._remember(question):
                return self._decision(choice, request, asked)

    def _show(self, request: ApprovalRequest, agent: str | None) -> tuple[Question, Sequence[str]]:
        """Show a call, and return it with the lines of it that are left to view."""
        question = make_question(request, self._policy)
        self._pause()
        who = one_line(agent) if agent else "The agent"
        self._console.print(style_text(f"{who} {question.title}", "bold yellow"), soft_wrap=True)
        indent = "  " if question.language == "sh" else ""
        lines = [f"{indent}{each}" for each in question.details]
        self._print_lines(lines[:_SHOWN_LINES])
        # What was typed before the call was shown must not approve it.
        early, self._begun = take_typed_ahead(READING)
        self._print_lines([f"Typed before the question, and not taken: {line}" for line in early])
        return question, lines[_SHOWN_LINES:]

    def _print_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._console.print(style_text(line, DIFF_COLOURS.get(line[:1], "")), soft_wrap=True)

    def _choose(self, question: Question, unseen: int) -> str:
        offered = [key for key, each in _CHOICES.items() if each.decision in question.choices]
        if not question.rules and "a" in offered:
            offered.remove("a")
        if unseen:
            # What was not shown cannot be approved: a payload could stand behind any number of dull lines.
            self._console.print(style_text(f"... {unseen:,} more lines; view them to approve"))
            offered = ["v", *(key for key in offered if key in "nr")]
        shown = " ".join(f"[{key}]{_CHOICES[key].word[1:]}" for key in offered)
        prompt = style_text(f"{shown} [?] ? ", "bold")
        while True:
            answer = self._read_line(prompt).lower()
            for key in offered:
                if answer in (key, _CHOICES[key].word):
                    return key
            if answer == "?":
                self._print_lines([f"  {key}  {_CHOICES[key].help}" for key in offered])
            elif answer:
                self._console.print("That is no answer. `n` refuses, and asks for words to the agent.")

    def _decision(self, choice: str, request: ApprovalRequest, asked: ApprovalRequest) -> Decision:
        if choice == "n":
            reason = self._read_line(style_text("Why (may be empty)? "))
            return {"type": "reject", "message": reason} if reason else {"type": "reject"}
        if choice == "r":
            reply = self._read_line(style_text("Reply in the tool's place: "))
            return {"type": "respond", "message": reply}
        if asked is request:
            return {"type": "approve"}
        return {"type": "edit", "edited_action": {"name": asked.name, "args": dict(asked.args)}}

    def _remember(self, question: Question) -> bool:
        """Ask which calls go through from now on, and where; return whether the person chose."""
        for number, offer in enumerate(question.rules, 1):
            self._console.print(style_text(f"  {number}  {offer.label}"), soft_wrap=True)
        numbers = {str(number): offer for number, offer in enumerate(question.rules, 1)}
        which = self._read_line(style_text(f"Always what ({', '.join(numbers)}; empty: go back)? "))
        if which not in numbers:
            return False
        where = self._read_line(
            style_text("Where: this [s]ession, this [d]irectory, [e]verywhere (empty: go back)? ")
        )
        scope = _SCOPES.get(where.lower())
        if scope is None:
            return False
        try:
            self._policy.remember(numbers[which].rule, scope)
        except (OSError, ValueError) as error:
            self._say_not_taken(error)
            return False
        return True

    def _edit(self, request: ApprovalRequest, question: Question) -> ApprovalRequest:
        """Let the person edit a call; the same one where nothing came of it."""
        if question.edit is None:
            return request
        try:
            text = (
                edit_text(self._editor, question.edit.text, question.edit.suffix, self._policy.places)
                if self._editor
                else self._edit_in_place(question.edit.text)
            )
            return request if text is None else apply_edit(request, text, self._policy)
        except ValueError as error:
            self._say_not_taken(error)
            return request

    def _say_not_taken(self, error: Exception) -> None:
        self._console.print(style_text(f"Not taken: {error}", "red"), soft_wrap=True)

    def _edit_in_place(self, text: str) -> str | None:
        self._print_lines(text.split("\n"))
        self._console.print(style_text("New text; a line with a single dot, or Ctrl-D, ends it:"))
        lines: list[str] = []
        while True:
            try:
                line: str = self._console.input("")
            except EOFError:
                break
            if line == ".":
                break
            lines.append(line)
        end = "\n" if text.endswith("\n") else ""
        return "\n".join(lines) + end if lines else None

    def _read_line(self, prompt: Any) -> str:
        try:
            line = f"{self._begun}{self._console.input(prompt)}"
        except EOFError as error:
            raise KeyboardInterrupt from error
        self._begun = ""
        return line.strip()

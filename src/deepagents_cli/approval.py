"""Asks a person about calls that change something."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from rich.console import Console
from rich.text import Text

from deepagents.events import ApprovalGiven, ApprovalNeeded, ApprovalRequest
from deepagents_cli.diffs import Read, proposed_diff
from deepagents_cli.session import Decision, Decisions
from deepagents_cli.terminal import clean, forget_typed, one_line

GATED: Final = ("execute", "write_file", "edit_file", "delete")
"""The tools that wait for a person."""

NOBODY: Final = (
    "Refused: this call needs a person's approval and nobody can be asked. Do not try again; say in your "
    "answer what you would have done."
)

_SHOWN_LINES: Final = 500
DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}
_LETTERS: Final = {"y": "approve", "n": "reject", "e": "edit", "r": "respond", "a": "approve"}
_CHOICES: Final = {"y": "[y]es", "n": "[n]o", "e": "[e]dit", "r": "[r]eply", "a": "[a]lways"}
_WORDS: Final = frozenset({"yes", "no", "edit", "reply", "always"})
_EDITED_AS_TEXT: Final = {"write_file": "content", "execute": "command"}

Told = Callable[[ApprovalGiven], None]


class ApproveAll:
    """Approves every call, as `--yes` asks."""

    refused = 0

    def __call__(self, needed: ApprovalNeeded, told: Told) -> Decisions:
        """Approve."""
        return _gathered(needed, told, lambda request: {"type": "approve"})


class RefuseAll:
    """Rejects every call, because nobody can be asked, and counts them."""

    def __init__(self) -> None:
        self.refused = 0

    def __call__(self, needed: ApprovalNeeded, told: Told) -> Decisions:
        """Reject, and tell the model why."""
        self.refused += len(needed.requests)
        return _gathered(needed, told, lambda request: {"type": "reject", "message": NOBODY})


class AskPerson:
    """Shows each call, with its diff, and reads a decision; `one_by_one` offers no answer for all."""

    refused = 0

    def __init__(
        self,
        console: Console,
        read: Read,
        pause: Callable[[], None],
        environment: Mapping[str, str] = os.environ,
        *,
        one_by_one: bool = False,
    ) -> None:
        self._console = console
        self._pause = pause
        self._read = read
        self._editor = environment.get("VISUAL") or environment.get("EDITOR")
        self._always: set[str] = set()
        self._choices = {key: text for key, text in _CHOICES.items() if key != "a" or not one_by_one}

    def __call__(self, needed: ApprovalNeeded, told: Told) -> Decisions:
        """Ask about each call in turn; the end of input is Ctrl-C."""
        return _gathered(needed, told, lambda request: self._decide(request, needed.agent))

    def _decide(self, request: ApprovalRequest, agent: str | None) -> Decision:
        if request.name in self._always and "approve" in request.allowed:
            return {"type": "approve"}
        self._show(request, agent)
        forget_typed()
        while True:
            decision = self._decision(self._choice(request), request)
            if decision is not None:
                return decision

    def _show(self, request: ApprovalRequest, agent: str | None) -> None:
        who = f"{one_line(agent)} wants" if agent else "The agent wants"
        self._pause()
        self._console.print(Text(f"{who} to {_deed(request)}", style="bold yellow"), soft_wrap=True)
        for line in _details(request, self._read):
            self._console.print(Text(clean(line), style=DIFF_COLOURS.get(line[:1], "")), soft_wrap=True)

    def _choice(self, request: ApprovalRequest) -> str:
        offered = {key: text for key, text in self._choices.items() if _LETTERS[key] in request.allowed}
        question = Text(f"{' '.join(offered.values())} ? ", style="bold")
        while True:
            answer = self._line(question).lower()
            if answer in _WORDS:
                answer = answer[0]
            if answer in offered:
                return answer

    def _decision(self, choice: str, request: ApprovalRequest) -> Decision | None:
        match choice:
            case "n":
                reason = self._line(Text("Why (may be empty)? "))
                return {"type": "reject", "message": reason} if reason else {"type": "reject"}
            case "r":
                return {"type": "respond", "message": self._line(Text("Reply in the tool's place: "))}
            case "e":
                return self._edited(request)
            case "a":
                self._always.add(request.name)
            case _:
                pass
        return {"type": "approve"}

    def _edited(self, request: ApprovalRequest) -> Decision | None:
        try:
            args = self._in_editor(request) if self._editor else self._as_json(request)
        except (ValueError, OSError, subprocess.CalledProcessError) as error:
            self._console.print(Text(f"Not taken: {clean(str(error))}", style="red"), soft_wrap=True)
            return None
        return {"type": "edit", "edited_action": {"name": request.name, "args": args}}

    def _in_editor(self, request: ApprovalRequest) -> dict[str, Any]:
        field = _EDITED_AS_TEXT.get(request.name)
        if field is None:
            return _arguments(
                self._edit_text(json.dumps(request.args, indent=2, ensure_ascii=False), ".json")
            )
        suffix = Path(str(request.args.get("file_path", ""))).suffix or ".txt"
        return {**request.args, field: self._edit_text(str(request.args.get(field, "")), suffix)}

    def _as_json(self, request: ApprovalRequest) -> dict[str, Any]:
        self._console.print(Text(clean(json.dumps(request.args, ensure_ascii=False))), soft_wrap=True)
        return _arguments(self._line(Text("New arguments as JSON: ")))

    def _edit_text(self, text: str, suffix: str) -> str:
        with tempfile.TemporaryDirectory(prefix="deepagents-") as place:
            path = Path(place, f"proposed{suffix}")
            path.write_text(text, "utf-8")
            subprocess.run([*shlex.split(self._editor or ""), str(path)], check=True)
            return path.read_text("utf-8")

    def _line(self, prompt: Text) -> str:
        try:
            return self._console.input(prompt).strip()
        except EOFError as error:
            raise KeyboardInterrupt from error


def _gathered(needed: ApprovalNeeded, told: Told, decide: Callable[[ApprovalRequest], Decision]) -> Decisions:
    decisions: dict[str, list[Decision]] = {}
    for request in needed.requests:
        decision = decide(request)
        decisions.setdefault(request.interrupt_id, []).append(decision)
        told(
            ApprovalGiven(
                request.interrupt_id,
                request.name,
                decision["type"],
                decision.get("message"),
                request.tool_call_id,
            )
        )
    return decisions


def _deed(request: ApprovalRequest) -> str:
    path = one_line(str(request.args.get("file_path", "")))
    deeds = {"write_file": f"write {path}", "edit_file": f"edit {path}", "delete": f"delete {path}"}
    return deeds.get(
        request.name, "run a command" if request.name == "execute" else f"call {one_line(request.name)}"
    )


def _details(request: ApprovalRequest, read: Read) -> list[str]:
    if request.name == "execute":
        return [f"  $ {line}" for line in str(request.args.get("command", "")).splitlines()]
    if request.name not in GATED:
        return json.dumps(request.args, indent=2, ensure_ascii=False).splitlines()
    if request.name == "delete":
        return []
    lines = proposed_diff(request.name, request.args, read) or ["(no line changes, at most how lines end)"]
    left = len(lines) - _SHOWN_LINES
    return lines if left <= 0 else [*lines[:_SHOWN_LINES], f"... {left} more lines"]


def _arguments(text: str) -> dict[str, Any]:
    value: Any = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("arguments are a JSON object")
    return cast("dict[str, Any]", value)

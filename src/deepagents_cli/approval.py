"""Ask a person about calls that change something."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from rich.console import Console

from deepagents.events import ApprovalRequest
from deepagents.tools import FILE_TOOLS, ToolSpec, specs_by_name
from deepagents_cli.diffs import Read, name_in, propose_diff
from deepagents_cli.session import Decision
from deepagents_cli.terminal import clean, drop_typed_ahead, one_line, style_text

GATED: Final = tuple(spec.name for spec in FILE_TOOLS if spec.asks_by_default)
"""The tools that wait for a person."""
GATED_IN_SANDBOX: Final = tuple(spec.name for spec in FILE_TOOLS if spec.changes_files)
"""Those that still wait where confined commands run without asking."""

_REFUSED_UNASKED: Final = (
    "Refused: this call needs a person's approval and nobody can be asked. Do not try again; say in your "
    "answer what you would have done."
)

_SPECS: Final = specs_by_name()
_SHOWN_LINES: Final = 500
DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}
_DECISIONS: Final = {"y": "approve", "n": "reject", "e": "edit", "r": "respond", "a": "approve"}
_CHOICES: Final = {"y": "[y]es", "n": "[n]o", "e": "[e]dit", "r": "[r]eply", "a": "[a]lways"}
_WORDS: Final = frozenset({"yes", "no", "edit", "reply", "always", "view"})


def approve(request: ApprovalRequest, agent: str | None) -> Decision:
    """Approve, as `--yes` asks."""
    return {"type": "approve"}


def refuse(request: ApprovalRequest, agent: str | None) -> Decision:
    """Reject, because no person can be asked, with a reason for the model."""
    return {"type": "reject", "message": _REFUSED_UNASKED}


class AskPerson:
    """Shows each call, with its diff, and reads a decision; `one_by_one` offers no answer for all.

    Files below `directory` are shown by their names there. `confined`: whether commands run in the sandbox.
    """

    def __init__(
        self,
        console: Console,
        read: Read,
        pause: Callable[[], None],
        environment: Mapping[str, str] = os.environ,
        *,
        one_by_one: bool = False,
        directory: str = "",
        confined: bool | None = None,
        specs: Mapping[str, ToolSpec] = _SPECS,
    ) -> None:
        self._console = console
        self._pause = pause
        self._read = read
        self._directory = directory
        self._where = {True: " in the sandbox", False: " without the sandbox", None: ""}[confined]
        self._specs = specs
        self._editor = environment.get("VISUAL") or environment.get("EDITOR")
        self._always: set[str] = set()
        self._choices = {key: text for key, text in _CHOICES.items() if key != "a" or not one_by_one}

    def __call__(self, request: ApprovalRequest, agent: str | None) -> Decision:
        """Ask about a call; the end of input is Ctrl-C."""
        # By name alone and for this session: the person has seen one such call.
        if request.name in self._always and "approve" in request.allowed:
            return {"type": "approve"}
        unseen = self._show(request, agent)
        # A key that was pressed before the call was shown must not approve it.
        drop_typed_ahead()
        while True:
            choice = self._choose(request, len(unseen))
            if choice == "v":
                self._print_lines(unseen)
                unseen = ()
                continue
            decision = self._decision(choice, request)
            if decision is not None:
                return decision

    def _show(self, request: ApprovalRequest, agent: str | None) -> Sequence[str]:
        """Show a call, and return the lines of it that are left to view."""
        who = f"{one_line(agent)} wants" if agent else "The agent wants"
        what = describe_call(request, self._specs, self._directory, self._where)
        self._pause()
        self._console.print(style_text(f"{who} to {what}", "bold yellow"), soft_wrap=True)
        lines = call_details(request, self._read, self._specs, self._directory)
        self._print_lines(lines[:_SHOWN_LINES])
        return lines[_SHOWN_LINES:]

    def _print_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._console.print(style_text(line, DIFF_COLOURS.get(line[:1], "")), soft_wrap=True)

    def _choose(self, request: ApprovalRequest, unseen: int) -> str:
        offered = {key: text for key, text in self._choices.items() if _DECISIONS[key] in request.allowed}
        if unseen:
            # What was not shown cannot be approved: a payload could stand behind any number of dull lines.
            self._console.print(style_text(f"... {unseen:,} more lines; view them to approve"))
            offered = {"v": "[v]iew", **{key: text for key, text in offered.items() if key in "nr"}}
        question = style_text(f"{' '.join(offered.values())} ? ", "bold")
        while True:
            answer = self._read_line(question).lower()
            if answer in _WORDS:
                answer = answer[0]
            if answer in offered:
                return answer

    def _decision(self, choice: str, request: ApprovalRequest) -> Decision | None:
        match choice:
            case "n":
                reason = self._read_line(style_text("Why (may be empty)? "))
                return {"type": "reject", "message": reason} if reason else {"type": "reject"}
            case "r":
                return {
                    "type": "respond",
                    "message": self._read_line(style_text("Reply in the tool's place: ")),
                }
            case "e":
                return self._edit(request)
            case "a":
                self._always.add(request.name)
            case _:
                pass
        return {"type": "approve"}

    def _edit(self, request: ApprovalRequest) -> Decision | None:
        try:
            args = self._edit_in_editor(request) if self._editor else self._edit_as_json(request)
        except (ValueError, OSError, subprocess.CalledProcessError) as error:
            self._console.print(style_text(f"Not taken: {error}", "red"), soft_wrap=True)
            return None
        return {"type": "edit", "edited_action": {"name": request.name, "args": args}}

    def _edit_in_editor(self, request: ApprovalRequest) -> dict[str, Any]:
        spec = self._specs.get(request.name)
        field = text_argument(spec)
        if field is None:
            return _parse_arguments(
                self._edit_text(json.dumps(request.args, indent=2, ensure_ascii=False), ".json")
            )
        path = spec.path_in(request.args) if spec else None
        suffix = Path(path or "").suffix or ".txt"
        return {**request.args, field: self._edit_text(str(request.args.get(field, "")), suffix)}

    def _edit_as_json(self, request: ApprovalRequest) -> dict[str, Any]:
        self._console.print(style_text(json.dumps(request.args, ensure_ascii=False)), soft_wrap=True)
        return _parse_arguments(self._read_line(style_text("New arguments as JSON: ")))

    def _edit_text(self, text: str, suffix: str) -> str:
        with tempfile.TemporaryDirectory(prefix="deepagents-") as directory:
            path = Path(directory, f"proposed{suffix}")
            path.write_text(text, "utf-8")
            subprocess.run([*shlex.split(self._editor or ""), str(path)], check=True)
            return path.read_text("utf-8")

    def _read_line(self, prompt: Any) -> str:
        try:
            return self._console.input(prompt).strip()
        except EOFError as error:
            raise KeyboardInterrupt from error


def describe_call(request: ApprovalRequest, specs: Mapping[str, ToolSpec], directory: str, where: str) -> str:
    """Say what a call would do, as in "edit notes.md"; `where` is added to a command."""
    spec = specs.get(request.name)
    if spec and spec.effect == "run" and request.name == "execute":
        return f"run a command{where}"
    if spec and spec.changes_files:
        verb = request.name.partition("_")[0]
        return f"{verb} {one_line(name_in(str(request.args.get(spec.path_argument or '', '')), directory))}"
    return f"call {one_line(request.name)}"


def call_details(
    request: ApprovalRequest, read: Read, specs: Mapping[str, ToolSpec], directory: str
) -> list[str]:
    """Return the lines that a person is to see before a call is made: a diff, a command, or all arguments."""
    spec = specs.get(request.name)
    if spec and spec.effect == "run":
        return [f"  $ {line}" for key in spec.summary_arguments for line in _lines(request.args.get(key, ""))]
    if spec and spec.effect == "delete":
        return []
    diff = propose_diff(request.name, request.args, read, directory)
    if diff is None:
        return json.dumps(request.args, indent=2, ensure_ascii=False).split("\n")
    return diff or ["(no line changes, at most how lines end)"]


def text_argument(spec: ToolSpec | None) -> str | None:
    """Return the one argument that a person edits as text: a command, or all that a file shall hold."""
    if spec is None:
        return None
    texts = spec.summary_arguments if spec.effect == "run" else spec.clipped_arguments
    return texts[0] if len(texts) == 1 else None


def _lines(command: object) -> list[str]:
    return clean(str(command)).removesuffix("\n").split("\n")


def _parse_arguments(text: str) -> dict[str, Any]:
    value: Any = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("arguments are a JSON object")
    return cast("dict[str, Any]", value)

"""Ask the person, through the screen, about calls that wait and about what tools want to know."""

from __future__ import annotations

import json
from asyncio import Future, get_running_loop
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from deepagents.events import ApprovalNeeded, ApprovalRequest, QuestionAsked
from deepagents.tools import specs_by_name
from deepagents_cli.approval import GATED_IN_SANDBOX, call_details, describe_call, text_argument
from deepagents_cli.diffs import Read
from deepagents_cli.protocol import Choice, Message, Mode
from deepagents_cli.session import Decision, Waiting
from deepagents_cli.terminal import clean, one_line
from deepagents_cli.worker.steering import PLAN

Say: TypeAlias = Callable[[str, Message], None]

_SPECS: Final = specs_by_name()
_NOTHING_CHANGES: Final = "Refused: in plan mode nothing is changed. Put it into the plan."
_PLAN_CHOICES: Final[Sequence[Choice]] = (
    {"value": "ask", "label": "Carry it out, asking", "detail": "you approve each change", "usable": True},
    {
        "value": "auto",
        "label": "Carry it out",
        "detail": "edits and confined commands need no approval",
        "usable": True,
    },
    {"value": "plan", "label": "Keep planning", "detail": "or type what is to be different", "usable": True},
)


@dataclass(frozen=True)
class Place:
    """Where calls take effect: how files are read there, its name, and whether commands are confined."""

    read: Read
    directory: str
    confined: bool


def decide_unasked(mode: Mode, request: ApprovalRequest, *, confined: bool) -> Decision | None:
    """Decide about a call by the mode alone; `None` for what the person decides."""
    if mode == "plan":
        return {"type": "reject", "message": _NOTHING_CHANGES}
    leaves = not confined or request.name not in (*GATED_IN_SANDBOX, "execute")
    return {"type": "approve"} if mode == "full" or (mode == "auto" and not leaves) else None


class Asking:
    """Decides about what waits: by the mode, else by asking one after the other."""

    def __init__(self, say: Say, place: Place, mode: Callable[[], Mode], set_mode: Callable[[Mode], None]):
        self.place = place
        self._say = say
        self._mode = mode
        self._set_mode = set_mode
        self._open: tuple[str, Future[Any]] | None = None
        self._shown: tuple[ApprovalRequest, str | None] | None = None
        self._edited: Mapping[str, Any] | None = None
        self._asked = 0

    async def decide(self, needed: ApprovalNeeded) -> list[tuple[ApprovalRequest, Decision]]:
        """Return a decision for each call; all of one interrupt are answered together."""
        return [(each, await self._decide(each, needed.agent)) for each in needed.requests]

    async def answer(self, asked: QuestionAsked) -> Any:
        """Return the answer to what a tool asks."""
        question = asked.question
        plan: Mapping[str, Any] = cast("Mapping[str, Any]", question) if isinstance(question, Mapping) else {}
        if plan.get("type") == PLAN:
            return await self._approve_plan(str(plan.get("plan")), asked.agent)
        text = question if isinstance(question, str) else json.dumps(question, default=str, indent=2)
        return await self._ask("question", {"agent": asked.agent, "text": clean(text), "choices": None})

    def take(self, ask: str, value: Any) -> None:
        """Take what the person answered; an answer to what no longer waits is dropped."""
        if self._open and self._open[0] == ask and not self._open[1].done():
            self._open[1].set_result(value)

    def preview(self, ask: str, text: str) -> None:
        """Show the call that waits as the person has edited it."""
        if not (self._shown and self._open and self._open[0] == ask):
            return
        request, agent = self._shown
        with suppress(ValueError):
            self._edited = _with_text(request, text)
            edited = replace(request, args=self._edited)
            self._say("ask", {"id": ask, **self._describe(edited, agent), "edited": True})

    async def _decide(self, request: ApprovalRequest, agent: str | None) -> Decision:
        unasked = decide_unasked(self._mode(), request, confined=self.place.confined)
        if unasked is not None:
            self._report("", request, unasked, "mode")
            return unasked
        self._shown, self._edited = (request, agent), None
        try:
            given = await self._ask("ask", {**self._describe(request, agent), "edited": False})
        finally:
            self._shown = None
        made: Decision = given["decision"]
        if self._edited is not None and made.get("type") == "approve":
            made = {"type": "edit", "edited_action": {"name": request.name, "args": dict(self._edited)}}
        self._report(given["ask"], request, made, "person")
        return made

    async def _approve_plan(self, plan: str, agent: str | None) -> str:
        shown = {"agent": agent, "text": clean(plan), "choices": _PLAN_CHOICES}
        match await self._ask("question", shown):
            case "ask" | "auto" as mode:
                self._set_mode(mode)
                return "The person approves the plan. Plan mode is over: carry it out now."
            case "plan" | "":
                return "The person wants to go on planning. Ask what is missing, or look further."
            case wish:
                return f"The person does not approve the plan yet. They say: {wish}"

    async def _ask(self, kind: str, message: Message) -> Any:
        self._asked += 1
        key = f"ask-{self._asked}"
        future: Future[Any] = get_running_loop().create_future()
        self._open = key, future
        try:
            self._say(kind, {"id": key, **message})
            return await future
        finally:
            self._open = None

    def _report(self, ask: str, request: ApprovalRequest, made: Decision, by: str) -> None:
        if by == "person" or made["type"] == "reject":
            message = made.get("message")
            self._say(
                "decided",
                {"ask": ask, "decision": made["type"], "by": by, "name": request.name, "message": message},
            )

    def _describe(self, request: ApprovalRequest, agent: str | None) -> dict[str, Any]:
        where = " in the sandbox" if self.place.confined else " without the sandbox"
        spec = _SPECS.get(request.name)
        field = text_argument(spec)
        lines = call_details(request, self.place.read, _SPECS, self.place.directory)
        runs = spec is not None and spec.effect == "run"
        return {
            "agent": None if agent is None else one_line(agent),
            "name": request.name,
            "title": f"wants to {describe_call(request, _SPECS, self.place.directory, where)}",
            "details": [clean(each) for each in lines],
            "language": "sh" if runs else "diff" if spec and spec.changes_files else "json",
            "choices": list(request.allowed),
            "edit": {"text": _text_of(request, field), "suffix": _suffix_of(request, field)},
            "rules": [],
        }


def _text_of(request: ApprovalRequest, field: str | None) -> str:
    """Return what a person edits: the one text of a call, or all its arguments."""
    if field is None:
        return json.dumps(request.args, indent=2, ensure_ascii=False)
    return str(request.args.get(field, ""))


def _suffix_of(request: ApprovalRequest, field: str | None) -> str:
    spec = _SPECS.get(request.name)
    if field is None:
        return ".json"
    name = (spec.path_in(request.args) if spec else None) or ""
    return f".{name.rpartition('.')[2]}" if "." in name.rpartition("/")[2] else ".txt"


def _with_text(request: ApprovalRequest, text: str) -> dict[str, Any]:
    field = text_argument(_SPECS.get(request.name))
    if field is not None:
        return {**request.args, field: text}
    given: Any = json.loads(text)
    if not isinstance(given, dict):
        raise ValueError("arguments are a JSON object")
    return cast("dict[str, Any]", given)


async def answers_of(asking: Asking, waiting: Sequence[Waiting]) -> tuple[list[Any], dict[str, Any]]:
    """Ask about all that waits; return the decided calls, and the answers by interrupt."""
    decided: list[tuple[ApprovalRequest, Decision]] = []
    answers: dict[str, Any] = {}
    for each in waiting:
        if isinstance(each, ApprovalNeeded):
            decided += await asking.decide(each)
        else:
            answers[each.interrupt_id] = await asking.answer(each)
    return decided, answers

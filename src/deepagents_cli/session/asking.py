"""Ask the person, through the screen, about calls that wait and about what tools want to know."""

from __future__ import annotations

import json
from asyncio import Future, Lock, get_running_loop
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeAlias, cast

from deepagents.events import ApprovalNeeded, ApprovalRequest, QuestionAsked
from deepagents_cli.approval.policy import Policy
from deepagents_cli.approval.questions import Decision, apply_edit, decision_by, make_question
from deepagents_cli.protocol import Choice, Message, Mode, Rule, Scope
from deepagents_cli.session.lines import call_line
from deepagents_cli.session.session import Waiting
from deepagents_cli.session.steering import PLAN
from deepagents_cli.text import clean, one_line

Say: TypeAlias = Callable[[str, Message], None]

HOST: Final = "host"
FILE: Final = "file"
"""Names of questions that are about no call of a tool."""
SCOPES: Final[tuple[Scope, ...]] = ("session", "directory", "everywhere")
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


class Asking:
    """Decides about what waits: by the policy, else by asking one after the other."""

    def __init__(self, say: Say, policy: Policy, set_mode: Callable[[Mode], None]) -> None:
        self._say = say
        self._policy = policy
        self._set_mode = set_mode
        self._one_by_one = Lock()
        self._open: tuple[str, Future[Any]] | None = None
        self._shown: tuple[ApprovalRequest, str | None] | None = None
        self._edited: ApprovalRequest | None = None
        self._asked = 0
        self.approved: set[str | None] = set()
        """The ids of the calls that the person let run, having seen them."""
        self.answered: set[str | None] = set()
        """The ids of the calls in whose place the person gave a reason or a result."""

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

    async def ask_about_host(self, host: str) -> bool:
        """Ask whether commands may reach a host from now on; return the answer."""
        rule: Rule = {"rule": f"host: {host}", "label": f"commands reach {host}"}
        title = f"wants its commands to reach {host}"
        details = "A command was kept from it. If you agree, commands reach it in this session."
        given = await self._ask("ask", {**_about_no_call(HOST, title, details), "rules": [rule]})
        if given["decision"].get("type") != "approve":
            return False
        remember: Mapping[str, Any] = given.get("remember") or {}
        self._keep(rule["rule"], remember.get("scope"))
        return True

    async def ask_about_file(self, name: str) -> bool:
        """Ask whether the model may read a file that was attached and looks like a secret."""
        details = "If you do not agree, your message is sent without it."
        title = f"is to get {one_line(name)}, which looks like it holds secrets"
        given = await self._ask("ask", _about_no_call(FILE, title, details))
        return given["decision"].get("type") == "approve"

    def take(self, ask: str, value: Any) -> None:
        """Take what the person answered; an answer to what no longer waits is dropped."""
        if self._open and self._open[0] == ask and not self._open[1].done():
            self._open[1].set_result(value)

    def preview(self, ask: str, text: str) -> None:
        """Show the call that waits as the person has edited it."""
        if not (self._shown and self._open and self._open[0] == ask):
            return
        request, agent = self._shown
        try:
            self._edited = apply_edit(request, text, self._policy)
        except ValueError as error:
            self._say("notice", {"text": f"Not taken: {one_line(str(error))}"})
        else:
            self._say("ask", {"id": ask, **self._describe(self._edited, agent), "edited": True})

    async def _decide(self, request: ApprovalRequest, agent: str | None) -> Decision:
        unasked = decision_by(self._policy, request)
        if unasked is not None:
            self._report("", request, unasked, "mode")
            return unasked
        self._shown, self._edited = (request, agent), None
        try:
            given = await self._ask("ask", {**self._describe(request, agent), "edited": False})
        finally:
            self._shown = None
        made: Decision = given["decision"]
        if made.get("type") == "approve" and (remember := given.get("remember")):
            self._remember(self._edited or request, remember)
        if self._edited is not None and made.get("type") == "approve":
            made = {"type": "edit", "edited_action": {"name": request.name, "args": dict(self._edited.args)}}
        seen = self.approved if made.get("type") in ("approve", "edit") else self.answered
        seen.add(request.tool_call_id)
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
        async with self._one_by_one:
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

    def _remember(self, request: ApprovalRequest, remember: Mapping[str, Any]) -> None:
        """Keep a rule, one of those that the question offered."""
        offered = self._policy.rules_for(request)
        rule = next((each for each in offered if each.rule == remember.get("rule")), None)
        if rule is not None and remember.get("scope") in SCOPES:
            self._keep(rule.rule, remember["scope"])

    def _keep(self, rule: str, wanted: object) -> None:
        scope: Scope | None = next((each for each in SCOPES if each == wanted), None)
        try:
            self._policy.remember(rule, scope or "session")
        except (OSError, ValueError) as error:
            self._say("notice", {"text": f"The rule was not kept for later: {one_line(str(error))}"})

    def _describe(self, request: ApprovalRequest, agent: str | None) -> dict[str, Any]:
        question = make_question(request, self._policy)
        return {
            "agent": None if agent is None else one_line(agent),
            "name": request.name,
            "call_id": request.tool_call_id,
            "line": call_line(request.name, request.args, directory=str(self._policy.directory)),
            "title": question.title,
            "details": [*question.details],
            "language": question.language,
            "choices": [*question.choices],
            "edit": None if question.edit is None else asdict(question.edit),
            "rules": [{"rule": each.rule, "label": each.label} for each in question.rules],
        }


def _about_no_call(name: str, title: str, details: str) -> dict[str, Any]:
    return {
        "agent": None,
        "name": name,
        "call_id": None,
        "line": None,
        "title": title,
        "details": [details],
        "language": "text",
        "choices": ["approve", "reject"],
        "edit": None,
        "rules": [],
        "edited": False,
    }


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

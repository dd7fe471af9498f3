"""Ask the person, through the screen, about calls that wait and about what tools want to know."""

from __future__ import annotations

import json
from asyncio import Future, Lock, get_running_loop
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

from langgraph.types import Command

from deepagents.events import ApprovalNeeded, ApprovalRequest, QuestionAsked
from deepagents_cli import protocol
from deepagents_cli.approval.policy import Policy
from deepagents_cli.approval.questions import Decision, apply_edit, decision_by, make_question
from deepagents_cli.session.display.lines import call_line
from deepagents_cli.session.threads.driver import Driver, Waiting
from deepagents_cli.session.turns.elicitation import ELICITATION, NotAnswered, answer_server
from deepagents_cli.session.turns.steering import PLAN
from deepagents_cli.session.workplace.editor import Editor
from deepagents_cli.text import clean, one_line
from deepagents_cli.values import Mode, Scope

Say: TypeAlias = Callable[[protocol.ToScreen], None]

_PLAN_CHOICES: Final = (
    protocol.Choice("ask", "Carry it out, asking", "you approve each change"),
    protocol.Choice("auto", "Carry it out", "edits and confined commands need no approval"),
    protocol.Choice("plan", "Keep planning", "or type what is to be different"),
)


class Asking:
    """Decides about what waits: by the policy, else by asking one after the other."""

    def __init__(
        self, say: Say, policy: Policy, set_mode: Callable[[Mode], None], editor: Editor | None = None
    ) -> None:
        self._say = say
        self._policy = policy
        self._set_mode = set_mode
        self._editor = editor
        self._one_by_one = Lock()
        self._open: tuple[str, Future[protocol.Decide | protocol.Answer]] | None = None
        self._shown: tuple[ApprovalRequest, str | None] | None = None
        self._edited: ApprovalRequest | None = None
        self._asked = 0
        self.approved: set[str | None] = set()
        """The ids of the calls that the person let run, having seen them."""
        self.answered: set[str | None] = set()
        """The ids of the calls in whose place the person gave a reason or a result."""

    @property
    def is_open(self) -> bool:
        """Whether the person is asked something."""
        return self._open is not None

    async def resume(self, driver: Driver, waiting: Sequence[Waiting]) -> Command[Any]:
        """Ask about all that waits; return what goes on with the answers."""
        decided: list[tuple[ApprovalRequest, Decision]] = []
        answers: dict[str, Any] = {}
        for each in waiting:
            if isinstance(each, ApprovalNeeded):
                decided += [(asked, await self._decide(asked, each.agent)) for asked in each.requests]
            else:
                answers[each.interrupt_id] = await self._answer(each)
        return Command(resume={**driver.answers(decided), **answers})

    async def _answer(self, asked: QuestionAsked) -> Any:
        """Return the answer to what a tool asks."""
        question = asked.question
        plan: Mapping[str, Any] = cast("Mapping[str, Any]", question) if isinstance(question, Mapping) else {}
        if plan.get("type") == PLAN:
            return await self._approve_plan(str(plan.get("plan")), asked.agent)
        if plan.get("type") == ELICITATION:
            who = f"The MCP server {one_line(str(plan.get('server')))}"
            who += f", called by {one_line(asked.agent)}," if asked.agent else ""

            async def ask(text: str, choices: Sequence[protocol.Choice], form: Any = None) -> Any:
                number, text = self._number(), clean(text)
                question = protocol.Question(number, who, text, choices, can_cancel=True, form=form)
                return await self._ask_for_text(question)

            return await answer_server(plan, ask, has_forms=bool(self._editor and self._editor.has_forms))
        text = question if isinstance(question, str) else json.dumps(question, default=str, indent=2)
        return await self._ask_for_text(protocol.Question(self._number(), asked.agent, clean(text)))

    async def ask_about_host(self, host: str) -> bool:
        """Ask whether commands may reach a host from now on; return the answer."""
        rule = f"host: {host}"
        title = f"wants its commands to reach {host}"
        details = "A command was kept from it. If you agree, commands reach it in this session."
        given = await self._ask_about_no_call(title, details, {rule: f"commands reach {host}"})
        agreed = given.decision == "approve"
        if agreed:
            self._keep(rule, given.scope)
        return agreed

    async def ask_about_file(self, name: str) -> bool:
        """Ask whether the model may read a file that was attached and looks like a secret."""
        details = "If you do not agree, your message is sent without it."
        title = f"is to get {one_line(name)}, which looks like it holds secrets"
        return (await self._ask_about_no_call(title, details)).decision == "approve"

    def take(self, message: protocol.Decide | protocol.Answer | protocol.Preview) -> None:
        """Take what the person answered or edited; what answers no question that waits is dropped."""
        if self._open is None or self._open[0] != message.ask or self._open[1].done():
            return
        if not isinstance(message, protocol.Preview):
            self._open[1].set_result(message)
        elif self._shown:
            self._show_edited(message, *self._shown)

    def _show_edited(self, message: protocol.Preview, request: ApprovalRequest, agent: str | None) -> None:
        try:
            self._edited = apply_edit(request, message.text, self._policy)
        except ValueError as error:
            self._say(protocol.Notice(f"Not taken: {one_line(str(error))}"))
        else:
            self._say(self._describe(message.ask, self._edited, agent))

    async def _decide(self, request: ApprovalRequest, agent: str | None) -> Decision:
        unasked = decision_by(self._policy, request)
        if unasked is not None:
            return unasked
        self._shown, self._edited = (request, agent), None
        try:
            given: protocol.Decide = await self._ask(self._describe(self._number(), request, agent))
        finally:
            self._shown = None
        made = self._made(given, request)
        seen = self.approved if given.decision == "approve" else self.answered
        seen.add(request.tool_call_id)
        return made

    def _made(self, given: protocol.Decide, request: ApprovalRequest) -> Decision:
        """Return the decision for the agent, and keep the rule that was chosen with it."""
        if given.decision != "approve":
            reason = {"message": given.message} if given.message else {}
            # No person said this, so the model must not read that one did.
            return {"type": given.decision, **reason, **({"verbatim": True} if given.unasked else {})}
        facts = self._policy.facts_of(self._edited or request)
        if given.rule in self._policy.offers(facts):
            self._keep(given.rule, given.scope)
        if self._edited is None:
            return {"type": "approve"}
        return {"type": "edit", "edited_action": {"name": request.name, "args": dict(self._edited.args)}}

    async def _approve_plan(self, plan: str, agent: str | None) -> str:
        match await self._ask_for_text(
            protocol.Question(self._number(), agent, clean(plan), _PLAN_CHOICES, is_plan=True)
        ):
            case "ask" | "auto" as mode:
                self._set_mode(mode)
                return "The person approves the plan. Plan mode is over: carry it out now."
            case "plan" | "":
                return "The person wants to go on planning. Ask what is missing, or look further."
            case wish:
                return f"The person does not approve the plan yet. They say: {wish}"

    async def _ask_for_text(self, question: protocol.Question) -> Any:
        answer: protocol.Answer = await self._ask(question)
        if answer.cancelled:
            raise NotAnswered(answer.text or "cancel")
        return answer.content if question.form else answer.text

    async def _ask_about_no_call(
        self, title: str, details: str, rules: Mapping[str, str] | None = None
    ) -> protocol.Decide:
        choices = ("approve", "reject")
        return await self._ask(protocol.Ask(self._number(), title, [details], choices, rules=rules or {}))

    def _number(self) -> str:
        self._asked += 1
        return f"ask-{self._asked}"

    async def _ask(self, message: protocol.Ask | protocol.Question) -> Any:
        """Ask, and return the `Decide` or the `Answer`."""
        async with self._one_by_one:
            future: Future[protocol.Decide | protocol.Answer] = get_running_loop().create_future()
            self._open = message.id, future
            try:
                self._say(message)
                return await future
            finally:
                self._open = None

    def _keep(self, rule: str, scope: Scope) -> None:
        try:
            self._policy.remember(rule, scope)
        except (OSError, ValueError) as error:
            self._say(protocol.Notice(f"The rule was not kept for later: {one_line(str(error))}"))

    def _describe(self, number: str, request: ApprovalRequest, agent: str | None) -> protocol.Ask:
        question = make_question(request, self._policy)
        return replace(
            question,
            id=number,
            changes=question.changes if self._editor else (),
            agent=None if agent is None else one_line(agent),
            line=call_line(request.name, request.args, directory=str(self._policy.directory)),
        )

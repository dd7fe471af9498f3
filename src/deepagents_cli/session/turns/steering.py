"""Let the person steer a turn: texts reach the agent at its next step, and so does a change of the mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.tools import BaseTool, tool
from langgraph.types import interrupt

from deepagents.middleware import is_from_person
from deepagents_cli.approval.verdicts import PLANNING
from deepagents_cli.project.agents import ModelHandler
from deepagents_cli.session.turns.inbox import MODEL, Inbox
from deepagents_cli.session.workplace.workplace import Workplace

PLAN: Final = "plan"
"""The kind of question with which `present_plan` asks, and the mode in which it is offered."""
NODE: Final = "Steering.before_model"
"""What hands texts over, right before the model."""
_PRESENTING: Final = (
    "Give it by calling present_plan, and ask before that what only the person can say. Where nothing is to "
    "be changed, just answer."
)
_ANSWERING: Final = "Your answer is the plan."


@tool
def present_plan(plan: str) -> str:
    """Show your plan to the person, who decides whether you carry it out. Give all of it, as Markdown."""
    return str(interrupt({"type": PLAN, "plan": plan}))


class Steering(AgentMiddleware[Any, Any, Any]):
    """Gives the agent what was typed, and each call of a model its rules, its facts, and the model meant.

    With `presents`, a person decides about plans; else the answer is the plan.
    """

    def __init__(self, inbox: Inbox, place: Workplace, *, presents: bool) -> None:
        super().__init__()
        self._inbox = inbox
        self._place = place
        self._presents = presents
        self.request: ModelRequest[Any] | None = None
        """What the model was asked last, for people who want to see what fills its context."""
        self.tools: Sequence[BaseTool] = [present_plan]

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Give the agent what was typed since its last step."""
        messages = self._inbox.hand_over()
        return {"messages": messages} if messages else None

    async def awrap_model_call(self, request: ModelRequest[Any], handler: ModelHandler) -> ModelResponse[Any]:
        """Ask the model, in plan mode with its rules; the mode may have changed since the last call."""
        is_planning = self._place.policy.mode == PLAN
        presents = is_planning and self._presents
        how = f"<mode>\n{PLANNING} {_PRESENTING if presents else _ANSWERING}\n</mode>" if is_planning else ""
        state = await self._place.repository.at_first()
        facts = f"Git state when this conversation began: {state}" if state else ""
        further = [*filter(None, [facts, how])]
        if further:
            request = request.override(system_message=_with(request.system_message, further))
        if not presents:
            others = [each for each in request.tools if getattr(each, "name", None) != present_plan.name]
            request = request.override(tools=others)
        self.request = request
        named = _find_named_model(request.messages)
        model = self._place.model_for(named) if named else None
        return await handler(request.override(model=model) if model else request)


def _with(message: SystemMessage | None, further: Sequence[str]) -> SystemMessage:
    blocks = message.content_blocks if message else []
    added: list[Any] = [{"type": "text", "text": f"\n\n{each}"} for each in further]
    return SystemMessage(content_blocks=[*blocks, *added])


def _find_named_model(messages: Sequence[BaseMessage]) -> str | None:
    """Return the model that the last text of the person names: a command from a file may have one."""
    texts = (each for each in reversed(messages) if is_from_person(each))
    last = next(texts, None)
    return last.additional_kwargs.get(MODEL) if last else None

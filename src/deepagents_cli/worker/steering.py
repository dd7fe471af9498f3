"""Let the person steer a turn: texts reach the agent at its next step, and so does a change of the mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, tool
from langgraph.types import interrupt

from deepagents_cli import policy

PLAN: Final = "plan"
"""The kind of question with which `present_plan` asks, and the mode in which it is offered."""
NODE: Final = "Steering.before_model"
"""What hands texts over, right before the model."""
_PLANNING: Final = (
    f"<mode>\n{policy.PLAN} Give it by calling present_plan, and ask before that what only the person can "
    "say. Where nothing is to be changed, just answer.\n</mode>"
)


@tool
def present_plan(plan: str) -> str:
    """Show your plan to the person, who decides whether you carry it out. Give all of it, as Markdown."""
    return str(interrupt({"type": PLAN, "plan": plan}))


class Steering(AgentMiddleware[Any, Any, Any]):
    """Adds what `hand_over` gives before each model call, and tells the agent when it is to plan only."""

    def __init__(self, hand_over: Callable[[], list[HumanMessage]], mode: Callable[[], str]) -> None:
        super().__init__()
        self._hand_over = hand_over
        self._mode = mode
        self.request: ModelRequest[Any] | None = None
        """What the model was asked last, for people who want to see what fills its context."""
        self.tools: Sequence[BaseTool] = [present_plan]

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Give the agent what was typed since its last step."""
        messages = self._hand_over()
        return {"messages": messages} if messages else None

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Ask the model, in plan mode with its rules; the mode may have changed since the last call."""
        self.request = request
        if self._mode() == PLAN:
            return await handler(request.override(system_message=_with_rules(request.system_message)))
        others = [each for each in request.tools if getattr(each, "name", None) != present_plan.name]
        return await handler(request.override(tools=others))


def _with_rules(message: SystemMessage | None) -> SystemMessage:
    blocks = message.content_blocks if message else []
    return SystemMessage(content_blocks=[*blocks, {"type": "text", "text": f"\n\n{_PLANNING}"}])

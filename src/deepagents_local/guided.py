"""Guide a small model through one step of a task: it is offered one tool after the other, nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import HumanMessage, ToolMessage

from deepagents.profiles import GeneralPurposeSubagentProfile, HarnessProfile, register_harness_profile
from deepagents_local.chat import ChatLocal

_PROVIDER = "local-guided"
_ASK_FOR_A_SENTENCE = "Say in one short sentence that it is done."

Request: TypeAlias = ModelRequest[Any]
Response: TypeAlias = ModelResponse[Any]


class _GuidedLocal(ChatLocal):
    # By its provider it finds a profile of its own: with `GuideTools` it may plan and run commands.
    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return {**super()._get_ls_params(stop, **kwargs), "ls_provider": _PROVIDER}


def guide(model: ChatLocal) -> BaseChatModel:
    """Return the same model for an agent that has `GuideTools`."""
    no_subagent = GeneralPurposeSubagentProfile(enabled=False)
    register_harness_profile(_PROVIDER, HarnessProfile(general_purpose_subagent=no_subagent))
    return _GuidedLocal(**{name: getattr(model, name) for name in ChatLocal.model_fields})


class GuideTools(AgentMiddleware[Any, Any, Any]):
    """Offer these tools in this order, each until a call of it has succeeded, then ask for a sentence.

    The first is called in any case. Of the conversation the model sees the last request alone.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = names

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Ask the model about the tool whose turn it is."""
        return handler(self._lead(request))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Ask the model about the tool whose turn it is."""
        return await handler(self._lead(request))

    def _lead(self, request: Request) -> Request:
        asked = max(
            index for index, message in enumerate(request.messages) if isinstance(message, HumanMessage)
        )
        recent = request.messages[asked:]
        done = {each.name for each in recent if isinstance(each, ToolMessage) and each.status == "success"}
        left = [name for name in self._names if name not in done][:1]
        tools = [each for each in request.tools if getattr(each, "name", None) in left]
        choice = left[0] if tools and not recent[1:] else None
        # Without a tool to call, a small model explains how one would do what it has just done.
        shown = recent if tools else [*recent, HumanMessage(_ASK_FOR_A_SENTENCE)]
        return request.override(messages=shown, tools=tools, tool_choice=choice, system_message=None)

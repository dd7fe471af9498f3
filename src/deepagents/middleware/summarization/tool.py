"""Give an agent the tool that compacts when the model asks for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolArg
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel

from deepagents import _models
from deepagents._text import describe_exception
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.middleware._base import BaseMiddleware, inner
from deepagents.middleware._requests import Request, Response, add_section
from deepagents.middleware.summarization.context import SummarizationState
from deepagents.middleware.summarization.middleware import (
    SummarizationMiddleware,
    create_summarization_middleware,
)
from deepagents.permissions import FilesystemPermission
from deepagents.tools._tool import Runtime, ToolOutput, ToolSpec, make_tool

COMPACT_NAME: Final = "compact_conversation"
_log = logging.getLogger(__name__)
_NOTHING: Final = "Nothing to compact yet"
_DESCRIPTION: Final = (
    "Summarize older messages to free context; they stay in an archive file. Use it when the conversation "
    "is long and you turn to an unrelated task, or have finished extracting or combining what you read. "
    "Takes no arguments."
)


class CompactConversationSchema(BaseModel):
    """`compact_conversation` takes nothing; LangChain injects a runtime only where there is a field."""

    runtime: Annotated[Any, InjectedToolArg] = None


class SummarizationToolMiddleware(BaseMiddleware):
    """Give an agent `compact_conversation`, which compacts by the settings of a SummarizationMiddleware.

    Args:
        summarization: whose settings, archive and memory the tool shares; it need not be in the same agent,
            but summaries are shown only where one is.
        system_prompt: a section for the system prompt; `None` for none.

    Raises:
        TypeError: when `system_prompt` is not text.
    """

    state_schema: type[Any] = SummarizationState
    transformers = SummarizationMiddleware.transformers

    def __init__(self, summarization: SummarizationMiddleware, *, system_prompt: str | None = None) -> None:
        super().__init__()
        if not isinstance(cast(object, system_prompt), str | None):
            raise TypeError(f"system_prompt must be str or None, got {system_prompt!r}")
        self.summarization = summarization
        self.system_prompt = system_prompt
        spec = ToolSpec(COMPACT_NAME, _DESCRIPTION, CompactConversationSchema, self._compact)
        self.tools = [make_tool(spec, lambda runtime: runtime)]

    @property
    def _summarization(self) -> SummarizationMiddleware:
        return self.summarization

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        return await inner(handler, add_section(request, self.system_prompt))

    async def _compact(self, runtime: Runtime) -> ToolOutput:
        if not _is_first(runtime):
            return ToolOutput(f"{_NOTHING}: the first call of this turn takes care of it.")
        try:
            done = await self.summarization.compact_now(runtime)
        except Exception as error:
            if isinstance(error, GraphBubbleUp):
                raise
            _log.warning("the compaction that the model asked for failed", exc_info=True)
            text = f"Compaction failed, and nothing has changed: {describe_exception(error)}"
            return ToolOutput(text, code="tool_failed")
        if done is None:
            return ToolOutput(f"{_NOTHING}: there is not enough in the conversation.")
        many, update = done
        return ToolOutput(f"Conversation compacted. Summarized {many} messages.", update=update)


def create_summarization_tool_middleware(
    model: str | BaseChatModel,
    backend: BACKEND_TYPES,
    *,
    system_prompt: str | None = None,
    permissions: Sequence[FilesystemPermission] = (),
) -> SummarizationToolMiddleware:
    """Make the tool with the settings that fit a model; `permissions` are the rules of its agent.

    Raises:
        UnknownModel: when a name names no model.
        TypeError: when `system_prompt` is not text.
    """
    summarization = create_summarization_middleware(
        _models.resolve_model(model), backend, permissions=permissions
    )
    return SummarizationToolMiddleware(summarization, system_prompt=system_prompt)


def _is_first(runtime: Runtime) -> bool:
    """Return whether this is the first call of its turn, not counting those that were refused."""
    messages = runtime.state["messages"]
    asked = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)
    calls = asked.tool_calls if asked is not None else []
    answered = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
    ids = [call["id"] for call in calls if call["name"] == COMPACT_NAME]
    open_ids = [each for each in ids if each not in answered]
    return runtime.tool_call_id not in open_ids[1:]

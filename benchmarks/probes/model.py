"""A chat model that writes one file a step and then ends; as cheap as a chat model can be."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

ERRAND = "Say hello."
_CONTENT = "A line of a note, as long as such lines are.\n" * 3


class WritingModel(BaseChatModel):
    """Call `write_file` with a new path each step, `steps` times, then answer; a new run starts again.

    With a `worker`, hand that subagent an errand instead, once.
    """

    steps: int = 0
    worker: str | None = None
    _written: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "writing"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages[-1]))])

    def _next(self, last: BaseMessage) -> AIMessage:
        if last.type == "human" and last.text == ERRAND:
            return AIMessage("Hello.")
        if last.type == "human" and self.worker:
            return tool_call("task", "errand", description=ERRAND, subagent_type=self.worker)
        if last.type == "human":
            self._written = 0
        if self._written >= self.steps:
            return AIMessage("Done.")
        self._written += 1
        path = f"/notes/{self._written}.md"
        return tool_call("write_file", f"call_{self._written}", file_path=path, content=_CONTENT)


def tool_call(tool: str, call_id: str, **arguments: str) -> AIMessage:
    """Say: call one tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": call_id, "type": "tool_call"}])

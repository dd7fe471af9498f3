"""Stand for a model whose key is missing, so that an agent with it can be built and imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable

from deepagents.errors import MissingKey


class KeylessModel(BaseChatModel):
    """A model that raises `MissingKey` when it is asked."""

    model_name: str
    provider: str
    reason: str

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **options: Any
    ) -> Runnable[Any, AIMessage]:
        """Take tools, which it never calls."""
        return self.bind()

    @property
    def _llm_type(self) -> str:
        return "keyless"

    def _get_ls_params(self, stop: list[str] | None = None, **options: Any) -> LangSmithParams:
        return LangSmithParams(ls_provider=self.provider, ls_model_name=self.model_name, ls_model_type="chat")

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        raise MissingKey(self.reason, self.provider, self.model_name)

"""Stand in for a model where none can be used yet, so that a conversation opens and `/model` picks one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from deepagents_cli.errors import CommandError
from deepagents_cli.models_here import find_models

LABEL: Final = "no model"


class NoModel(BaseChatModel):
    """Answers nothing: each call fails with what is missing."""

    missing: str

    @property
    def _llm_type(self) -> str:
        return LABEL

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Take tools that nothing will call."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise CommandError(self.missing)


def say_missing(error: Exception, *, named: bool) -> str:
    """Say why there is no model; where none was named, with what those that are known here need."""
    if named:
        return f"{str(error).rstrip('.')}. Choose a model with /model"
    needs = dict.fromkeys(each.missing for each in find_models() if each.missing)
    return f"No model can be used yet ({', or '.join(needs)}). Then choose one with /model"

"""A chat model that asks another process, over a Unix socket. It is the same in every arm."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool


class NoMoreTurns(Exception):
    """An attempt has used up its calls of the model."""


class ModelFailed(Exception):
    """The model's process could not answer."""


FAILURES: Mapping[str, type[Exception]] = {
    "turns": NoMoreTurns,
    "context": ContextOverflowError,
    "model": ModelFailed,
}


class SocketModel(BaseChatModel):
    """Asks the process behind `path` on behalf of one attempt."""

    path: str
    attempt: str
    seed: int
    provider: str
    model_name: str

    @classmethod
    def connect(cls, path: str, attempt: str, seed: int, provider: str = "") -> SocketModel:
        """Make a model of what the other process says about itself, under another `provider` if named."""
        about = ask(path, {"about": True})
        return cls(
            path=path,
            attempt=attempt,
            seed=seed,
            provider=provider or about["provider"],
            model_name=about["name"],
            profile=about["profile"],
        )

    @property
    def _llm_type(self) -> str:
        return self.provider

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        known = super()._get_ls_params(stop, **kwargs)
        return {**known, "ls_provider": self.provider, "ls_model_name": self.model_name}

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Any:
        """Offer tools by their schemas."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked = {
            "attempt": self.attempt,
            "seed": self.seed,
            "messages": [message_to_dict(message) for message in messages],
            "tools": kwargs.get("tools", []),
            "tool_choice": kwargs.get("tool_choice"),
        }
        answer = ask(self.path, asked)
        if failed := answer.get("failed"):
            raise FAILURES[failed](answer["why"])
        (message,) = messages_from_dict([answer["message"]])
        return ChatResult(generations=[ChatGeneration(message=message)])


def ask(path: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Send one line and return the answer to it."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        line.sendall(json.dumps(asked, default=str).encode() + b"\n")
        with line.makefile("rb") as answers:
            return json.loads(answers.readline())

"""Register the local model with the library; the entry point of this package."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from langchain_core.language_models import BaseChatModel

from deepagents import middleware
from deepagents.models import ModelProvider, register_model_provider
from deepagents.profiles import GeneralPurposeSubagentProfile, HarnessProfile, register_harness_profile
from deepagents_local.catalog import PROVIDER

# A small model does better with few tools and few words, and must not run commands.
PROFILE = HarnessProfile(
    base_system_prompt="You change files with tools. Do only what the task asks.",
    excluded_tools=frozenset({"execute", "task", "write_todos", "read_todos", "delete"}),
    excluded_middleware=frozenset({"TodoListMiddleware"}),
    # It often ends a run with the text of a failure, or with what it means to do next.
    extra_middleware=lambda: [middleware.FinishCheckMiddleware()],
    general_purpose_subagent=GeneralPurposeSubagentProfile(enabled=False),
)


def register() -> None:
    """Make `local:NAME` a model in this process, with its profile."""
    hint = "install the extra `local` and run `deepagents models pull` for a small model in this process"
    register_model_provider(PROVIDER, ModelProvider(_make, _is_ready, hint))
    register_harness_profile(PROVIDER, PROFILE)


def _make(name: str, **arguments: Any) -> BaseChatModel:
    from deepagents_local.chat import ChatLocal
    from deepagents_local.llama import need_engine

    # Before a task begins, and not at the first call of the model.
    need_engine()
    return ChatLocal(**{"model": name} if name else {}, **arguments)


def _is_ready() -> bool:
    from deepagents_local.weights import find_weights

    return find_spec("xllamacpp") is not None and bool(find_weights())

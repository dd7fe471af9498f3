"""The documented parameters and members, one by one."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware

from deepagents import CompiledSubAgent, DeepAgentState, SubAgent, SubAgentMiddleware, create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware, FilesystemState
from deepagents.middleware.subagents import TASK_SYSTEM_PROMPT
from deepagents.testing import ScriptedModel

POSITIONAL = ["model", "tools"]
CREATE: dict[str, Any] = {
    "model": None,
    "tools": None,
    "system_prompt": None,
    "middleware": (),
    "subagents": None,
    "skills": None,
    "memory": None,
    "permissions": None,
    "backend": None,
    "interrupt_on": None,
    "response_format": None,
    "state_schema": None,
    "context_schema": None,
    "checkpointer": None,
    "store": None,
    "debug": False,
    "name": None,
    "cache": None,
}
FILES: dict[str, Any] = {
    "backend": None,
    "system_prompt": None,
    "custom_tool_descriptions": None,
    "tool_token_limit_before_evict": 20_000,
    "human_message_token_limit_before_evict": 50_000,
    "max_execute_timeout": 3600,
    "grep_max_count": 1000,
    "tools": None,
    "offload_binary_content": False,
    "permissions": None,
    "_permissions": None,
}
OUR_OWN_FOR_FILES = {"read_format": "numbered", "backend_timeout": 60.0}
SUBAGENTS: dict[str, Any] = {
    "backend": None,
    "subagents": None,
    "system_prompt": TASK_SYSTEM_PROMPT,
    "task_description": None,
    "private_state_keys": None,
    "state_schema": None,
}
OLDER_FOR_SUBAGENTS: dict[str, Any] = {
    "default_model": ScriptedModel(),
    "default_tools": None,
    "default_middleware": None,
    "default_interrupt_on": None,
    "general_purpose_agent": True,
}
HOOKS = [
    f"{a}{hook}"
    for hook in (
        "before_agent",
        "before_model",
        "after_model",
        "after_agent",
        "wrap_model_call",
        "wrap_tool_call",
    )
    for a in ("", "a")
]


def parameters(target: Callable[..., Any], *, positional: bool = False) -> dict[str, Any]:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if positional else inspect.Parameter.KEYWORD_ONLY
    return {
        each.name: each.default for each in inspect.signature(target).parameters.values() if each.kind is kind
    }


def test_create_deep_agent_takes_the_documented_parameters() -> None:
    positional = parameters(create_deep_agent, positional=True)

    assert list(positional) == POSITIONAL
    taken = {**positional, **parameters(create_deep_agent)}
    assert list(taken.items())[: len(CREATE)] == list(CREATE.items())


def test_the_file_middleware_takes_the_documented_parameters() -> None:
    assert parameters(FilesystemMiddleware) == {**FILES, **OUR_OWN_FOR_FILES}
    assert parameters(FilesystemMiddleware, positional=True) == {}


def test_the_subagent_middleware_takes_the_documented_parameters() -> None:
    assert parameters(SubAgentMiddleware) == SUBAGENTS
    assert parameters(SubAgentMiddleware, positional=True) == {}


def test_the_subagent_middleware_takes_the_older_parameters() -> None:
    with pytest.warns(DeprecationWarning, match="default_interrupt_on"):
        middleware = SubAgentMiddleware(subagents=None, task_description=None, **OLDER_FOR_SUBAGENTS)

    assert middleware.subagent_names == {"general-purpose"}


def test_all_annotations_can_be_resolved() -> None:
    for target in (create_deep_agent, FilesystemMiddleware.__init__, SubAgentMiddleware.__init__):
        assert typing.get_type_hints(target)


@pytest.mark.parametrize("kind", [FilesystemMiddleware, SubAgentMiddleware])
def test_the_documented_members_are_there(kind: type[AgentMiddleware[Any, Any, Any]]) -> None:
    assert issubclass(kind, AgentMiddleware)
    assert [hook for hook in HOOKS if not callable(getattr(kind, hook, None))] == []


def test_the_file_middleware_tells_its_name_state_and_tools() -> None:
    middleware = FilesystemMiddleware()

    assert middleware.name == "FilesystemMiddleware"
    assert FilesystemMiddleware.state_schema is FilesystemState
    assert middleware.state_schema is FilesystemState
    assert isinstance(middleware.backend, StateBackend)
    assert middleware.tool_token_limit_before_evict == 20_000
    assert [tool.name for tool in middleware.tools] == [
        *("ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute")
    ]


def test_the_subagent_middleware_tells_its_name_state_and_tool() -> None:
    spec: SubAgent = {"name": "a", "description": "d", "model": ScriptedModel(), "tools": []}
    middleware = SubAgentMiddleware(subagents=[spec])

    assert middleware.name == "SubAgentMiddleware"
    assert "messages" in middleware.state_schema.__annotations__
    assert [tool.name for tool in middleware.tools] == ["task"]


def test_the_keys_of_a_subagent() -> None:
    optional = {"system_prompt", "tools", "model", "middleware", "interrupt_on", "response_format"}

    assert SubAgent.__required_keys__ == {"name", "description"}
    assert optional <= SubAgent.__optional_keys__


def test_the_keys_of_a_compiled_subagent() -> None:
    assert CompiledSubAgent.__required_keys__ == {"name", "description", "runnable"}


def test_the_state_of_an_agent_extends_langchains() -> None:
    assert {"messages", "jump_to", "structured_response"} <= DeepAgentState.__annotations__.keys()


@pytest.mark.parametrize("off", [None, 0])
def test_what_is_not_there_yet_can_be_switched_off(off: int | None) -> None:
    assert FilesystemMiddleware(human_message_token_limit_before_evict=off, permissions=None)

"""The documented parameters and members, one by one."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast

import pytest
from langchain.agents.middleware import AgentMiddleware

from deepagents import CompiledSubAgent, DeepAgentState, SubAgent, SubAgentMiddleware, create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware, FilesystemState
from deepagents.testing import ScriptedModel
from tests.compat.documented_signatures import OUR_OWN, SIGNATURES
from tests.tools.names import FILE_TOOLS

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


TAKING_MANY = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def documented(signature: str) -> dict[str, inspect.Parameter]:
    """Read a signature of the table."""
    made: dict[str, Any] = {}
    exec(f"def told{signature}: ...", made)
    return dict(inspect.signature(made["told"]).parameters)


def found(target: str) -> dict[str, inspect.Parameter]:
    """Read the signature of what is at `module:name`, or of how a class is made."""
    module, _, name = target.partition(":")
    value = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return dict(inspect.signature(cast("Callable[..., Any]", value)).parameters)


def differences(told: dict[str, inspect.Parameter], here: dict[str, inspect.Parameter]) -> Iterator[str]:
    """Say where a call that the documents allow would fail here, or mean something else."""
    asked = [name for name, each in told.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    given = [name for name, each in here.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    if asked != given[: len(asked)]:
        yield f"by position {asked}, here {given}"
    yield from (said for name, each in told.items() for said in difference(name, each, here))
    for name, each in here.items():
        if name not in told and each.default is each.empty and each.kind not in TAKING_MANY:
            yield f"{name} is needed here"


def difference(name: str, each: inspect.Parameter, here: dict[str, inspect.Parameter]) -> Iterator[str]:
    """Say what is different about one parameter."""
    if each.kind in TAKING_MANY:
        if each.kind not in [other.kind for other in here.values()]:
            yield f"no {each}"
    elif name not in here:
        yield f"no {name}"
    elif each.default is not ... and each.default != here[name].default:
        yield f"{name}: documented {each.default!r}, here {here[name].default!r}"
    elif each.default is ... and here[name].default is each.empty:
        yield f"{name} has no default"


def test_a_callable_takes_the_documented_parameters() -> None:
    wrong = {
        target: list(differences(documented(signature), found(target)))
        for target, signature in SIGNATURES.items()
    }

    assert {target: each for target, each in wrong.items() if each} == {}


def test_what_is_our_own_is_given_by_name_and_stands_last() -> None:
    for target, names in OUR_OWN.items():
        told, here = documented(SIGNATURES[target]), found(target)
        own = {name: each.kind for name, each in here.items() if name not in told}

        assert (target, own) == (target, dict.fromkeys(names.split(), inspect.Parameter.KEYWORD_ONLY))


def test_each_kind_of_difference_is_found() -> None:
    told = documented("(a, b=1, *, c, d=..., e=2, **more)")

    assert list(differences(told, told)) == []
    assert list(differences(told, documented("(b=2, a=1, *, d, f, g=1)"))) == [
        "by position ['a', 'b'], here ['b', 'a']",
        "a: documented <class 'inspect._empty'>, here 1",
        "b: documented 1, here 2",
        "no c",
        "d has no default",
        "no e",
        "no **more",
        "f is needed here",
    ]


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
    assert [tool.name for tool in middleware.tools] == [*FILE_TOOLS, "execute"]


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

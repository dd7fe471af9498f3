"""What cannot be in the spec of a subagent, said before anything is made of it."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Final, Union, cast, get_origin, get_type_hints

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from deepagents.errors import ConfigError
from deepagents.middleware._base import Middleware
from deepagents.middleware.approval import validate_interrupt_on

_MODES: Final = (None, "isolated", "fork")
_KINDS: Final[Sequence[tuple[str, type[Any], str]]] = (
    ("system_prompt", str, "text"),
    ("interrupt_on", Mapping, "a mapping from names of tools"),
)
LISTS: Final = ("tools", "middleware", "skills", "permissions")
_FORMATS: Final = (dict, AutoStrategy, ProviderStrategy, ToolStrategy)
_READ_ALREADY: Final = ("deepagents.", "langchain.")
_UNIONS: Final = (Union, types.UnionType)


def faults(spec: Mapping[str, Any]) -> Iterator[str]:
    """Say what cannot be."""
    if spec.get("mode") not in _MODES:
        yield f"mode is 'isolated' or 'fork', got {spec['mode']!r}"
    if spec.get("mode") == "fork" and spec.get("skills"):
        yield "a fork has the skills of the agent that calls it, so it may not have skills of its own"
    runnable = spec.get("runnable")
    if "runnable" in spec and not (hasattr(runnable, "invoke") and hasattr(runnable, "with_config")):
        yield f"runnable must be a Runnable, such as a compiled graph, got {runnable!r}"
    yield from _faults_of_kind(spec)


def _faults_of_kind(spec: Mapping[str, Any]) -> Iterator[str]:
    for key in LISTS:
        value = spec.get(key)
        if value is not None and (isinstance(value, str | Mapping) or not isinstance(value, Iterable)):
            yield f"{key} must be a list, got {value!r}"
    for key, kind, said in _KINDS:
        if not isinstance(spec.get(key), kind | None):
            yield f"{key} must be {said}, got {spec[key]!r}"
    if isinstance(spec.get("interrupt_on"), Mapping):
        yield from _faults_of_entries(spec["interrupt_on"])
    for each in spec.get("middleware") or ():
        yield from _faults_of_middleware(each)
    for each in spec.get("tools") or ():
        yield from _faults_of_tool(each)
    yield from _faults_of_format(spec.get("response_format"))


def _faults_of_entries(interrupt_on: object) -> Iterator[str]:
    try:
        validate_interrupt_on(interrupt_on)
    except (ConfigError, TypeError) as error:
        yield str(error)


def _faults_of_middleware(given: object) -> Iterator[str]:
    if not isinstance(given, AgentMiddleware):
        yield f"middleware must hold middleware objects, got {given!r}"
        return
    brought = cast("Middleware", given)
    schema = brought.state_schema
    if schema.__module__.startswith(_READ_ALREADY):
        return
    try:
        get_type_hints(schema, include_extras=True)
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        yield f"the state_schema of middleware {brought.name!r} cannot be read: {error}"


def _faults_of_tool(given: object) -> Iterator[str]:
    """Say why a model could not be told of a tool; its schema is made later, where it is used."""
    if isinstance(given, BaseTool | Mapping):
        return
    name = getattr(given, "__name__", None)
    if not callable(given) or name is None:
        yield f"tools must hold LangChain tools, functions or dicts, got {given!r}"
    elif not given.__doc__ and not isinstance(given, type):
        yield f"the function {name!r} in tools needs a docstring, which tells a model what it is for"


def _faults_of_format(given: Any) -> Iterator[str]:
    known = given is None or isinstance(given, _FORMATS) or get_origin(given) in _UNIONS
    if not known and not (isinstance(given, type) and _describes_fields(given)):
        yield (
            "response_format must be a pydantic model, a dataclass, a TypedDict, a JSON schema or a strategy "
            f"of LangChain's, got {given!r}"
        )


def _describes_fields(kind: type[Any]) -> bool:
    return issubclass(kind, BaseModel) or is_dataclass(kind) or hasattr(kind, "__required_keys__")

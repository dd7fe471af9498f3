"""Validate the arguments of `create_deep_agent`: each message names the value and what to write instead."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, ParamSpec, TypeVar, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from deepagents._deprecation import did_you_mean
from deepagents.errors import ConfigError
from deepagents.limits import Limits
from deepagents.models.traits import is_chat_model
from deepagents.tools import FILE_TOOLS

_STRATEGIES: Final = (ToolStrategy, ProviderStrategy, AutoStrategy)
P = ParamSpec("P")
T = TypeVar("T")

_MODEL_SETTINGS: Final = "set it on a chat model: model=init_chat_model('provider:name', {name}=...)"
_WRITE_INSTEAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        "instructions": "write system_prompt=",
        "prompt": "write system_prompt=",
        "config_schema": "write context_schema=",
        **dict.fromkeys(("max_tokens", "temperature", "timeout", "api_key", "base_url"), _MODEL_SETTINGS),
    }
)


def explain_unknown_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function name the nearest parameter when it is called with one that it does not have."""
    known = inspect.signature(function).parameters

    @wraps(function)
    def check_and_call(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known:
                raise TypeError(f"{function.__name__} has no parameter {name!r}{_hint(name, known)}")
        return function(*args, **kwargs)

    return check_and_call


def _hint(name: str, known: Iterable[str]) -> str:
    if name in _WRITE_INSTEAD:
        return f"; {_WRITE_INSTEAD[name].format(name=name)}"
    return did_you_mean(name, known)


def check_tools(given: Any) -> tuple[Any, ...]:
    """Return tools as a tuple.

    Raises:
        ConfigError: for anything but a list of tools, functions and provider dicts.
    """
    tools = check_list("tools", given)
    for tool in tools:
        if isinstance(tool, str):
            built_in = tool in {spec.name for spec in FILE_TOOLS}
            way_out = (
                "it is built in, leave it out" if built_in else "give the tool itself; some are built in"
            )
            raise ConfigError(f"tools holds {tool!r}, which is not a tool; {way_out}")
        if not callable(tool) and not isinstance(tool, BaseTool | dict):
            raise ConfigError(
                f"tools holds {tool!r}, which is not a tool; give a LangChain tool, a function with a "
                "docstring or a provider's dict"
            )
    return tools


def check_middleware(given: Any) -> tuple[Any, ...]:
    """Return middleware as a tuple.

    Raises:
        ConfigError: for anything but a list of instances.
    """
    middleware = check_list("middleware", given)
    for each in middleware:
        if isinstance(each, type):
            raise ConfigError(
                f"middleware holds the class {each.__name__}; give an instance: {each.__name__}(...)"
            )
        if not isinstance(each, AgentMiddleware):
            raise ConfigError(f"middleware holds {each!r}, which is not an AgentMiddleware")
    return middleware


def check_list(name: str, given: Any) -> tuple[Any, ...]:
    """Return a list, or anything else that can be gone through once, as a tuple.

    Raises:
        ConfigError: for a single value.
    """
    if given is None:
        return ()
    # Text and mappings can be gone through too, and would be taken apart into letters or keys.
    single = isinstance(given, str | bytes | Mapping | BaseTool | AgentMiddleware) or callable(given)
    if single or not isinstance(given, Iterable):
        raise ConfigError(f"{name} must be a list, got {given!r}; write {name}=[{_show_argument(given)}]")
    return tuple(cast("Iterable[Any]", given))


def _show_argument(given: Any) -> str:
    if isinstance(given, AgentMiddleware):
        return f"{type(cast(Any, given)).__name__}(...)"
    return getattr(given, "__name__", None) or repr(given)


def check_values(*, system_prompt: Any, limits: Any, name: Any, response_format: Any) -> None:
    """Check the types of single values.

    Raises:
        ConfigError: with the value and what to write instead.
    """
    if not isinstance(system_prompt, str | SystemMessage | None):
        raise ConfigError(
            f"system_prompt must be a string or a SystemMessage, got {system_prompt!r}; join the parts to "
            "one text"
        )
    if not isinstance(limits, Limits | None):
        settings = cast("Mapping[str, Any]", limits).items() if isinstance(limits, Mapping) else ()
        written = ", ".join(f"{key}={value!r}" for key, value in settings) or "..."
        raise ConfigError(f"limits must be a Limits, got {limits!r}; write limits=Limits({written})")
    if not isinstance(name, str | None):
        raise ConfigError(f"name must be a string, got {name!r}")
    kind = cast("type[Any]", type(response_format))
    if issubclass(kind, BaseModel) or (is_dataclass(kind) and not isinstance(response_format, _STRATEGIES)):
        raise ConfigError(
            f"response_format is an instance, {response_format!r}; give the class: "
            f"response_format={kind.__name__}"
        )


RETRIES_VARIABLE: Final = "DEEPAGENTS_MODEL_RETRIES"


def check_retries(given: Any) -> int:
    """Return how often a failed call of a model is made again; `None` leaves it to the environment.

    Raises:
        ConfigError: for anything but a whole number of 0 or more.
    """
    if given is None:
        named = os.environ.get(RETRIES_VARIABLE) or "0"
        if not named.isdecimal():
            raise ConfigError(f"{RETRIES_VARIABLE} must be a whole number of 0 or more, got {named!r}")
        return int(named)
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ConfigError(f"model_retries must be a whole number of 0 or more, got {given!r}")
    return given


def check_fallbacks(given: Any) -> list[Any]:
    """Return the models to ask when one has failed.

    Raises:
        ConfigError: for a single model.
    """
    # A chat model can be gone through: it yields its fields.
    if isinstance(given, str) or is_chat_model(given) or not isinstance(given, Iterable):
        raise ConfigError(
            f"fallback_models must be a list of models or names, got {given!r}; write [...] around a single "
            "one, and [] for none"
        )
    return [*cast("Iterable[Any]", given)]


def open_mcp(given: Any) -> Any:
    """Return the `MCPServers` that are meant; `None` for none. Without any, none of their code is imported.

    Raises:
        ConfigError: for servers that cannot be, naming the entry.
    """
    if given is None or given == {}:
        return None
    return import_module("deepagents.mcp.servers").open_servers(given)


def check_file_history(given: Any) -> Any:
    """Return a history of files.

    Raises:
        ConfigError: for anything else.
    """
    # By what it can do: to import the class costs time, and most agents have none.
    if given is not None and (isinstance(given, type) or not hasattr(given, "make_middleware")):
        raise ConfigError(f"file_history must be a FileHistory, got {given!r}; write FileHistory(directory)")
    return given


def check_backend(given: Any) -> None:
    """Check a backend; a class that takes the runtime, as earlier versions gave it, is a factory.

    Raises:
        ConfigError: for another class, and for what is neither a backend nor makes one.
    """
    # A class without `capabilities` is not a backend, so it may be a factory that each run calls.
    if isinstance(given, type) and hasattr(given, "capabilities"):
        first = next(iter(inspect.signature(given).parameters), "")
        if first != "runtime":
            example = "root_dir=..." if first == "root_dir" else "..."
            raise ConfigError(
                f"backend is the class {given.__name__}; give an instance: {given.__name__}({example})"
            )
    reads = ("read", "aread", "download_files", "adownload_files")
    if not callable(cast(object, given)) and not any(hasattr(given, name) for name in reads):
        raise ConfigError(
            f"backend must be a BackendProtocol, got {given!r}; for files on disk pass "
            "FilesystemBackend(root_dir=...)"
        )

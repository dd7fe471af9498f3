"""Agents that plan, work on files, delegate and last. Names load on first use, so that importing is cheap."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deepagents._version import __version__

if TYPE_CHECKING:
    from deepagents._state import DeepAgentState
    from deepagents.graph import create_deep_agent
    from deepagents.middleware.filesystem import FilesystemMiddleware, FsToolName
    from deepagents.middleware.subagents import CompiledSubAgent, SubAgent, SubAgentMiddleware
    from deepagents.profiles import GeneralPurposeSubagentProfile, HarnessProfile, register_harness_profile

__all__ = [
    "CompiledSubAgent",
    "DeepAgentState",
    "FilesystemMiddleware",
    "FsToolName",
    "GeneralPurposeSubagentProfile",
    "HarnessProfile",
    "SubAgent",
    "SubAgentMiddleware",
    "__version__",
    "create_deep_agent",
    "register_harness_profile",
]

_HOMES = {
    "CompiledSubAgent": "deepagents.middleware.subagents",
    "DeepAgentState": "deepagents._state",
    "FilesystemMiddleware": "deepagents.middleware.filesystem",
    "FsToolName": "deepagents.middleware.filesystem",
    "GeneralPurposeSubagentProfile": "deepagents.profiles",
    "HarnessProfile": "deepagents.profiles",
    "SubAgent": "deepagents.middleware.subagents",
    "SubAgentMiddleware": "deepagents.middleware.subagents",
    "create_deep_agent": "deepagents.graph",
    "register_harness_profile": "deepagents.profiles",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'deepagents' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

"""Make agents that plan, work on files, delegate and last. Names load on first use: importing is cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents._lazy import lazy
from deepagents._version import __version__

if TYPE_CHECKING:
    from deepagents._state import DeepAgentState
    from deepagents.graph import create_deep_agent
    from deepagents.limits import Limits, Price
    from deepagents.middleware.async_subagents import AsyncSubAgent, AsyncSubAgentMiddleware
    from deepagents.middleware.filesystem import FilesystemMiddleware, FsToolName
    from deepagents.middleware.memory import MemoryMiddleware
    from deepagents.middleware.rubric import RubricMiddleware
    from deepagents.middleware.subagents import CompiledSubAgent, SubAgent, SubAgentMiddleware
    from deepagents.permissions import FilesystemPermission
    from deepagents.profiles import (
        GeneralPurposeSubagentProfile,
        HarnessProfile,
        HarnessProfileConfig,
        ProviderProfile,
        register_harness_profile,
        register_provider_profile,
    )

__all__ = [
    "AsyncSubAgent",
    "AsyncSubAgentMiddleware",
    "CompiledSubAgent",
    "DeepAgentState",
    "FilesystemMiddleware",
    "FilesystemPermission",
    "FsToolName",
    "GeneralPurposeSubagentProfile",
    "HarnessProfile",
    "HarnessProfileConfig",
    "Limits",
    "MemoryMiddleware",
    "Price",
    "ProviderProfile",
    "RubricMiddleware",
    "SubAgent",
    "SubAgentMiddleware",
    "__version__",
    "create_deep_agent",
    "register_harness_profile",
    "register_provider_profile",
]

_HOMES = {
    "AsyncSubAgent": "deepagents.middleware.async_subagents",
    "AsyncSubAgentMiddleware": "deepagents.middleware.async_subagents",
    "CompiledSubAgent": "deepagents.middleware.subagents",
    "DeepAgentState": "deepagents._state",
    "FilesystemMiddleware": "deepagents.middleware.filesystem",
    "FilesystemPermission": "deepagents.permissions",
    "FsToolName": "deepagents.middleware.filesystem",
    "GeneralPurposeSubagentProfile": "deepagents.profiles",
    "HarnessProfile": "deepagents.profiles",
    "HarnessProfileConfig": "deepagents.profiles",
    "Limits": "deepagents.limits",
    "MemoryMiddleware": "deepagents.middleware.memory",
    "Price": "deepagents.limits",
    "ProviderProfile": "deepagents.profiles",
    "RubricMiddleware": "deepagents.middleware.rubric",
    "SubAgent": "deepagents.middleware.subagents",
    "SubAgentMiddleware": "deepagents.middleware.subagents",
    "create_deep_agent": "deepagents.graph",
    "register_harness_profile": "deepagents.profiles",
    "register_provider_profile": "deepagents.profiles",
}


__getattr__ = lazy(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__, "backends", "errors", "middleware", "testing"]

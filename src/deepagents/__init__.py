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

__getattr__ = lazy(
    __name__,
    {
        "._state": "DeepAgentState",
        ".graph": "create_deep_agent",
        ".limits": "Limits Price",
        ".middleware.async_subagents": "AsyncSubAgent AsyncSubAgentMiddleware",
        ".middleware.filesystem": "FilesystemMiddleware FsToolName",
        ".middleware.memory": "MemoryMiddleware",
        ".middleware.rubric": "RubricMiddleware",
        ".middleware.subagents": "CompiledSubAgent SubAgent SubAgentMiddleware",
        ".permissions": "FilesystemPermission",
        ".profiles": "GeneralPurposeSubagentProfile HarnessProfile HarnessProfileConfig ProviderProfile "
        "register_harness_profile register_provider_profile",
    },
)


def __dir__() -> list[str]:
    return [*__all__, "backends", "errors", "middleware", "testing"]

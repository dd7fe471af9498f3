"""Private names beside `create_deep_agent` that others look at, in terms of what there is today."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from deepagents._agent.slots import Slot
from deepagents._agent.stack import STACK
from deepagents._tools import ToolLike, described
from deepagents.middleware._base import Middleware
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.subagents import SubAgentMiddleware

REQUIRED_NAMES: Final = frozenset(row.name for row in STACK if isinstance(row, Slot) and row.required)
REQUIRED_CLASSES: Final = frozenset({FilesystemMiddleware, SubAgentMiddleware})


def apply_custom_middleware(
    base: Sequence[Middleware],
    custom: Sequence[Middleware],
    *,
    core_names: Collection[str] | None = None,
) -> list[Middleware]:
    """Put middleware in the place of that of the same name, and the rest behind the last of `core_names`."""
    own = {each.name: each for each in custom}
    stack = [own.get(each.name, each) for each in base]
    names = [each.name for each in base]
    core = [at for at, name in enumerate(names) if core_names is not None and name in core_names]
    behind = core[-1] + 1 if core else len(stack)
    return [*stack[:behind], *(each for each in custom if each.name not in names), *stack[behind:]]


def apply_tool_description_overrides(
    tools: Sequence[ToolLike] | None, overrides: Mapping[str, str]
) -> list[ToolLike] | None:
    """Return copies of tools with other descriptions."""
    return None if tools is None else described(tools, overrides)

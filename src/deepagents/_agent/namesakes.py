"""Two tools of one name in an agent: the later one takes the earlier one's place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deepagents._agent.slots import Building
from deepagents.backends._resolve import is_factory
from deepagents.backends.handle import open_backend
from deepagents.middleware._base import Middleware, tool_name
from deepagents.middleware.async_subagents.tools import TOOLS as ASYNC_TOOLS
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.subagents.task import TASK
from deepagents.middleware.todos import READ_TODOS, WRITE_TODOS
from deepagents.tools import FILE_TOOLS, specs_by_name
from deepagents.tools._tool import ToolSpec

FILES: Final = "FilesystemMiddleware"
SUBAGENTS: Final = "SubAgentMiddleware"
ASYNC_SUBAGENTS: Final = "AsyncSubAgentMiddleware"

_OWN: Final[Mapping[str, Sequence[ToolSpec]]] = {
    "TodoListMiddleware": (WRITE_TODOS, READ_TODOS),
    FILES: FILE_TOOLS,
    SUBAGENTS: (TASK,),
    ASYNC_SUBAGENTS: ASYNC_TOOLS,
}


@dataclass(frozen=True, slots=True)
class Namesake:
    """A tool whose place another one takes, and what brings each: a middleware, or `tools=`."""

    tool: str
    of: str
    taken_by: str


def namesakes(building: Building) -> list[Namesake]:
    """Find the tools that stand in another one's place, but for those that a profile puts there."""
    extras = {each.name for each in building.extras}
    excluded = building.plan.profile.excluded_tools
    found: list[Namesake] = []
    standing: dict[str, tuple[str, object]] = {}
    for owner, name, tool in _offers(building):
        before, other = standing.get(name, (owner, tool))
        standing[name] = owner, tool
        meant = owner in extras and other is None
        if other is not tool and name not in excluded and not meant and _offered(building, before, name):
            found.append(Namesake(name, before, owner))
    return found


def _offers(building: Building) -> Iterator[tuple[str, str, object]]:
    """Name what each tool is brought by, in the order in which a later one wins; own tools are `None`."""
    plan = building.plan
    for slot, specs in _OWN.items():
        if _stands(slot, building):
            yield from ((slot, spec.name, None) for spec in specs)
    for each in _brought(building):
        yield from ((each.name, _named(tool), tool) for tool in getattr(each, "tools", ()))
    yield from (("tools=", _named(tool), tool) for tool in plan.tools)


def _stands(slot: str, building: Building) -> bool:
    plan = building.plan
    if building.replacement(slot) or slot in _left_out(building):
        return False
    if slot == SUBAGENTS:
        return bool(plan.subagents) or plan.role == "forked"
    return slot != ASYNC_SUBAGENTS or bool(plan.async_subagents and plan.role != "declared")


def _brought(building: Building) -> list[Middleware]:
    """Return the brought middleware that stands in the stack, what stands in a slot first."""
    by_name = {each.name: each for each in reversed(building.brought)}
    standing = [each for each in reversed(by_name.values()) if not building.plan.profile.excludes(each)]
    return sorted(standing, key=lambda each: each.name not in building.slots)


def _offered(building: Building, owner: str, name: str) -> bool:
    """Tell whether a file tool would be shown at all, were it alone."""
    files = building.replacement(FILES)
    spec = specs_by_name(getattr(files, "tools", ())).get(name)
    if owner != FILES or spec is None or not spec.needs:
        return True
    backend = files.backend if isinstance(files, FilesystemMiddleware) else building.plan.backend
    if is_factory(backend):
        return False
    return spec.is_possible(open_backend(backend).capabilities())


def _left_out(building: Building) -> set[str]:
    excluded = building.plan.profile.excluded_middleware
    return {entry if isinstance(entry, str) else entry.__name__ for entry in excluded}


def _named(tool: Any) -> str:
    return tool_name(tool) or getattr(tool, "__name__", "")

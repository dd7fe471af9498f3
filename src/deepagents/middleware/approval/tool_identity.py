"""Which tool a decision is about: the very same one, and after a restart one that shows the same."""

from __future__ import annotations

import hashlib
import inspect
import json
import operator
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from langchain_core.tools import BaseTool

from deepagents.middleware._base import Middleware, names_of_tools
from deepagents.tools._tool import SpecTool

_FILES: Final = "deepagents.middleware.filesystem."


class Offered(NamedTuple):
    """A tool of an agent, and the middleware that brings it."""

    tool: Any
    owner: Middleware | None = None


Tools: TypeAlias = Mapping[str, Offered]


def tools_of(stack: Iterable[Middleware], tools: Iterable[Any]) -> dict[str, Offered]:
    """Return an agent's tools by their names; of two of one name the later one runs."""
    brought = [Offered(tool, each) for each in stack for tool in getattr(each, "tools", ())]
    found = [*brought, *(Offered(tool) for tool in tools)]
    return {name: each for each in found for name in names_of_tools([each.tool])}


def same(one: Offered | None, other: Offered | None) -> bool:
    """Tell whether two tools do the same: they run the same code, and file tools on the same backend."""
    if one is None or other is None:
        return False
    mine, theirs = _essence(one), _essence(other)
    return len(mine) == len(theirs) and all(map(operator.is_, mine, theirs))


def _essence(offered: Offered) -> tuple[object, ...]:
    tool, owner = offered
    code = tuple(each for key in ("func", "coroutine") if (each := getattr(tool, key, None)) is not None)
    if not isinstance(tool, BaseTool) or not code:
        return (tool,)
    if isinstance(tool, SpecTool) and tool.spec.effect and type(owner).__module__.startswith(_FILES):
        return (type(owner), getattr(owner, "backend", owner))
    return code


def mark_of(tools: Tools, name: str) -> str | None:
    """Return what a tool of this name shows, in short; `None` for one that is not known beforehand."""
    offered = tools.get(name)
    if offered is None:
        return None
    told = json.dumps([name, _shown(offered.tool)], sort_keys=True, default=repr)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _shown(tool: Any) -> list[Any]:
    if isinstance(tool, BaseTool):
        code = [_place(getattr(tool, key, None)) for key in ("func", "coroutine")]
        return [_place(type(tool)), tool.description, tool.args, *code]
    if isinstance(tool, dict):
        return [cast("dict[str, Any]", tool)]
    return [_place(tool), inspect.getdoc(tool), str(inspect.signature(tool))]


def _place(code: Any) -> str:
    return f"{getattr(code, '__module__', '')}.{getattr(code, '__qualname__', '')}"

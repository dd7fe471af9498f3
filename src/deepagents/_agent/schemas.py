"""Make JSON Schemas of tools from elsewhere into such that LangChain can put into a request.

LangChain puts what a `$ref` names in its place. There a property of that name or a reference to nothing ends
a run, and definitions that each name another twice grow without end.
"""

from __future__ import annotations

import logging
from typing import Any, Final, cast

from langchain_core.tools import BaseTool

_REF: Final = "$ref"
_DEFINITIONS: Final = ("$defs", "definitions")
_LARGEST: Final = 10_000
"""Values in a schema with all references in place; each request holds them all."""
_DEEPEST: Final = 100
_REFERENCES: Final = (_DEEPEST, 8, 4, 2, 1, 0)
"""How many references within each other are put in place, until what is made is small enough."""

_log: Final = logging.getLogger(__name__)


def mend_tool(tool: Any) -> Any:
    """Return a tool whose schema can be sent: the same, or a copy that leaves out what cannot."""
    given = tool.args_schema if isinstance(tool, BaseTool) else None
    if not isinstance(given, dict):
        return tool
    for depth in _REFERENCES:
        filling = _Filling(given, depth)
        try:
            whole = filling.fill(given, ())
        except _TooLarge:
            continue
        if depth == _DEEPEST and not filling.left_out:
            return tool
        _log.warning(
            "the schema of the tool %r is sent without parts that LangChain cannot resolve", tool.name
        )
        return tool.model_copy(update={"args_schema": whole})
    return tool.model_copy(update={"args_schema": {"type": "object"}})


class _TooLarge(Exception):
    pass


class _Filling:
    """Puts what references name in their place, as LangChain does, as far as that goes."""

    def __init__(self, root: dict[str, Any], depth: int) -> None:
        self.left_out = False
        self._root, self._depth, self._count = root, depth, 0

    def fill(self, value: Any, within: tuple[str, ...], level: int = 0) -> Any:
        """Return a value without references; `within` are those that it stands behind.

        Raises:
            _TooLarge: when that is too much.
        """
        self._count += 1
        if self._count > _LARGEST:
            raise _TooLarge
        if isinstance(value, dict | list) and level > _DEEPEST:
            self.left_out = True
            return {}
        if isinstance(value, list):
            return [self.fill(each, within, level + 1) for each in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        given = cast("dict[str, Any]", value)
        skipped = (_REF, *_DEFINITIONS) if not level else (_REF,)
        rest = {key: self.fill(each, within, level + 1) for key, each in given.items() if key not in skipped}
        if isinstance(rest.get("required"), list):
            rest["required"] = [each for each in rest["required"] if each != _REF]
        return rest if _REF not in given else {**self._find(given[_REF], within, level), **rest}

    def _find(self, path: Any, within: tuple[str, ...], level: int) -> dict[str, Any]:
        """Return what a reference names; nothing for one that stands within itself."""
        if path in within:
            return {}
        named: Any = self._root if isinstance(path, str) and path.startswith("#") else None
        for part in str(path).split("/")[1:] if named else ():
            named = _step(named, part)
        if not isinstance(named, dict) or len(within) >= self._depth:
            self.left_out = True
            return {}
        return self.fill(named, (*within, path), level + 1)


def _step(value: Any, part: str) -> Any:
    if isinstance(value, list) and part.isdecimal():
        items = cast("list[Any]", value)
        return items[int(part)] if int(part) < len(items) else None
    return cast("dict[str, Any]", value).get(part) if isinstance(value, dict) else None

"""Which calls of file tools wait for a person because of rules about paths, and where their paths lead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from deepagents._paths import normalise
from deepagents.backends._enforcing import RealPaths
from deepagents.backends.calls import Files
from deepagents.errors import BackendError
from deepagents.permissions import FilesystemOperation, Rules

LINKS: Final = "file_links"
"""State key: for each call of the last turn, the path that it names and where that led."""
ASKED: Final = "file_calls_asked"
"""State key: the ids of the calls of the last turn that a person was asked about."""

_NAMING: Final[Mapping[str, FilesystemOperation]] = MappingProxyType(
    {"read_file": "read", "write_file": "write", "edit_file": "write"}
)
_SEARCHES: Final = frozenset({"ls", "glob", "grep"})
FILE_CALLS: Final = (*_NAMING, *sorted(_SEARCHES), "delete")


def path_argument(tool: str) -> str | None:
    """Name the argument in which a file tool takes its path; none for any other tool."""
    if tool not in FILE_CALLS:
        return None
    return "path" if tool in _SEARCHES else "file_path"


def waits(rules: Rules, call: Mapping[str, Any], state: Any) -> bool:
    """Tell whether a call waits for a person; the same answer each time for the same state."""
    path = named_path(call)
    if path is None:
        return False
    named, led_to = link_of(state, call.get("id"))
    places = [path, led_to] if led_to is not None and named == path else [path]
    tool: str = call["name"]
    if any(rules.decide(operation(tool), each) == "deny" for each in places):
        return False
    return any(_waits(rules, tool, each) for each in places)


def _waits(rules: Rules, tool: str, place: str) -> bool:
    if tool in _SEARCHES:
        return rules.waits("read", place)
    if rules.decide(operation(tool), place) == "interrupt":
        return True
    return tool == "delete" and rules.waiting_below("write", place) is not None


def link_of(state: Any, call_id: str | None) -> tuple[str | None, str | None]:
    """Return the path that a call named when it was made, and where that led then."""
    links = cast("Mapping[str, Any]", state).get(LINKS) if isinstance(state, Mapping) else None
    found = cast("Mapping[str, Sequence[str]]", links or {}).get(call_id or "")
    return (found[0], found[1]) if found else (None, None)


def was_asked(state: Any, call_id: str | None) -> bool | None:
    """Tell whether a person was asked about a call; `None` when there is nobody to ask."""
    asked = cast("Mapping[str, Any]", state).get(ASKED) if isinstance(state, Mapping) else None
    return None if asked is None else call_id in asked


def named_path(call: Mapping[str, Any]) -> str | None:
    """Return the path that a call of a file tool names, `None` when that is none."""
    arguments: Mapping[str, Any] = call["args"]
    path = arguments.get("path", "/") if call["name"] in _SEARCHES else arguments.get("file_path")
    try:
        return normalise("/" if path is None and call["name"] in _SEARCHES else cast("str", path))
    except (BackendError, TypeError, AttributeError):
        return None


async def links(files: Files, calls: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Find out where the paths lead that calls of file tools name, of those that lead elsewhere."""
    named = {
        call["id"]: (call["name"], path)
        for call in calls
        if call["id"] and call["name"] in FILE_CALLS and (path := named_path(call)) is not None
    }
    found: dict[str, list[str]] = {}
    real_paths = RealPaths(files.backend, files.patience)
    for call_id, (tool, path) in named.items():
        real = await _led_to(real_paths, tool, path)
        if real != path:
            found[call_id] = [path, real]
    return found


async def _led_to(real_paths: RealPaths, tool: str, path: str) -> str:
    try:
        return await (real_paths.of_entry(path) if tool == "delete" else real_paths.of(path))
    except BackendError:
        return path


def operation(tool: str) -> FilesystemOperation:
    return "write" if tool == "delete" else _NAMING.get(tool, "read")

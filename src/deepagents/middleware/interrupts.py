"""Calls that permissions make wait for a person, as entries for LangChain's approval middleware."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage

from deepagents._flow import Flow
from deepagents._paths import normalise
from deepagents.backends._enforcing import RealPaths
from deepagents.backends.calls import Files
from deepagents.errors import BackendError
from deepagents.permissions import FilesystemOperation, FilesystemPermission, Rules

InterruptOn: TypeAlias = Mapping[str, bool | InterruptOnConfig]
LINKS: Final = "file_links"
"""State key: for each call of the last turn, the path that it names and where that led."""
ASKED: Final = "file_calls_asked"
"""State key: the ids of the calls of the last turn that a person was asked about."""

_NAMING: Final[Mapping[str, FilesystemOperation]] = MappingProxyType(
    {"read_file": "read", "write_file": "write", "edit_file": "write"}
)
_SEARCHES: Final = frozenset({"ls", "glob", "grep"})
_TOOLS: Final = (*_NAMING, *sorted(_SEARCHES), "delete")


class Approval(HumanInTheLoopMiddleware[Any, Any, Any]):
    """LangChain's approval, which also asks where rules say so and notes in state what it asked about."""

    def __init__(self, rules: Rules, interrupt_on: InterruptOn | None = None) -> None:
        super().__init__(interrupt_on=approvals(rules, interrupt_on))
        self.rules = rules
        self._given = interrupt_on

    @property
    def name(self) -> str:
        """The name of the place in the stack that it takes."""
        return HumanInTheLoopMiddleware.__name__

    def under(self, rules: Rules) -> Approval:
        """Return the approval that asks for these rules, and for whatever else this one asks."""
        return self if rules.given == self.rules.given else Approval(rules, self._given)

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ask about the calls that the model made."""
        asked = [call["id"] for call in _last_calls(state) if self._asks(call, state)]
        return {**(super().after_model(state, runtime) or {}), ASKED: asked}

    def _asks(self, call: Mapping[str, Any], state: Any) -> bool:
        entry = self.interrupt_on.get(call["name"])
        return entry is not None and (entry.get("when") is None or waits(self.rules, call, state))


def approvals(rules: Rules, interrupt_on: InterruptOn | None = None) -> dict[str, bool | InterruptOnConfig]:
    """Join what the rules make wait with what a caller does.

    A caller's entry says how to ask, and for which further calls; none lifts what a rule makes wait.
    """
    merged = dict(interrupt_on or {})
    for tool in _TOOLS:
        if not rules.has("interrupt", _operation(tool)):
            continue
        given = merged.get(tool)
        if given is None or given is False:
            every: Any = ["approve", "edit", "reject", "respond"]
            merged[tool] = InterruptOnConfig(allowed_decisions=every, when=_waits_by(rules))
        elif isinstance(given, dict) and (own := given.get("when")) is not None:
            merged[tool] = cast("InterruptOnConfig", {**given, "when": _either(own, _waits_by(rules))})
    return merged


def build_interrupt_on(
    rules: Sequence[FilesystemPermission], backend: Any = None
) -> dict[str, bool | InterruptOnConfig]:
    """Make the entries for rules alone."""
    return approvals(Rules(rules))


def waits(rules: Rules, call: Mapping[str, Any], state: Any) -> bool:
    """Tell whether a call waits for a person; the same answer each time for the same state."""
    path = named_path(call)
    if path is None:
        return False
    named, led_to = link_of(state, call.get("id"))
    places = [path, led_to] if led_to is not None and named == path else [path]
    tool: str = call["name"]
    if any(rules.decide(_operation(tool), each) == "deny" for each in places):
        return False
    return any(_waits(rules, tool, each) for each in places)


def _waits(rules: Rules, tool: str, place: str) -> bool:
    if tool in _SEARCHES:
        return rules.waits("read", place)
    if rules.decide(_operation(tool), place) == "interrupt":
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


def links(files: Files, calls: Sequence[Mapping[str, Any]]) -> Flow[dict[str, list[str]]]:
    """Find out where the paths lead that calls of file tools name, of those that lead elsewhere."""
    named = {
        call["id"]: (call["name"], path)
        for call in calls
        if call["id"] and call["name"] in _TOOLS and (path := named_path(call)) is not None
    }
    found: dict[str, list[str]] = {}
    real_paths = RealPaths(files.backend, files.patience)
    for call_id, (tool, path) in named.items():
        real = yield from _led_to(real_paths, tool, path)
        if real != path:
            found[call_id] = [path, real]
    return found


def _last_calls(state: Mapping[str, Any]) -> Sequence[Any]:
    said = (each for each in reversed(state["messages"]) if isinstance(each, AIMessage))
    return last.tool_calls if (last := next(said, None)) else ()


def _led_to(real_paths: RealPaths, tool: str, path: str) -> Flow[str]:
    try:
        return (yield from real_paths.of_entry(path) if tool == "delete" else real_paths.of(path))
    except BackendError:
        return path


def _operation(tool: str) -> FilesystemOperation:
    return "write" if tool == "delete" else _NAMING.get(tool, "read")


def _waits_by(rules: Rules) -> Callable[[ToolCallRequest], bool]:
    return lambda request: waits(rules, request.tool_call, request.state)


def _either(
    one: Callable[[ToolCallRequest], bool], other: Callable[[ToolCallRequest], bool]
) -> Callable[[ToolCallRequest], bool]:
    return lambda request: one(request) or other(request)

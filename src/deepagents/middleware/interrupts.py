"""Calls that permissions make wait for a person, as entries for LangChain's approval middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage
from langgraph.errors import GraphInterrupt

from deepagents._channels import answer_given, has_channel, in_graph
from deepagents._flow import Flow
from deepagents._paths import normalise
from deepagents.backends._enforcing import RealPaths
from deepagents.backends.calls import Files
from deepagents.errors import BackendError
from deepagents.middleware._approval_entries import (
    CallersError,
    InterruptOn,
    asked_once,
    checked,
    is_asked,
)
from deepagents.middleware._approval_requests import (
    EDITED,
    MOST_ANSWERS,
    asking,
    given_up,
    said_that_nobody_can_answer,
    what_was_wrong,
    wrong_edit,
    wrong_words,
)
from deepagents.middleware._base import (
    FlowMiddleware,
    Middleware,
    Request,
    Response,
    ToolResult,
    inner,
    keeping,
)
from deepagents.permissions import FilesystemOperation, FilesystemPermission, Rules
from deepagents.tools._tool import failure_message

LangChains: TypeAlias = HumanInTheLoopMiddleware[Any, Any, Any]
LINKS: Final = "file_links"
"""State key: for each call of the last turn, the path that it names and where that led."""
ASKED: Final = "file_calls_asked"
"""State key: the ids of the calls of the last turn that a person was asked about."""
HELD: Final = "held_calls"
"""State key: the ids of the calls of the last turn while a person is to decide about one before any runs."""

_NAMING: Final[Mapping[str, FilesystemOperation]] = MappingProxyType(
    {"read_file": "read", "write_file": "write", "edit_file": "write"}
)
_SEARCHES: Final = frozenset({"ls", "glob", "grep"})
_TOOLS: Final = (*_NAMING, *sorted(_SEARCHES), "delete")
_OF_NO_USE: Final = (ValueError, KeyError, TypeError, AttributeError, IndexError)


class Approval(FlowMiddleware, HumanInTheLoopMiddleware[Any, Any, Any]):
    """LangChain's approval, which also asks where rules say so, and asks again when an answer is of no use.

    Each request names its call. `tools` are the names that a person may put in a call's place; without them
    an edit that names no tool becomes an error result.
    """

    def __init__(
        self,
        rules: Rules,
        interrupt_on: InterruptOn | None = None,
        tools: Collection[str] | None = None,
        like: LangChains | None = None,
    ) -> None:
        super().__init__(interrupt_on=approvals(rules, checked(interrupt_on)))
        if like is not None:
            self.description_prefix, self.edit_notice = like.description_prefix, like.edit_notice
        self.rules = rules
        self._given = interrupt_on
        self._tools = tools

    @property
    def name(self) -> str:
        """The name of the place in the stack that it takes."""
        return HumanInTheLoopMiddleware.__name__

    def under(self, rules: Rules) -> Approval:
        """Return the approval that asks for these rules, and for whatever else this one asks."""
        return self if rules.given == self.rules.given else Approval(rules, self._given, self._tools, self)

    def among(self, tools: Collection[str]) -> Approval:
        """Return the approval for an agent that has these tools."""
        return Approval(self.rules, self._given, tools, self)

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ask about the calls that the model made, until there is an answer that can be used.

        After twenty that cannot, the calls count as rejected, and the run goes on.
        """
        nobody = said_that_nobody_can_answer() if self.interrupt_on else None
        once = self._asking_once()
        problem: str | None = None
        for at in range(MOST_ANSWERS):
            try:
                update = once.after_model(state, runtime) or {}
            except GraphInterrupt as raised:
                raise asking(raised, _last_calls(state), problem, nobody) from None
            except CallersError as error:
                raise error.__cause__ or error from None
            except _OF_NO_USE as error:
                problem = what_was_wrong(error)
                continue
            edits: Mapping[str, Any] = update.get(EDITED) or {}
            problem = wrong_words(answer_given(at)) or wrong_edit(edits, self._choices(state))
            if problem is None:
                return {**update, **self._noted(state)} or None
        return {**given_up(self._asked_about(once, state)), **self._noted(state)}

    def _asking_once(self) -> LangChains:
        """Make LangChain's approval for one time of asking, however many answers there were."""
        entries: Any = {name: asked_once(config) for name, config in self.interrupt_on.items()}
        return HumanInTheLoopMiddleware(entries, description_prefix=self.description_prefix)

    def _asked_about(self, once: LangChains, state: Mapping[str, Any]) -> Sequence[Any]:
        entries = once.interrupt_on
        calls = _last_calls(state)
        return [call for call in calls if (entry := entries.get(call["name"])) and is_asked(entry, call)]

    def _choices(self, state: Mapping[str, Any]) -> Collection[str] | None:
        """Name the tools that a person may choose: those of the agent, and what the model called, such as a
        tool that a skill disclosed.
        """
        return self._tools and {*self._tools, *(call["name"] for call in _last_calls(state))}

    def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Flow[Response]:
        """Note which calls are held until a person has decided; `after_model` releases them."""
        response = yield from inner(handler, request)
        calls = [call for each in response.result if isinstance(each, AIMessage) for call in each.tool_calls]
        held = [call["id"] for call in calls] if any(c["name"] in self.interrupt_on for c in calls) else None
        before = cast("Mapping[str, Any]", request.state).get(HELD)
        if held == before or not (in_graph() and has_channel(HELD)):
            return response
        return keeping(response, (), {HELD: held})

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], ToolResult]) -> ToolResult:
        """Run the call, or what a person put in its place."""
        return _refused(request) or super().wrap_tool_call(request, handler)

    async def awrap_tool_call(
        self, request: Any, handler: Callable[[Any], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run the call, or what a person put in its place."""
        return _refused(request) or await super().awrap_tool_call(request, handler)

    def _noted(self, state: Any) -> dict[str, Any]:
        passed_on = {"jump_to": state["jump_to"]} if state.get("jump_to") else {}
        noted = {**passed_on, HELD: None} if state.get(HELD) else passed_on
        if not self.rules.has("interrupt"):
            return noted
        return {**noted, ASKED: [call["id"] for call in _last_calls(state) if self._asks(call, state)]}

    def _asks(self, call: Mapping[str, Any], state: Any) -> bool:
        entry = self.interrupt_on.get(call["name"])
        return entry is not None and (entry.get("when") is None or waits(self.rules, call, state))


def adopted(approval: Middleware) -> Middleware:
    """Return LangChain's own approval as one of ours that asks in its words, any other as it is."""
    if type(approval) is not HumanInTheLoopMiddleware or approval.interrupt_mode != "batched":
        return approval
    own = cast("LangChains", approval)
    return Approval(Rules(()), own.interrupt_on, like=own)


def _refused(request: Any) -> ToolResult | None:
    """Answer a call that a person replaced by one of no tool; LangChain would end the run."""
    call = request.tool_call
    edits: Mapping[str, Any] = request.state.get(EDITED) or {}
    edit = edits.get(call["id"])
    names = [tool.name for tool in request.runtime.tools]
    if edit is None or edit["name"] == call["name"] or edit["name"] in names:
        return None
    text = f"A person replaced this call by one of {edit['name']!r}, which is no tool; nothing was run."
    return failure_message(call["name"], call["id"], "invalid_argument", text)


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

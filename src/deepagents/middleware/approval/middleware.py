"""Calls that permissions make wait for a person, as entries for LangChain's approval middleware."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage
from langgraph.errors import GraphInterrupt

from deepagents._async import IOCall
from deepagents._state.runtime import answer_given, has_channel, in_graph
from deepagents.middleware._base import (
    BaseMiddleware,
    Middleware,
    Request,
    Response,
    ToolResult,
    inner,
    keeping,
)
from deepagents.middleware.approval.entries import (
    CallersError,
    InterruptOn,
    asked_once,
    checked,
    is_asked,
    remembering,
    sparing,
)
from deepagents.middleware.approval.inheritance import handing_down, known, tell, with_learned
from deepagents.middleware.approval.memory import Record, decided, learned, rejected, wrong_wish
from deepagents.middleware.approval.path_rules import ASKED, Specs, waits
from deepagents.middleware.approval.requests import (
    MOST_ANSWERS,
    asking,
    call_that_ran,
    given_up,
    nobody_can_answer,
    warn_at_the_start,
    what_was_wrong,
    wrong_edit,
    wrong_words,
)
from deepagents.middleware.approval.state import EDITED, HELD, ApprovalState
from deepagents.middleware.approval.tool_identity import Tools
from deepagents.permissions import FilesystemPermission, Rules
from deepagents.tools import specs_by_name
from deepagents.tools._tool import failure_message

LangChains: TypeAlias = HumanInTheLoopMiddleware[Any, Any, Any]

_NO_TOOLS: Final[Tools] = MappingProxyType({})
_OF_NO_USE: Final = (ValueError, KeyError, TypeError, AttributeError, IndexError)


class Approval(BaseMiddleware, HumanInTheLoopMiddleware[Any, Any, Any]):
    """LangChain's approval, which also asks where rules say so, and asks again when an answer is of no use.

    Each request names its call. `tools` are those of the agent, which a person may put in a call's place;
    without them an edit that names no tool becomes an error result.
    """

    state_schema: type[Any] = ApprovalState

    def __init__(
        self,
        rules: Rules,
        interrupt_on: InterruptOn | None = None,
        tools: Tools = _NO_TOOLS,
        like: LangChains | None = None,
        specs: Specs | None = None,
    ) -> None:
        self._specs = specs_by_name(each.tool for each in tools.values()) if specs is None else specs
        super().__init__(interrupt_on=approvals(rules, checked(interrupt_on), self._specs))
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
        if rules.given == self.rules.given:
            return self
        return Approval(rules, self._given, self._tools, self, self._specs)

    def among(self, tools: Tools) -> Approval:
        """Return the approval for an agent that has these tools."""
        return Approval(self.rules, self._given, tools, self)

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ask about the calls that the model made, until there is an answer that can be used.

        After twenty that cannot, the calls count as rejected, and the run goes on.
        """
        nobody = nobody_can_answer() if self.interrupt_on else None
        found: dict[str, Record] = {}
        once = self._asking_once(state, found)
        offers = remembering(self.interrupt_on)
        problem: str | None = None
        for at in range(MOST_ANSWERS):
            try:
                update = once.after_model(state, runtime) or {}
            except GraphInterrupt as raised:
                raise asking(raised, _last_calls(state), offers, problem, nobody) from None
            except CallersError as error:
                raise error.__cause__ or error from None
            except _OF_NO_USE as error:
                problem = what_was_wrong(error)
                continue
            answer, asked = answer_given(at), self._asked_about(once, state)
            problem = self._wrong(answer, asked, update, state)
            if problem is None:
                return self._decided({**update, **learned(answer, asked, self._tools)}, found, state) or None
        return self._decided(given_up(self._asked_about(once, state)), found, state)

    def _wrong(
        self, answer: object, asked: Sequence[Any], update: Mapping[str, Any], state: Any
    ) -> str | None:
        edits: Mapping[str, Any] = update.get(EDITED) or {}
        problem = wrong_words(answer) or wrong_edit(edits, self._choices(state))
        return problem or wrong_wish(answer, asked, remembering(self.interrupt_on), self._specs)

    def _asking_once(self, state: Any, found: dict[str, Record]) -> LangChains:
        """Make LangChain's approval for one time of asking, however many answers there were.

        Calls about which a decision is remembered are not asked about; `found` takes those decisions.
        """
        records = known(state, self._tools)

        def find(call: Mapping[str, Any]) -> Record | None:
            allowed = self.interrupt_on[call["name"]]["allowed_decisions"]
            record = decided(records, call, self._tools, allowed, self.rules, state, self._specs)
            return None if record is None else found.setdefault(call["id"] or "", record)

        entries: Any = {
            name: sparing(asked_once(config), find if records else None)
            for name, config in self.interrupt_on.items()
        }
        return HumanInTheLoopMiddleware(entries, description_prefix=self.description_prefix)

    def _asked_about(self, once: LangChains, state: Mapping[str, Any]) -> Sequence[Any]:
        entries = once.interrupt_on
        calls = _last_calls(state)
        return [call for call in calls if (entry := entries.get(call["name"])) and is_asked(entry, call)]

    def _decided(self, update: Mapping[str, Any], found: Mapping[str, Record], state: Any) -> dict[str, Any]:
        """Add to an update the answers of remembered rejections, and which calls were asked about."""
        calls = [(call, found.get(call["id"] or "")) for call in _last_calls(state)]
        said = [rejected(record, call) for call, record in calls if record and record["type"] == "reject"]
        messages = {"messages": [*update.get("messages", ()), *said]} if said else {}
        return {**update, **self._noted(state), **messages}

    def _choices(self, state: Mapping[str, Any]) -> Collection[str] | None:
        """Name the tools that a person may choose: those of the agent, and what the model called, such as a
        tool that a skill disclosed.
        """
        return {*self._tools, *(call["name"] for call in _last_calls(state))} if self._tools else None

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Note which calls are held until a person has decided; `after_model` releases them."""
        if self.interrupt_on:
            warn_at_the_start(request.messages)
        tell(cast("Mapping[str, Any]", request.state), self._tools)
        response = await inner(handler, request)
        calls = [call for each in response.result if isinstance(each, AIMessage) for call in each.tool_calls]
        held = [call["id"] for call in calls] if any(c["name"] in self.interrupt_on for c in calls) else None
        before = cast("Mapping[str, Any]", request.state).get(HELD)
        if held == before or not (in_graph() and has_channel(HELD)):
            return response
        return keeping(response, (), {HELD: held})

    async def _around_tool(self, request: Any, handler: Callable[[Any], Any]) -> ToolResult:
        """Run the call, or what a person put in its place."""
        langchains = super()
        call: IOCall[ToolResult] = IOCall(
            lambda: langchains.wrap_tool_call(request, handler),
            lambda: langchains.awrap_tool_call(request, handler),
        )
        with handing_down(request.state, self._tools, call_that_ran(request)) as found:
            result = _refused(request) or await call
        return with_learned(result, found)

    def _noted(self, state: Any) -> dict[str, Any]:
        passed_on = {"jump_to": state["jump_to"]} if state.get("jump_to") else {}
        noted = {**passed_on, HELD: None} if state.get(HELD) else passed_on
        if not self.rules.has("interrupt"):
            return noted
        return {**noted, ASKED: [call["id"] for call in _last_calls(state) if self._asks(call, state)]}

    def _asks(self, call: Mapping[str, Any], state: Any) -> bool:
        entry = self.interrupt_on.get(call["name"])
        return entry is not None and (
            entry.get("when") is None or waits(self.rules, call, state, self._specs)
        )


class ApprovalBelow(BaseMiddleware):
    """For an agent that asks nobody itself, whose subagents do: keeps for the thread what they remember."""

    state_schema: type[Any] = ApprovalState

    def __init__(self, tools: Tools = _NO_TOOLS) -> None:
        super().__init__()
        self._tools = tools

    @property
    def name(self) -> str:
        """The name of the place in the stack that it takes."""
        return HumanInTheLoopMiddleware.__name__

    def among(self, tools: Tools) -> ApprovalBelow:
        """Return the one for an agent that has these tools."""
        return ApprovalBelow(tools)

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        warn_at_the_start(request.messages)
        tell(cast("Mapping[str, Any]", request.state), self._tools)
        return await inner(handler, request)

    async def _around_tool(self, request: Any, handler: Callable[[Any], ToolResult]) -> ToolResult:
        with handing_down(request.state, self._tools, call_that_ran(request)) as found:
            result = await inner(handler, request)
        return with_learned(result, found)


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


def approvals(
    rules: Rules, interrupt_on: InterruptOn | None = None, specs: Specs | None = None
) -> dict[str, bool | InterruptOnConfig]:
    """Join what the rules make wait with what a caller does.

    A caller's entry says how to ask, and for which further calls; none lifts what a rule makes wait.
    """
    merged = dict(interrupt_on or {})
    specs = specs_by_name() if specs is None else specs
    for tool, spec in specs.items():
        if spec.operation is None or not rules.has("interrupt", spec.operation):
            continue
        given = merged.get(tool)
        if given is None or given is False:
            every: Any = ["approve", "edit", "reject", "respond"]
            merged[tool] = InterruptOnConfig(allowed_decisions=every, when=_waits_by(rules, specs))
        elif isinstance(given, dict) and (own := given.get("when")) is not None:
            merged[tool] = cast("InterruptOnConfig", {**given, "when": _either(own, _waits_by(rules, specs))})
    return merged


def build_interrupt_on(
    rules: Sequence[FilesystemPermission], backend: Any = None
) -> dict[str, bool | InterruptOnConfig]:
    """Make the entries for rules alone."""
    return approvals(Rules(rules))


def _last_calls(state: Mapping[str, Any]) -> Sequence[Any]:
    said = (each for each in reversed(state["messages"]) if isinstance(each, AIMessage))
    return last.tool_calls if (last := next(said, None)) else ()


def _waits_by(rules: Rules, specs: Specs) -> Callable[[ToolCallRequest], bool]:
    return lambda request: waits(rules, request.tool_call, request.state, specs)


def _either(
    one: Callable[[ToolCallRequest], bool], other: Callable[[ToolCallRequest], bool]
) -> Callable[[ToolCallRequest], bool]:
    return lambda request: one(request) or other(request)

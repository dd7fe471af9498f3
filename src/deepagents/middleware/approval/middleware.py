"""Ask a person about tool calls: by `interrupt_on`, by rules about paths, and again after a wrong answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langgraph.errors import GraphInterrupt

from deepagents._async import IOCall
from deepagents._state.runtime import answer_given
from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.middleware._base import (
    BaseMiddleware,
    Middleware,
    Request,
    Response,
    ToolResult,
    inner,
    keeping,
    names_of_tools,
)
from deepagents.middleware.approval.config import (
    CallerError,
    InterruptOn,
    add_path_rules,
    asks_about,
    call_once,
    can_remember,
    skip_decided,
    validate_interrupt_on,
)
from deepagents.middleware.approval.inheritance import (
    find_decisions,
    passing_decisions,
    report_decisions,
    with_learned,
)
from deepagents.middleware.approval.memory import (
    Record,
    find_bad_memory,
    find_decision,
    make_rejection,
    records_of,
)
from deepagents.middleware.approval.path_rules import ASKED, Call, Specs, find_named_path, waits
from deepagents.middleware.approval.questions import (
    MOST_ANSWERS,
    describe_error,
    explain_no_checkpointer,
    find_bad_edit,
    find_bad_reply,
    find_executed_call,
    give_up,
    rewrite_question,
    warn_without_checkpointer,
)
from deepagents.middleware.approval.state import EDITED, HELD, REMEMBERED, SEEN, ApprovalState
from deepagents.middleware.approval.versions import note_versions, refuse_stale
from deepagents.permissions import Rules
from deepagents.tools import specs_by_name
from deepagents.tools._tool import failure_message

LangChainApproval: TypeAlias = HumanInTheLoopMiddleware[Any, Any, Any]

_SECONDS: Final = 60.0
"""How long looking at one file may take."""
# What LangChain raises where an answer has not the form that it indexes and compares.
_UNUSABLE_ANSWER: Final = (ValueError, KeyError, TypeError, AttributeError, IndexError)


class ApprovalMiddleware(BaseMiddleware, HumanInTheLoopMiddleware[Any, Any, Any]):
    """LangChain's approval, which also asks by rules about paths, and asks again after a wrong answer.

    Args:
        rules: rules about paths, of which some may make calls wait.
        interrupt_on: which tools wait, as LangChain takes it.
        specs: the facts about tools that rules go by.
        backend: where the files are that calls change; a change is refused if its file changed meanwhile.
    """

    state_schema: type[Any] = ApprovalState

    def __init__(
        self,
        rules: Rules,
        interrupt_on: InterruptOn | None = None,
        *,
        specs: Specs | None = None,
        backend: BACKEND_TYPES | None = None,
    ) -> None:
        self._specs = specs_by_name() if specs is None else specs
        self._given = validate_interrupt_on(interrupt_on)
        super().__init__(interrupt_on=add_path_rules(rules, self._given, self._specs))
        self.rules = rules
        self._backend = backend
        self._handle = None if backend is None else open_backend(backend, _SECONDS)
        self.tool_names: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """The name of its slot in the stack, which is that of LangChain's."""
        return HumanInTheLoopMiddleware.__name__

    def with_rules(self, rules: Rules) -> ApprovalMiddleware:
        """Return the approval that asks for these rules, and for whatever else this one asks."""
        return self if rules.given == self.rules.given else self._copy(rules, self._specs, self._backend)

    def with_stack(self, stack: Sequence[Middleware], tools: Sequence[Any]) -> ApprovalMiddleware:
        """Return the approval for an agent with these middleware and tools.

        A person may replace a call by one of any of its tools; without this, an edit that names no tool
        becomes an error result.
        """
        all_tools = [*(tool for each in stack for tool in getattr(each, "tools", ())), *tools]
        backends = (getattr(each, "backend", None) for each in stack if each.name == "FilesystemMiddleware")
        made = self._copy(self.rules, specs_by_name(all_tools), next(backends, self._backend))
        made.tool_names = names_of_tools(all_tools)
        return made

    def _copy(self, rules: Rules, specs: Specs, backend: BACKEND_TYPES | None) -> ApprovalMiddleware:
        made = ApprovalMiddleware(rules, self._given, specs=specs, backend=backend)
        # No arguments of ours: they come from an approval of LangChain that was wrapped.
        made.description_prefix, made.edit_notice = self.description_prefix, self.edit_notice
        made.tool_names = self.tool_names
        return made

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Note which calls are held until a person has decided, and what they would change."""
        state = cast("Mapping[str, Any]", request.state)
        if self.interrupt_on:
            warn_without_checkpointer(request.messages)
        report_decisions(state)
        response = await inner(handler, request)
        calls = [call for each in response.result if isinstance(each, AIMessage) for call in each.tool_calls]
        asking = [call for call in calls if call["name"] in self.interrupt_on]
        if not asking:
            return response if state.get(HELD) is None else keeping(response, (), {HELD: None})
        seen: dict[str, str] = {}
        if self._handle is not None:
            files = self._handle.files(request.runtime)
            seen = await note_versions(files, asking, self._specs)
        return keeping(response, (), {HELD: [call["id"] for call in calls], SEEN: seen})

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ask about the calls that the model made, until there is an answer that can be used.

        After twenty that cannot, the calls count as rejected, and the run goes on.
        """
        no_checkpointer = explain_no_checkpointer() if self.interrupt_on else None
        decided: dict[str, Record] = {}
        langchain = self._ask_once(state, decided)
        problem: str | None = None
        for attempt in range(MOST_ANSWERS):
            try:
                # LangGraph runs this anew for each answer; each `interrupt` then returns the answer that it
                # got before, and the first one without an answer raises.
                update = langchain.after_model(state, runtime) or {}
            except GraphInterrupt as raised:
                calls = _last_calls(state)
                raise rewrite_question(raised, calls, self._remembers, problem, no_checkpointer) from None
            except CallerError as error:
                # As the function of the caller raised it: the marker around it is ours alone.
                raise error.__cause__ or error from None
            except _UNUSABLE_ANSWER as error:
                problem = describe_error(error)
                continue
            answer, asked = answer_given(attempt), self._find_asked(langchain, state)
            problem = self._find_problem(answer, asked, update, state)
            if problem is None:
                records = records_of(answer, asked)
                update |= {REMEMBERED: records} if records else {}
                return self._finish(update, asked, decided, state) or None
        asked = self._find_asked(langchain, state)
        return self._finish(give_up(asked), asked, decided, state)

    def _ask_once(self, state: Any, decided: dict[str, Record]) -> LangChainApproval:
        """Make LangChain's approval for one time of asking, however many answers there were.

        Calls about which a decision is remembered are not asked about; `decided` takes those decisions.
        """
        records = find_decisions(state)

        def find(call: Call) -> Record | None:
            allowed = self.interrupt_on[call["name"]]["allowed_decisions"]
            found = find_decision(records, call, allowed, self.rules, state, self._specs)
            return None if found is None else decided.setdefault(call["id"] or "", found)

        entries: Any = {name: skip_decided(call_once(each), find) for name, each in self.interrupt_on.items()}
        return HumanInTheLoopMiddleware(entries, description_prefix=self.description_prefix)

    def _find_asked(self, langchain: LangChainApproval, state: Any) -> Sequence[Call]:
        entries = langchain.interrupt_on
        calls = _last_calls(state)
        return [call for call in calls if (entry := entries.get(call["name"])) and asks_about(entry, call)]

    def _find_problem(
        self, answer: object, asked: Sequence[Call], update: Mapping[str, Any], state: Any
    ) -> str | None:
        edits: Mapping[str, Any] = update.get(EDITED) or {}
        problem = find_bad_reply(answer) or find_bad_edit(edits, self._choices(state))
        return problem or find_bad_memory(answer, asked, self._remembers, self._specs)

    def _choices(self, state: Any) -> Collection[str] | None:
        """Return the tools that a person may choose: those of the agent, and what the model called, such as a
        tool that a skill disclosed.
        """
        called = {call["name"] for call in _last_calls(state)}
        return None if self.tool_names is None else self.tool_names | called

    def _remembers(self, tool: str) -> bool:
        return can_remember(self.interrupt_on.get(tool) or {})

    def _finish(
        self, update: dict[str, Any], asked: Sequence[Call], decided: Mapping[str, Record], state: Any
    ) -> dict[str, Any]:
        """Add the answers of remembered rejections, and which calls were asked about."""
        calls = _last_calls(state)
        records = [(call, decided.get(call["id"] or "")) for call in calls]
        refused = [
            make_rejection(record, call) for call, record in records if record and record["type"] == "reject"
        ]
        finished = {**update}
        if refused:
            finished["messages"] = [*update.get("messages", ()), *refused]
        if state.get("jump_to"):
            # LangGraph clears the jump of an earlier node once this one writes, and it still holds.
            finished["jump_to"] = state["jump_to"]
        if state.get(HELD):
            finished[HELD] = None
        if seen := state.get(SEEN):
            paths = {find_named_path(call, self._specs) for call in asked}
            finished[SEEN] = {path: version for path, version in seen.items() if path in paths}
        if self.rules.has("interrupt"):
            finished[ASKED] = [call["id"] for call in calls if self._waits(call, state)]
        return finished

    def _waits(self, call: Call, state: Any) -> bool:
        entry = self.interrupt_on.get(call["name"])
        return entry is not None and (
            entry.get("when") is None or waits(self.rules, call, state, self._specs)
        )

    async def _around_tool(self, request: Any, handler: Callable[[Any], Any]) -> ToolResult:
        """Run the call, or a person's replacement of it, on the files as the person saw them."""
        call = find_executed_call(request)
        refusal = _refuse_unknown_tool(request, call)
        if refusal is None and self._handle is not None and (seen := request.state.get(SEEN)):
            files = self._handle.files(request.runtime)
            refusal = await refuse_stale(files, call, self._specs, seen)
        if refusal is not None:
            return refusal
        langchain = super()
        run: IOCall[ToolResult] = IOCall(
            lambda: langchain.wrap_tool_call(request, handler),
            lambda: langchain.awrap_tool_call(request, handler),
        )
        with passing_decisions(request.state, call) as learned:
            result = await run
        return with_learned(result, learned)


class PassThroughApproval(BaseMiddleware):
    """Keeps remembered decisions of subagents for an agent that itself never asks."""

    state_schema: type[Any] = ApprovalState

    @property
    def name(self) -> str:
        """The name of the slot in the stack that it takes."""
        return HumanInTheLoopMiddleware.__name__

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        warn_without_checkpointer(request.messages)
        report_decisions(cast("Mapping[str, Any]", request.state))
        return await inner(handler, request)

    async def _around_tool(self, request: Any, handler: Callable[[Any], ToolResult]) -> ToolResult:
        with passing_decisions(request.state, find_executed_call(request)) as learned:
            result = await inner(handler, request)
        return with_learned(result, learned)


def wrap_langchain(approval: Middleware) -> Middleware:
    """Return LangChain's own approval as one of ours that asks in its words, any other as it is."""
    # A subclass may ask in its own way, and ours asks about all calls of a turn at once.
    if type(approval) is not HumanInTheLoopMiddleware or approval.interrupt_mode != "batched":
        return approval
    given = cast("LangChainApproval", approval)
    made = ApprovalMiddleware(Rules(()), given.interrupt_on)
    made.description_prefix, made.edit_notice = given.description_prefix, given.edit_notice
    return made


def _refuse_unknown_tool(request: Any, call: Call) -> ToolResult | None:
    """Answer a call that a person replaced by one of no tool; LangChain would end the run."""
    made = request.tool_call
    if call["name"] == made["name"] or call["name"] in [tool.name for tool in request.runtime.tools]:
        return None
    text = f"A person replaced this call by one of {call['name']!r}, which is no tool; nothing was run."
    return failure_message(made["name"], made["id"], "invalid_argument", text)


def _last_calls(state: Mapping[str, Any]) -> Sequence[Any]:
    answers = (each for each in reversed(state["messages"]) if isinstance(each, AIMessage))
    return last.tool_calls if (last := next(answers, None)) else ()

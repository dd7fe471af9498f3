"""Ask a person about tool calls: by `interrupt_on`, by rules about paths, and again after a wrong answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, TypeAlias, cast

from langchain.agents import AgentState
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage
from langgraph.errors import GraphInterrupt

from deepagents._async import IOCall
from deepagents._state.channels import GrowingChannel
from deepagents._state.programs import can_ask, is_call_of_program
from deepagents._state.runtime import answers_to_questions
from deepagents._state.schema import NOT_SHARED, merge_latest
from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import BACKEND_TYPES
from deepagents.middleware._base import BaseMiddleware, Middleware, inner
from deepagents.middleware._requests import Request, Response, ToolResult, keeping
from deepagents.middleware.approval.files import (
    SEEN,
    Call,
    Specs,
    find_named_paths,
    note_versions,
    refuse_stale,
    waits,
)
from deepagents.middleware.approval.memory import (
    REMEMBERED,
    RememberedDecision,
    check_memory,
    find_decision,
    find_decisions,
    make_rejection,
    records_of,
    report_decisions,
)
from deepagents.middleware.approval.questions import (
    DECIDED,
    EDITED,
    MOST_ANSWERS,
    CallerError,
    Entries,
    InterruptOn,
    add_path_rules,
    call_once,
    check_answer,
    decisions_in,
    describe_error,
    explain_no_checkpointer,
    find_decided,
    find_executed_call,
    give_up,
    rewrite_question,
    validate_interrupt_on,
    warn_without_checkpointer,
    word_refusals,
)
from deepagents.models.endings import break_of
from deepagents.permissions import Rules
from deepagents.tools import specs_by_name
from deepagents.tools._asked import ASKED
from deepagents.tools._tool import failure_message, names_of_tools

LangChainApproval: TypeAlias = HumanInTheLoopMiddleware[Any, Any, Any]

HELD: Final = "held_calls"
"""State key: the ids of the calls of the last turn while a person is to decide about one before any runs."""
_SECONDS: Final = 60.0
"""How long looking at one file may take."""
# What LangChain raises where an answer has not the form that it indexes and compares.
_UNUSABLE_ANSWER: Final = (ValueError, KeyError, TypeError, AttributeError, IndexError)


class ApprovalState(AgentState[Any]):
    """State of an agent whose calls may wait for a person."""

    hitl_edited_tool_calls: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    held_calls: NotRequired[Annotated[list[str] | None, PrivateStateAttr, NOT_SHARED]]
    decided_calls: NotRequired[
        Annotated[dict[str, Any], GrowingChannel(merge_latest), PrivateStateAttr, NOT_SHARED]
    ]
    versions_seen: NotRequired[Annotated[dict[str, str], PrivateStateAttr, NOT_SHARED]]
    remembered_decisions: NotRequired[
        Annotated[dict[str, Any], GrowingChannel(merge_latest), PrivateStateAttr, NOT_SHARED]
    ]


class ApprovalMiddleware(BaseMiddleware, HumanInTheLoopMiddleware[Any, Any, Any]):
    """LangChain's approval, which also asks by rules about paths, and asks again after a wrong answer.

    An agent that never asks itself has it to keep what its subagents remember.

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
        self._backend = backend
        self._handle = None if backend is None else open_backend(backend, _SECONDS)
        ruled = self._handle.capabilities().ruled if self._handle else ()
        self._binds_commands = rules.may_wait_in(ruled)
        super().__init__(
            interrupt_on=add_path_rules(rules, self._given, self._specs, binds_commands=self._binds_commands)
        )
        # Not a plain dict: it finds the entry of a tool by a pattern too.
        free = [name for name, entry in self._given.items() if entry is False]
        self.interrupt_on: Entries = Entries(self.interrupt_on, set(free) - self.interrupt_on.keys())
        self.rules = rules
        self.tool_names: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """The name of its slot in the stack, which is that of LangChain's."""
        return HumanInTheLoopMiddleware.__name__

    def in_agent(self, rules: Rules, stack: Sequence[Middleware], tools: Sequence[Any]) -> ApprovalMiddleware:
        """Return the approval that asks for these rules too, in an agent with these middleware and tools.

        A person may replace a call by one of any of its tools; without this, an edit that names no tool
        becomes an error result.
        """
        all_tools = [*(tool for each in stack for tool in getattr(each, "tools", ())), *tools]
        backends = (getattr(each, "backend", None) for each in stack if each.name == "FilesystemMiddleware")
        backend = next(backends, self._backend)
        made = ApprovalMiddleware(rules, self._given, specs=specs_by_name(all_tools), backend=backend)
        # No arguments of ours: they come from an approval of LangChain that was wrapped.
        made.description_prefix, made.edit_notice = self.description_prefix, self.edit_notice
        made.tool_names = names_of_tools(all_tools)
        return made

    async def _around_model(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Note which calls are held until a person has decided, and what they would change."""
        state = cast("Mapping[str, Any]", request.state)
        warn_without_checkpointer(request.messages)
        report_decisions(state)
        response = await inner(handler, request)
        calls = _last_calls({"messages": response.result})
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

        After twenty that cannot, the calls count as rejected, and the run goes on. So it does where a program
        waits for this agent.
        """
        decided: dict[str, RememberedDecision] = {}
        calls = _last_calls(state)
        if not calls:
            return self._finish({}, (), decided, state) or None
        langchain = self._ask_once(state, decided)
        problem: str | None = None
        with answers_to_questions() as find_answer:
            for _ in range(MOST_ANSWERS if can_ask() else 0):
                try:
                    # LangGraph runs this anew for each answer; each `interrupt` then returns the answer that
                    # it got before, and the first one without an answer raises.
                    update = langchain.after_model(state, runtime) or {}
                    asked = _find_asked(langchain, calls)
                    decisions = decisions_in(find_answer())
                    check_answer(decisions, update.get(EDITED) or {}, self._choices(calls))
                    check_memory(decisions, asked, self._remembers, self._specs)
                except GraphInterrupt as raised:
                    remarks = problem, explain_no_checkpointer()
                    raise rewrite_question(raised, calls, self._remembers, *remarks) from None
                except CallerError as error:
                    # As the function of the caller raised it: the marker around it is ours alone.
                    raise error.__cause__ or error from None
                except _UNUSABLE_ANSWER as error:
                    problem = describe_error(error)
                    continue
                if records := records_of(decisions, asked):
                    update[REMEMBERED] = records
                if decided_now := find_decided(decisions, asked):
                    update[DECIDED] = decided_now
                update = word_refusals(update, decisions, asked)
                return self._finish(update, asked, decided, state) or None
        asked = _find_asked(langchain, calls)
        return self._finish(give_up(asked) if asked else {}, asked, decided, state) or None

    def _ask_once(self, state: Any, decided: dict[str, RememberedDecision]) -> LangChainApproval:
        """Make LangChain's approval for one time of asking, however many answers there were.

        Calls about which a decision is remembered are not asked about; `decided` takes those decisions.
        """
        decisions = find_decisions(state)

        def find(call: Call) -> RememberedDecision | None:
            allowed = self.interrupt_on.get(call["name"])["allowed_decisions"]
            found = find_decision(decisions, call, allowed, self.rules, state, self._specs)
            return None if found is None else decided.setdefault(call["id"] or "", found)

        names = {call["name"] for call in _last_calls(state)}
        found = {name: entry for name in names if (entry := self.interrupt_on.get(name)) is not None}
        entries: Any = {name: call_once(each, find) for name, each in found.items()}
        return HumanInTheLoopMiddleware(entries, description_prefix=self.description_prefix)

    def _choices(self, calls: Sequence[Call]) -> Collection[str] | None:
        """Return the tools that a person may choose: those of the agent, and what the model called, such as a
        tool that a skill disclosed.
        """
        return None if self.tool_names is None else {*self.tool_names, *(call["name"] for call in calls)}

    def _remembers(self, tool: str) -> bool:
        entry: Mapping[str, Any] = self.interrupt_on.get(tool) or {}
        return bool(entry.get("remember"))

    def _finish(
        self,
        update: dict[str, Any],
        asked: Sequence[Call],
        decided: Mapping[str, RememberedDecision],
        state: Any,
    ) -> dict[str, Any]:
        """Add the answers of remembered rejections, and which calls were asked about."""
        calls = _last_calls(state)
        remembered = [(call, decided.get(call["id"] or "")) for call in calls]
        refused = [make_rejection(each, call) for call, each in remembered if each and each.type == "reject"]
        finished = {**update}
        if refused:
            finished["messages"] = [*update.get("messages", ()), *refused]
        if state.get("jump_to"):
            # LangGraph clears the jump of an earlier node once this one writes, and it still holds.
            finished["jump_to"] = state["jump_to"]
        if state.get(HELD):
            finished[HELD] = None
        if seen := state.get(SEEN):
            paths = {path for call in asked for path in find_named_paths(call, self._specs)}
            finished[SEEN] = {path: version for path, version in seen.items() if path in paths}
        if self.rules.has("interrupt") or any(each.find_question for each in self._specs.values()):
            finished[ASKED] = [call["id"] for call in calls if self._waits(call, state)]
        return finished

    def _waits(self, call: Call, state: Any) -> bool:
        entry = self.interrupt_on.get(call["name"])
        return entry is not None and (
            entry.get("when") is None
            or waits(self.rules, call, state, self._specs, binds_commands=self._binds_commands)
        )

    def _refuse_unasked(self, request: Any) -> ToolResult | None:
        """Answer a call of a program that waits for a person, who was not asked about it."""
        call = request.tool_call
        entry = self.interrupt_on.get(call["name"])
        if entry is None or not is_call_of_program(call["id"]):
            return None
        when: Callable[[Any], bool] | None = entry.get("when")
        if when is not None and not when(request):
            return None
        text = f"{call['name']} waits for a person, and a program cannot wait: call it by itself."
        return failure_message(call["name"], call["id"], "not_run", text)

    async def _around_tool(self, request: Any, handler: Callable[[Any], Any]) -> ToolResult:
        """Run the call, or a person's replacement of it, on the files as the person saw them."""
        call = find_executed_call(request)
        refusal = self._refuse_unasked(request) or _refuse_unknown_tool(request, call)
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
        return await run


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
    text = f"A person replaced this call by one of {call['name']!r}, which is not a tool; nothing was run."
    return failure_message(made["name"], made["id"], "invalid_argument", text)


def _last_calls(state: Mapping[str, Any]) -> Sequence[Any]:
    """Return the calls that wait to be run: those of an answer that broke off never are."""
    answers = (each for each in reversed(state["messages"]) if isinstance(each, AIMessage))
    last = next(answers, None)
    return () if last is None or break_of(last) else last.tool_calls


def _find_asked(langchain: LangChainApproval, calls: Sequence[Call]) -> Sequence[Call]:
    """Return the calls that were asked about; `when` answers by what it returned for the call before."""
    entries = cast("Mapping[str, Any]", langchain.interrupt_on)
    return [call for call in calls if (entry := entries.get(call["name"])) and entry["when"](call)]

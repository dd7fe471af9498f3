"""Validate `interrupt_on`, make the question that a person reads, and check the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import wraps
from typing import Any, Final, NotRequired, TypeAlias, cast, get_args

from langchain.agents.middleware import InterruptOnConfig
from langchain.agents.middleware.human_in_the_loop import DecisionType
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from deepagents._deprecation import warn_caller
from deepagents._state.programs import can_ask
from deepagents._state.runtime import in_graph, is_saved
from deepagents.errors import ConfigError
from deepagents.middleware._history import is_from_person
from deepagents.middleware.approval.files import Call, Specs, waits
from deepagents.permissions import Rules
from deepagents.tools import ToolSpec, specs_by_name
from deepagents.tools._tool import failure_message
from deepagents.tools.execute import EXECUTE


class ApprovalConfig(InterruptOnConfig):
    """LangChain's `InterruptOnConfig`, and whether a person's decision may be remembered in the thread."""

    remember: NotRequired[bool]


InterruptOn: TypeAlias = Mapping[str, bool | InterruptOnConfig | ApprovalConfig]

_KEYS: Final = ApprovalConfig.__required_keys__ | ApprovalConfig.__optional_keys__
_DECISIONS: Final[tuple[DecisionType, ...]] = get_args(DecisionType)
EDITED: Final = "hitl_edited_tool_calls"
"""State key of LangChain's approval: by the id of a call, what a person replaced it by."""
DECIDED: Final = "decided_calls"
"""State key: by the id of a call, what a person decided about it, from the beginning of the thread on."""
_OF_SERVERS: Final = "mcp__"
"""How the names of all tools of MCP servers begin."""
_NO_CHECKPOINTER: Final = (
    "No answer to this can reach the agent, because no checkpointer keeps the thread; give one to "
    "create_deep_agent, such as checkpointer=InMemorySaver()."
)
_FORM: Final = (
    'the answer has to be {"decisions": [...]}, with one decision for each request, in order: '
    '{"type": "approve"}, {"type": "edit", "edited_action": {"name": ..., "args": {...}}}, '
    '{"type": "reject", "message": ...} or {"type": "respond", "message": ...}'
)
MOST_ANSWERS: Final = 20
_GIVEN_UP: Final = (
    f"{MOST_ANSWERS} answers came to the question whether this call may run, and none could be used, so it "
    "was not run. Make it again only if the user asks for it."
)
_IN_PROGRAM: Final = (
    "This call waits for a person, and the program that this agent works for cannot wait, so it was not run. "
    "Say so in your answer."
)
_RUNNERS: Final = (
    "langchain.",
    "langchain_core.",
    "langgraph.",
    "langsmith.",
    "concurrent.",
    "threading.",
    "asyncio.",
    "contextvars.",
)
"""Packages between the line that runs an agent and its middleware: a warning names that line."""


class Entries(dict[str, Any]):
    """Entries of tools by name, and by patterns of the names of MCP servers' tools, such as `mcp__github__*`.

    A full name counts before a pattern, a longer pattern before a shorter one; `free` are names and patterns
    that never ask.
    """

    def __init__(self, entries: Mapping[str, Any], free: Iterable[str]) -> None:
        super().__init__(entries)
        self._free = dict.fromkeys(free)
        self._patterns = sorted(filter(is_pattern, (*entries, *self._free)), key=len, reverse=True)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the entry that counts for a tool."""
        if name in self._free:
            return default
        if super().__contains__(name) or not name.startswith(_OF_SERVERS):
            return super().get(name, default)
        pattern = next((each for each in self._patterns if fnmatchcase(name, each)), None)
        return default if pattern is None else super().get(pattern, default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None


def is_pattern(name: str) -> bool:
    """Return whether an entry is for all tools whose names are like its own."""
    return "*" in name


class CallerError(Exception):
    """What a caller's own function raised while a request was made, be it a question of its own."""


def validate_interrupt_on(interrupt_on: object) -> InterruptOn:
    """Return the entries, once each is known to be of a form that can be asked by.

    Raises:
        ConfigError: for decisions that do not exist, or none.
        TypeError: for an entry that is neither a bool nor a dict.
    """
    if interrupt_on is None:
        return {}
    if not isinstance(interrupt_on, Mapping):
        raise TypeError(f"interrupt_on must be a dict from tool names to rules, got {interrupt_on!r}")
    for tool, entry in cast("Mapping[str, Any]", interrupt_on).items():
        if is_pattern(tool) and not tool.startswith(_OF_SERVERS):
            raise ConfigError(
                f"interrupt_on has the pattern {tool!r}; patterns are for tools of MCP servers, such as "
                "'mcp__github__*'; name each other tool"
            )
        _validate_entry(tool, entry)
    return cast("InterruptOn", interrupt_on)


def _validate_entry(tool: str, entry: Any) -> None:
    if isinstance(entry, bool):
        return
    if not isinstance(entry, Mapping):
        raise TypeError(
            f"interrupt_on of {tool!r} must be True, False or {{'allowed_decisions': [...]}}, got {entry!r}"
        )
    fields = cast("Mapping[str, Any]", entry)
    allowed = fields.get("allowed_decisions")
    listed = cast("Sequence[Any]", allowed) if isinstance(allowed, list | tuple) else ()
    if not listed or any(each not in _DECISIONS for each in listed):
        known = ", ".join(map(repr, _DECISIONS))
        unknown = [f"; it has no key {key!r}" for key in fields if key not in _KEYS]
        raise ConfigError(
            f"allowed_decisions of {tool!r} must be some of {known}, got {allowed!r}{''.join(unknown)}"
        )
    if not isinstance(remember := fields.get("remember", False), bool):
        raise TypeError(f"'remember' of {tool!r} must be True or False, got {remember!r}")


def add_path_rules(
    rules: Rules,
    interrupt_on: InterruptOn | None = None,
    specs: Specs | None = None,
    *,
    binds_commands: bool = False,
) -> dict[str, bool | InterruptOnConfig]:
    """Return the entries of a caller together with those for the tools that rules make wait.

    A caller's entry says how to ask, and for which further calls; none lifts what a rule makes wait. With
    `binds_commands`, a command could touch what waits, and its text does not say which one does. Where
    commands wait, what is typed into a running one does too: a shell runs it. Where edits wait, those of
    another form do too.
    """
    known = specs_by_name() if specs is None else specs

    def waits_by_rule(request: Any) -> bool:
        return waits(rules, request.tool_call, request.state, known, binds_commands=binds_commands)

    merged = _with_alike(dict(interrupt_on or {}), known)
    for tool, spec in known.items():
        by_path = spec.operation is not None and rules.has("interrupt", spec.operation)
        given = merged.get(tool)
        # With a caller's False, the tool itself refuses what needs a question.
        by_question = spec.find_question is not None and given is not False
        if not by_path and not by_question and not (binds_commands and spec.effect == "run"):
            continue
        if given is None or given is False:
            merged[tool] = _entry_for(spec, waits_by_rule)
        elif isinstance(given, dict) and (own := given.get("when")) is not None:
            merged[tool] = cast("InterruptOnConfig", {**given, "when": _either(own, waits_by_rule)})
    return merged


def _entry_for(spec: ToolSpec, when: Callable[[Any], bool]) -> InterruptOnConfig:
    """Return the entry for a tool that no caller named; one that asks by itself says why."""
    entry = InterruptOnConfig(allowed_decisions=[*_DECISIONS], when=when)
    if (find_question := spec.find_question) is None:
        return entry

    def describe(call: Mapping[str, Any], *_: Any) -> str:
        args = json.dumps(call["args"], ensure_ascii=False)
        return f"{spec.name} {args}\n\n{find_question(call['args'])}."

    return cast("InterruptOnConfig", {**entry, "description": describe, "remember": True})


def _with_alike(
    given: dict[str, bool | InterruptOnConfig], specs: Specs
) -> dict[str, bool | InterruptOnConfig]:
    """Return the entries with those for tools that do what a tool with an entry does, in another form."""
    alike: dict[str, bool | InterruptOnConfig] = {}
    for name, spec in specs.items():
        types = spec.effect == "run" and spec.about_background
        entries = (given.get(each, False) for each in ((EXECUTE.name,) if types else spec.instead_of))
        if entry := next(filter(None, entries), False):
            # The functions of a caller read the arguments of its own tool.
            plain = entry is True or {key: value for key, value in entry.items() if not callable(value)}
            alike[name] = cast("bool | InterruptOnConfig", plain)
    return {**alike, **given}


def _either(one: Callable[[Any], bool], other: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda request: one(request) or other(request)


def call_once(config: InterruptOnConfig, find: Callable[[Call], object | None]) -> InterruptOnConfig:
    """Return the entry with its functions called once for each call, their errors marked as the caller's.

    LangChain calls them again for each answer, and an error of theirs would look like a wrong answer. Where
    decisions may be remembered, the entry does not ask about calls for which `find` has one.
    """
    given: Callable[[Any], Any] | None = config.get("when")

    def when(request: Any) -> bool:
        asks = given is None or bool(given(request))
        return asks and not (config.get("remember") and find(request.tool_call))

    own = {key: _once(each) for key, each in {**config, "when": when}.items() if callable(each)}
    return cast("InterruptOnConfig", {**config, **own})


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[int, Any] = {}

    @wraps(function)
    def call(given: Any, *more: Any) -> Any:
        # By identity: calls are dicts, which have no hash, and two equal calls are two questions.
        key = id(getattr(given, "tool_call", given))
        if key not in known:
            try:
                known[key] = function(given, *more)
            except Exception as error:
                raise CallerError from error
        return known[key]

    return call


def explain_no_checkpointer() -> str | None:
    """Explain that no answer can come, where no thread is kept."""
    return None if not in_graph() or is_saved() else _NO_CHECKPOINTER


def warn_without_checkpointer(messages: Sequence[Any]) -> None:
    """Warn before the first call of the model, rather than at the first question, that no thread is kept."""
    # Once for each message of a person, not at every step of the work.
    begins = not messages or is_from_person(messages[-1])
    if begins and explain_no_checkpointer():
        warn_caller(f"Calls of this agent may wait for a person. {_NO_CHECKPOINTER}", beyond=_RUNNERS)


def give_up(asked: Sequence[Call]) -> dict[str, Any]:
    """Answer the calls that were asked about as not run."""
    reason = _GIVEN_UP if can_ask() else _IN_PROGRAM
    answers = [failure_message(call["name"], call["id"] or "", "not_run", reason) for call in asked]
    return {"messages": answers, EDITED: {}}


def find_executed_call(request: ToolCallRequest) -> Call:
    """Return the call of a request, or a person's replacement of it."""
    call = cast("Call", request.tool_call)
    edits: Mapping[str, Any] = cast("Mapping[str, Any]", request.state).get(EDITED) or {}
    edit = edits.get(call["id"])
    return call if edit is None else {**call, **edit}


def rewrite_question(
    raised: GraphInterrupt,
    calls: Sequence[Call],
    can_remember: Callable[[str], bool],
    *remarks: str | None,
) -> GraphInterrupt:
    """Return LangChain's question with the id of each call, what could be remembered, and these remarks."""
    remark = " ".join(filter(None, remarks))

    def rewrite(request: Mapping[str, Any]) -> dict[str, Any]:
        # By identity: a request has no id, and two calls may have equal arguments.
        asked = next((call["id"] for call in calls if call["args"] is request["args"]), None)
        description = f"{remark}\n\n{request['description']}" if remark else request["description"]
        offer = {"remember": request["args"]} if can_remember(request["name"]) else {}
        return {**request, "description": description, "tool_call_id": asked, **offer}

    def rewrite_all(value: Mapping[str, Any]) -> dict[str, Any]:
        requests = [rewrite(request) for request in value["action_requests"]]
        return {**value, "action_requests": requests, **({"error": remark} if remark else {})}

    return GraphInterrupt([Interrupt(value=rewrite_all(each.value), id=each.id) for each in raised.args[0]])


def describe_error(error: Exception) -> str:
    """Describe why an answer could not be used, in the words of the check where it has some."""
    problem = str(error) if type(error) is ValueError else _FORM
    return f"The last answer could not be used: {problem.rstrip('.')}."


def decisions_in(answer: object) -> Sequence[Mapping[str, Any]]:
    """Return the decisions of an answer, none where it is the answer to a question of the caller's own."""
    return cast("Any", answer).get("decisions", ()) if isinstance(answer, Mapping) else ()


def check_answer(
    decisions: Sequence[Mapping[str, Any]], edits: Mapping[str, Any], tools: Collection[str] | None
) -> None:
    """Check what LangChain does not: that calls instead are calls of tools, and replies are text.

    Raises:
        ValueError: for an answer that cannot be used.
    """
    for edit in edits.values():
        match edit:
            case {"name": str(name), "args": dict()}:
                if tools is not None and name not in tools:
                    raise ValueError(f"there is no tool {name!r}; choose one of {', '.join(sorted(tools))}")
            case _:
                raise ValueError(_FORM)
    for decision in decisions:
        message: object = decision.get("message")
        if decision["type"] == "respond" and not _is_content(message):
            raise ValueError(f"'message' of a respond decision must be text, got {message!r}")


def find_decided(
    decisions: Sequence[Mapping[str, Any]], asked: Sequence[Call]
) -> dict[str, Mapping[str, Any]]:
    """Return by the id of its call what a person decided; what a program did has the mark `verbatim`."""
    kept = ("type", "message", "edited_action")
    return {
        call["id"]: {key: decision[key] for key in kept if decision.get(key)}
        for decision, call in zip(decisions, asked, strict=False)
        if not decision.get("verbatim")
    }


def word_refusals(
    update: dict[str, Any], decisions: Sequence[Mapping[str, Any]], asked: Sequence[Call]
) -> dict[str, Any]:
    """Return the update with the words of `verbatim` rejections alone.

    LangChain writes before them that a person rejected the call, and a program that decides is none.
    """
    words = {
        call["id"]: str(decision["message"])
        for decision, call in zip(decisions, asked, strict=False)
        if decision["type"] == "reject" and decision.get("verbatim") and decision.get("message")
    }
    if not words:
        return update
    messages = [
        each.model_copy(update={"content": words[each.tool_call_id]})
        if isinstance(each, ToolMessage) and each.tool_call_id in words
        else each
        for each in update.get("messages", ())
    ]
    return {**update, "messages": messages}


def _is_content(message: object) -> bool:
    if isinstance(message, list):
        return all(isinstance(each, str | dict) for each in cast("list[Any]", message))
    return isinstance(message, str)

"""Turn the chunks of a LangGraph stream into events: a pure mapping that remembers who is who."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, is_dataclass
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Interrupt
from pydantic import BaseModel

from deepagents._state.runtime import LibraryEvent
from deepagents.events import (
    AnswerBroken,
    ApprovalNeeded,
    ApprovalRequest,
    Custom,
    Event,
    FinalAnswer,
    PlanChanged,
    QuestionAsked,
    Reasoning,
    SubagentFinished,
    SubagentStarted,
    TaskChanged,
    Todo,
    Token,
    ToolCalled,
    ToolFinished,
    Usage,
    from_dict,
)
from deepagents.limits import Tokens
from deepagents.observe.roster import MAIN, Author, Namespace, Roster, is_for_middleware

Chunk: TypeAlias = tuple[Namespace, str, Any]
_CallKey: TypeAlias = tuple[str | None, str]
"""Whose call it is, and its id: providers repeat ids."""

_MODEL_NODE: Final = "model"
_TOOL_NODE: Final = "tools"
_INTERRUPT: Final = "__interrupt__"
_BROKEN: Final = "broken"
"""Where an answer that broke off says how."""
_REASONING: Final = "reasoning_content"
"""Where LangChain's classes keep the reasoning that servers send next to the text."""
_SAVED_TO: Final = "lc_evicted_to"
"""Where a result that was too large names the file that it was saved to."""


class Observer:
    """Maps the chunks of one thread to events, and remembers what is needed to tell agents and calls apart.

    It takes the chunks of `stream(..., stream_mode=["messages", "updates", "custom", "tasks"],
    subgraphs=True)`, wherever they come from. Keep one observer for all runs of a thread, or let a new one
    `recall` the thread first, so that a subagent goes on under its label.
    """

    def __init__(self) -> None:
        self.is_new = True
        self._roster = Roster()
        self._calls: dict[_CallKey, ToolCalled | SubagentStarted] = {}
        self._finished_calls: set[_CallKey] = set()
        self._begun: set[_CallKey] = set()
        """The calls whose tools have begun in a run that has not come to its end."""
        self._asked: set[str] = set()
        self._tasks: dict[str, str] = {}
        self._answer: FinalAnswer | None = None
        self._waits = False

    def recall(self, messages: Iterable[BaseMessage], *, resuming: bool, was_cut_off: bool = False) -> None:
        """Learn from a thread's messages who was called; of open calls too, where a run is resumed.

        With `was_cut_off`, the event of each of these calls comes once more when the call begins again.
        """
        self.is_new = False
        known: dict[_CallKey, ToolCalled | SubagentStarted] = {}
        for message in messages:
            if isinstance(message, AIMessage):
                known |= {(None, event.call_id): event for event in self._see_calls(message, MAIN)}
                self._finished_calls.difference_update(known)
            elif isinstance(message, ToolMessage):
                known.pop((None, message.tool_call_id), None)
                self._finished_calls.add((None, message.tool_call_id))
        if resuming:
            self._calls |= known
        if was_cut_off:
            self._begun.update(known)

    def see(self, chunk: Chunk) -> Iterator[Event]:
        """Return the events of one chunk."""
        self.is_new = False
        namespace, mode, data = chunk
        match mode:
            case "messages":
                yield from self._see_message(namespace, *data)
            case "updates":
                yield from self._see_update(namespace, data)
            case "custom":
                author = self._roster.who(namespace)
                is_own = isinstance(data, LibraryEvent)
                yield from_dict({**data, **author}) if is_own else Custom(data, **author)
            case "tasks" if "result" not in data:
                call_id = self._roster.note_task(data)
                yield from self._see_beginning(
                    call_id, self._roster.who(namespace, _name_in(data.get("metadata")))
                )
            case _:
                return

    def end(self) -> Iterator[Event]:
        """Return the final answer, when a run has ended with one; call it when the stream is over."""
        if self._answer is not None and not self._waits:
            yield self._answer
            self._answer = None
        self._waits = False
        # A call that waits for a person begins again too, and is the same call.
        self._begun.clear()

    def _see_beginning(self, call_id: str | None, author: Author) -> Iterator[Event]:
        """Return the event of a call that was cut off, and now begins again."""
        key = (author["agent"], call_id or "")
        if key in self._begun and key in self._calls:
            yield self._calls[key]
        if call_id is not None:
            self._begun.add(key)

    def _see_message(
        self, namespace: Namespace, message: BaseMessage, metadata: Mapping[str, Any]
    ) -> Iterator[Event]:
        author = self._roster.who(namespace, _name_in(metadata))
        if isinstance(message, AIMessage) and metadata.get("langgraph_node") == _MODEL_NODE:
            yield from _read_message(message, author)

    def _see_update(self, namespace: Namespace, data: Mapping[str, Any]) -> Iterator[Event]:
        for node, update in data.items():
            if node == _INTERRUPT:
                yield from self._see_interrupts(namespace, update)
                continue
            for part in _parts(update):
                yield from self._see_part(namespace, node, part)

    def _see_part(self, namespace: Namespace, node: str, part: Mapping[str, Any]) -> Iterator[Event]:
        author, messages = self._roster.who(namespace), _messages(part)
        if is_for_middleware(namespace):
            yield from (
                event for each in messages if node == _MODEL_NODE for event in _read_usage(each, author)
            )
            return
        if node == _MODEL_NODE:
            yield from self._see_answers(messages, part.get("structured_response"), author)
        elif author == MAIN:
            self._take_last_words(messages)
        yield from self._see_results(node, messages, author)
        if part.get("todos") is not None:
            yield PlanChanged(
                tuple(Todo(todo["content"], todo["status"]) for todo in part["todos"]), **author
            )
        yield from self._elsewhere(part.get("async_tasks"), author)

    def _see_answers(self, messages: Sequence[BaseMessage], form: Any, author: Author) -> Iterator[Event]:
        settled = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
        for message in messages:
            if not isinstance(message, AIMessage):
                continue
            yield from _read_usage(message, author)
            if kind := message.response_metadata.get(_BROKEN):
                yield AnswerBroken(kind, **author)
            for event in self._see_calls(message, author):
                if form is None or event.call_id not in settled:
                    self._calls[event.agent, event.call_id] = event
                    self._finished_calls.discard((event.agent, event.call_id))
                    self._begun.discard((event.agent, event.call_id))
                    yield event
            if author == MAIN:
                self._answer = None if message.tool_calls and form is None else _final(message, form)

    def _see_calls(self, message: AIMessage, author: Author) -> Iterator[ToolCalled | SubagentStarted]:
        for call in message.tool_calls:
            call_id = call["id"] or ""
            match call["name"], call["args"]:
                case "task", {"subagent_type": str(name), "description": str(task)}:
                    anew = (author["agent"], call_id) in self._finished_calls
                    label = self._roster.note_delegation(name, call_id, author, anew=anew)["agent"] or name
                    yield SubagentStarted(name, task, call_id, label, **author)
                case name, args:
                    yield ToolCalled(name, args, call_id, **author)

    def _see_results(self, node: str, messages: Iterable[BaseMessage], author: Author) -> Iterator[Event]:
        for message in messages:
            if not isinstance(message, ToolMessage):
                continue
            key = (author["agent"], message.tool_call_id)
            if key in self._finished_calls:
                continue
            self._finished_calls.add(key)
            known = self._calls.pop(key, None)
            if known is not None or node == _TOOL_NODE:
                yield _result(message, known, author)

    def _take_last_words(self, messages: Sequence[BaseMessage]) -> None:
        """Take the last words that middleware gave an agent, as it does when it ends a run."""
        for message in messages:
            if isinstance(message, AIMessage) and not message.tool_calls:
                self._answer = _final(message, None)

    def _elsewhere(self, tasks: Any, author: Author) -> Iterator[Event]:
        for task_id, task in cast("Mapping[str, Mapping[str, Any]]", tasks or {}).items():
            status = str(task.get("status"))
            if self._tasks.get(task_id) != status:
                self._tasks[task_id] = status
                yield TaskChanged(task_id, str(task.get("agent_name")), status, **author)

    def _see_interrupts(self, namespace: Namespace, interrupts: Sequence[Interrupt]) -> Iterator[Event]:
        self._waits = True
        if is_for_middleware(namespace):
            return
        # An interrupt of a subagent comes again from each graph around it.
        new = [each for each in interrupts if each.id not in self._asked]
        self._asked.update(each.id for each in new)
        author = self._roster.who(namespace)
        if event := interrupts_to_event(new, author):
            yield event
        yield from (QuestionAsked(each.id, each.value, **author) for each in new if not any(_requests(each)))


def read_reasoning(message: AIMessage) -> str:
    """Return what a model has thought, as its provider shows it, in a message or in a piece of one."""
    if isinstance(message.content, str) and not message.additional_kwargs:
        return ""
    thoughts = [each.get("reasoning") or "" for each in message.content_blocks if each["type"] == "reasoning"]
    # Where LangChain has a translator for the provider, it does not look here.
    return "".join(thoughts) or str(message.additional_kwargs.get(_REASONING) or "")


def _read_message(message: AIMessage, author: Author) -> Iterator[Event]:
    """Return the reasoning and the text of a message, or of a piece of one."""
    if thought := read_reasoning(message):
        yield Reasoning(thought, **author)
    if message.text:
        yield Token(message.text, **author)


def _read_usage(message: BaseMessage, author: Author) -> Iterator[Event]:
    """Return what a message took, where its provider tells."""
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    if not usage:
        return
    tokens, made = Tokens.of(usage), usage.get("output_token_details") or {}
    model = message.response_metadata.get("model_name")
    name = model if isinstance(model, str) else None
    reasoning = made.get("reasoning") or 0
    yield Usage(*astuple(tokens), reasoning_tokens=reasoning, model=name, **author)


def _final(message: AIMessage, form: Any) -> FinalAnswer:
    plain: Any = form
    if isinstance(form, BaseModel):
        plain = form.model_dump(mode="json")
    elif is_dataclass(form) and not isinstance(form, type):
        plain = asdict(form)
    elif isinstance(form, Mapping):
        plain = dict(cast("Mapping[str, Any]", form))
    in_words = "" if form is None else json.dumps(plain, default=str, ensure_ascii=False)
    return FinalAnswer(message.text or in_words, plain, message.response_metadata.get(_BROKEN))


def _result(
    message: ToolMessage, known: ToolCalled | SubagentStarted | None, author: Author
) -> ToolFinished | SubagentFinished:
    if isinstance(known, SubagentStarted):
        return SubagentFinished(
            known.name, known.call_id, message.status, message.text, known.label, **author
        )
    name = known.name if known else message.name or "unknown"
    about = message.additional_kwargs
    artifact: Any = message.artifact
    exit_code: Any = cast("Any", artifact).get("exit_code") if isinstance(artifact, Mapping) else None
    exit_code = exit_code if isinstance(exit_code, int) else None
    # For the model the call went well: it got the output. For a person the command did not.
    status = "error" if exit_code else message.status
    further = about.get("error_code"), exit_code, about.get("error_type"), about.get(_SAVED_TO)
    return ToolFinished(message.tool_call_id, name, status, message.text, *further, **author)


def _name_in(metadata: Mapping[str, Any] | None) -> str | None:
    return metadata.get("lc_agent_name") if metadata else None


def _parts(update: Any) -> Iterator[Mapping[str, Any]]:
    for part in cast("list[Any]", update) if isinstance(update, list) else [update]:
        if isinstance(part, Mapping):
            yield cast("Mapping[str, Any]", part)


def _messages(part: Mapping[str, Any]) -> list[BaseMessage]:
    found: Any = part.get("messages")
    many = cast("list[Any]", found) if isinstance(found, list) else [found]
    return [each for each in many if isinstance(each, BaseMessage)]


def interrupts_to_event(interrupts: Iterable[Interrupt], author: Author = MAIN) -> ApprovalNeeded | None:
    """Gather the tool calls that interrupts ask about; `None` when they ask about none."""
    requests = tuple(request for each in interrupts for request in _requests(each))
    return ApprovalNeeded(requests, **author) if requests else None


def _requests(interrupt: Interrupt) -> Iterator[ApprovalRequest]:
    value: Any = interrupt.value
    if not isinstance(value, Mapping):
        return
    asked = cast("Mapping[str, Any]", value)
    if asked.get("type") == "tool_approval":
        yield _request(interrupt.id, asked, {})
    if "action_requests" not in asked:
        return
    actions = cast("Sequence[Mapping[str, Any]]", asked["action_requests"])
    reviews = cast("Sequence[Mapping[str, Any]]", asked["review_configs"])
    for action, review in zip(actions, reviews, strict=True):
        yield _request(interrupt.id, action, review)


def _request(interrupt_id: str, action: Mapping[str, Any], review: Mapping[str, Any]) -> ApprovalRequest:
    allowed = review.get("allowed_decisions")
    return ApprovalRequest(
        interrupt_id,
        action["name"],
        action["args"],
        action.get("description") or "",
        **({} if allowed is None else {"allowed": tuple(allowed)}),
        tool_call_id=action.get("tool_call_id") or review.get("tool_call_id"),
    )

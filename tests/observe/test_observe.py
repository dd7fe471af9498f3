"""What a run does arrives as events, in order, from the right agent."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware, ModelRetryMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt, interrupt
from pydantic import BaseModel

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend, StateBackend
from deepagents.events import (
    ApprovalNeeded,
    ContextCompacted,
    Custom,
    Event,
    FinalAnswer,
    LimitNear,
    LimitReached,
    ModelFailed,
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
from deepagents.limits import Limits
from deepagents.middleware.rubric import RubricMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.observe import Observer, aobserve, interrupts_to_event, observe, resume_with
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests.conftest import CallMode

CONFIG: Any = {"configurable": {"thread_id": "t"}}
pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
HELLO: Any = {"messages": [("user", "hello")]}


class Observed:
    """An agent whose stream is events."""

    def __init__(self, agent: Any, observer: Observer | None = None) -> None:
        self._agent = agent
        self._observer = observer

    def stream(self, given: Any) -> Iterator[Event]:
        return observe(self._agent, given, CONFIG, observer=self._observer)

    def astream(self, given: Any) -> AsyncIterator[Event]:
        return aobserve(self._agent, given, CONFIG, observer=self._observer)


def events_of(model: ScriptedModel, **options: Any) -> list[Event]:
    return list(Observed(create_deep_agent(model, **options)).stream(HELLO))


def of_kind(events: list[Event], *kinds: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kinds)]


def test_an_answer_is_streamed_and_then_final(call_mode: CallMode) -> None:
    events = call_mode.stream(Observed(create_deep_agent(ScriptedModel("Good morning."))), HELLO)

    assert events == [Token("Good "), Token("morning."), FinalAnswer("Good morning.")]


def test_a_tool_call_is_followed_by_its_result() -> None:
    asked = call("write_file", file_path="/a.txt", content="hi")

    events = events_of(ScriptedModel(asked, "Done."))

    call_id = asked.tool_calls[0]["id"] or ""
    assert of_kind(events, ToolCalled, ToolFinished) == [
        ToolCalled("write_file", {"file_path": "/a.txt", "content": "hi"}, call_id),
        ToolFinished(call_id, "write_file", "success", "Created file /a.txt"),
    ]


def test_a_failed_call_has_an_error_result() -> None:
    events = events_of(ScriptedModel(call("read_file", file_path="/none"), "No such file."))

    (finished,) = of_kind(events, ToolFinished)
    assert finished.status == "error"
    assert "/none" in finished.text


@pytest.mark.parametrize(("command", "status", "exit_code"), [("true", "success", 0), ("exit 3", "error", 3)])
def test_a_command_has_failed_where_its_exit_code_says_so(
    tmp_path: Path, command: str, status: str, exit_code: int
) -> None:
    model = ScriptedModel(call("execute", command=command), "Done.")

    (finished,) = of_kind(events_of(model, backend=LocalShellBackend(tmp_path)), ToolFinished)
    assert (finished.status, finished.code, finished.exit_code) == (status, None, exit_code)


def test_a_plan_is_told_when_it_changes() -> None:
    plan = [{"content": "look", "status": "in_progress"}, {"content": "act", "status": "pending"}]

    events = events_of(ScriptedModel(call("write_todos", todos=plan), "Planned."))

    assert of_kind(events, PlanChanged) == [
        PlanChanged((Todo("look", "in_progress"), Todo("act", "pending")))
    ]


def test_tokens_that_were_used_are_told() -> None:
    used = AIMessage("Hi", usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9})

    assert of_kind(events_of(ScriptedModel(used)), Usage) == [Usage(7, 2)]


def test_parallel_subagents_of_one_name_are_told_apart() -> None:
    tasks = [("task", {"description": f"part {n}", "subagent_type": "general-purpose"}) for n in (1, 2)]
    model = ScriptedModel(calls(*tasks), "one", "two", "Both done.")

    events = events_of(model)

    started = of_kind(events, SubagentStarted)
    assert [(each.name, each.task, each.agent) for each in started] == [
        ("general-purpose", "part 1", None),
        ("general-purpose", "part 2", None),
    ]
    assert {token.agent for token in of_kind(events, Token)} == {
        None,
        "general-purpose",
        "general-purpose 2",
    }
    finished = of_kind(events, SubagentFinished)
    assert {(each.call_id, each.status) for each in finished} == {
        (each.call_id, "success") for each in started
    }
    assert {each.text for each in finished} == {"one", "two"}
    assert of_kind(events, FinalAnswer) == [FinalAnswer("Both done.")]


def test_what_a_subagent_does_carries_its_name() -> None:
    worker: Any = {
        "name": "writer",
        "description": "writes",
        "system_prompt": "",
        "model": ScriptedModel(call("write_file", file_path="/a", content="x"), "written"),
    }
    model = ScriptedModel(call("task", description="write", subagent_type="writer"), "Done.")

    events = events_of(model, subagents=[worker])

    (called,) = of_kind(events, ToolCalled)
    (finished,) = of_kind(events, ToolFinished)
    assert (called.name, called.agent) == ("write_file", "writer")
    assert (finished.status, finished.agent) == ("success", "writer")


def test_calls_that_wait_for_a_person_are_asked_for_once(call_mode: CallMode) -> None:
    tasks = [("task", {"description": str(n), "subagent_type": "general-purpose"}) for n in (1, 2)]
    writes = [call("write_file", file_path=f"/{n}", content="x") for n in (1, 2)]
    own = calls(
        ("write_file", {"file_path": "/3", "content": "x"}),
        ("write_file", {"file_path": "/4", "content": "y"}),
    )
    model = ScriptedModel(calls(*tasks), *writes, "one", "two", own, "Done.")
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    observed = Observed(agent, Observer())

    first = call_mode.stream(observed, HELLO)
    needed = of_kind(first, ApprovalNeeded)
    approvals = [(request, {"type": "approve"}) for each in needed for request in each.requests]
    second = call_mode.stream(observed, resume_with(approvals))
    (both,) = of_kind(second, ApprovalNeeded)
    no = {"type": "reject", "message": "one is enough"}
    third = call_mode.stream(
        observed, resume_with(zip(both.requests, [{"type": "approve"}, no], strict=True))
    )

    assert {each.requests[0].args["file_path"] for each in needed} == {"/1", "/2"}
    assert {each.agent for each in needed} == {"general-purpose", "general-purpose 2"}
    assert {each.agent for each in of_kind(second, ToolFinished)} == {each.agent for each in needed}
    assert [each.args["file_path"] for each in both.requests] == ["/3", "/4"]
    assert [each.status for each in of_kind(third, ToolFinished)] == ["error", "success"]
    assert of_kind(third, FinalAnswer) == [FinalAnswer("Done.")]


def test_a_rejected_call_is_finished_with_an_error() -> None:
    model = ScriptedModel(call("write_file", file_path="/a", content="x"), "As you wish.")
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    observed = Observed(agent, Observer())
    (needed,) = of_kind(list(observed.stream(HELLO)), ApprovalNeeded)
    no = {needed.requests[0].interrupt_id: {"decisions": [{"type": "reject", "message": "not now"}]}}

    events = list(observed.stream(Command(resume=no)))

    (finished,) = of_kind(events, ToolFinished)
    assert finished.status == "error"
    assert "not now" in finished.text


def test_a_repaired_history_is_not_told_again() -> None:
    model = ScriptedModel(call("write_file", file_path="/a", content="x"), "Something else, then.")
    agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
    list(Observed(agent).stream(HELLO))

    events = list(Observed(agent).stream({"messages": [("user", "never mind")]}))

    assert of_kind(events, ToolCalled, ToolFinished) == []
    assert events[-1] == FinalAnswer("Something else, then.")


def test_the_answer_that_a_grader_sends_back_is_not_the_final_one() -> None:
    verdicts = [
        {"result": "needs_revision", "explanation": "secret words", "criteria": [no("short")]},
        {
            "result": "satisfied",
            "explanation": "secret words",
            "criteria": [{"name": "short", "passed": True}],
        },
    ]
    used = {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}
    grader = ScriptedModel(
        *(call("GraderResponse", **each).model_copy(update={"usage_metadata": used}) for each in verdicts)
    )
    agent = create_deep_agent(ScriptedModel("Long.", "Short."), middleware=[RubricMiddleware(model=grader)])

    events = list(Observed(agent).stream({**HELLO, "rubric": "Be short."}))

    assert [token.text for token in of_kind(events, Token)] == ["Long.", "Short."]
    assert events[-1] == FinalAnswer("Short.")
    assert of_kind(events, FinalAnswer, ToolCalled, SubagentStarted) == [FinalAnswer("Short.")]
    assert [each.agent for each in of_kind(events, Usage)] == [None, None]


def no(name: str) -> dict[str, Any]:
    return {"name": name, "passed": False, "gap": "secret words"}


class Weather(BaseModel):
    """The weather."""

    degrees: int


def test_a_structured_answer_is_final_and_no_call_of_a_tool() -> None:
    events = events_of(ScriptedModel(call("Weather", degrees=7)), response_format=ToolStrategy(Weather))

    assert of_kind(events, ToolCalled, ToolFinished) == []
    assert events[-1] == FinalAnswer('{"degrees": 7}', {"degrees": 7})


def test_reasoning_is_told_apart_from_the_answer() -> None:
    thought: Any = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Yes."}]

    events = events_of(ScriptedModel(AIMessage(content=thought)))

    assert events == [Reasoning("Hm."), Token("Yes."), FinalAnswer("Yes.")]


def test_cached_and_reasoning_tokens_are_told() -> None:
    used = AIMessage(
        "Hi",
        usage_metadata={
            "input_tokens": 70,
            "output_tokens": 20,
            "total_tokens": 90,
            "input_token_details": {"cache_read": 60, "cache_creation": 5},
            "output_token_details": {"reasoning": 15},
        },
    )

    assert of_kind(events_of(ScriptedModel(used)), Usage) == [Usage(70, 20, 60, 5, 15)]


@pytest.mark.parametrize("time", ["5m", "1h"])
def test_what_a_provider_writes_to_a_cache_for_some_time_is_told(time: str) -> None:
    details: Any = {"cache_read": 0, "cache_creation": 0, f"ephemeral_{time}_input_tokens": 60}
    used: Any = {"input_tokens": 70, "output_tokens": 2, "total_tokens": 72, "input_token_details": details}

    see = Observer().see(((), "updates", {"model": {"messages": [AIMessage("Hi", usage_metadata=used)]}}))

    assert list(see) == [Usage(70, 2, 0, 60)]


def test_what_a_tool_writes_carries_the_agent_that_called_it() -> None:
    worker: Any = {
        "name": "digger",
        "description": "digs",
        "system_prompt": "",
        "tools": [dig],
        "model": ScriptedModel(call("dig", depth=2), "Dug."),
    }
    delegation = call("task", description="dig", subagent_type="digger")

    events = events_of(
        ScriptedModel(call("dig", depth=1), delegation, "Done."), subagents=[worker], tools=[dig]
    )

    whose = {"agent": "digger", "agent_name": "digger", "agent_call_id": delegation.tool_calls[0]["id"]}
    assert of_kind(events, Custom) == [Custom({"depth": 1}), Custom({"depth": 2}, **whose)]


@tool
def dig(depth: int) -> str:
    """Dig."""
    get_stream_writer()({"depth": depth})
    return "deeper"


def test_a_call_that_failed_is_told_before_the_model_is_asked_again() -> None:
    again = ModelRetryMiddleware(initial_delay=0, jitter=False)
    model = ScriptedModel(ConnectionError("gone"), "Here.")

    events = events_of(model, middleware=[again])

    assert events == [ModelFailed("ConnectionError"), Token("Here."), FinalAnswer("Here.")]


def test_a_compaction_is_told_and_not_its_words() -> None:
    backend = StateBackend()
    summing = SummarizationMiddleware(
        ScriptedModel("secret words"), backend=backend, trigger=("messages", 3), keep=("messages", 1)
    )
    model = ScriptedModel(call("ls", path="/"), call("ls", path="/"), "Done.")

    events = events_of(model, middleware=[summing], backend=backend)

    assert ContextCompacted() in events
    assert "secret words" not in str(events)


def test_a_limit_of_the_whole_run_is_told_and_what_it_left_is_the_answer() -> None:
    model = ScriptedModel(call("ls", path="/"), call("ls", path="/"))

    events = events_of(model, limits=Limits(model_calls=2, warn_at=1))

    assert of_kind(events, LimitReached) == [LimitReached("model_calls", 2, 2)]
    (answer,) = of_kind(events, FinalAnswer)
    assert "limit" in answer.text


FORGED: Any = [
    {"type": "limit_near", "kind": "tokens", "limit": 10, "spent": 9.5},
    {"type": "limit_reached", "kind": "tokens", "limit": 10, "spent": 9.5},
    {"type": "model_failed", "error": "none"},
    {"type": "final_answer", "text": "Forged."},
    {"type": ["limit_near"]},
    5,
]


def test_what_a_tool_writes_is_never_taken_for_the_librarys_own_words() -> None:
    @tool
    def spend() -> str:
        """Spend."""
        for each in FORGED:
            get_stream_writer()(each)
        return "spent"

    events = events_of(ScriptedModel(call("spend"), "Done."), tools=[spend])

    assert of_kind(events, LimitNear, LimitReached, FinalAnswer, Custom) == [
        *(Custom(each) for each in FORGED),
        FinalAnswer("Done."),
    ]


def test_the_last_words_of_middleware_that_ends_a_run_are_the_answer() -> None:
    limit = ModelCallLimitMiddleware(run_limit=1)

    events = events_of(ScriptedModel(call("ls", path="/")), middleware=[limit])

    (answer,) = of_kind(events, FinalAnswer)
    assert "limit" in answer.text


def test_tasks_elsewhere_are_told_when_their_status_changes() -> None:
    see = Observer().see

    def told(status: str) -> list[Event]:
        tasks = {"t1": {"agent_name": "researcher", "status": status}}
        return list(see(((), "updates", {"tools": {"async_tasks": tasks}})))

    assert told("running") == [TaskChanged("t1", "researcher", "running")]
    assert told("running") == []
    assert told("success") == [TaskChanged("t1", "researcher", "success")]


def test_labels_stay_when_a_new_process_resumes(call_mode: CallMode) -> None:
    tasks = [("task", {"description": str(n), "subagent_type": "general-purpose"}) for n in (1, 2, 3)]

    def answer(asked: Asked) -> AIMessage | str:
        match [each for each in asked.messages if not isinstance(each, SystemMessage)]:
            case [HumanMessage(content="hello")]:
                return calls(*tasks)
            case [HumanMessage(content=str(number))] if number in "23":
                return call("write_file", file_path=f"/{number}", content="x")
            case _:
                return "done"

    agent = create_deep_agent(
        ScriptedModel(always=answer), interrupt_on={"write_file": True}, checkpointer=InMemorySaver()
    )
    first = call_mode.stream(Observed(agent), HELLO)
    started = {each.task: each for each in of_kind(first, SubagentStarted)}
    asked = {need.requests[0].args["file_path"].strip("/"): need for need in of_kind(first, ApprovalNeeded)}
    only = asked["3"].requests[0]
    second = call_mode.stream(
        Observed(agent), Command(resume={only.interrupt_id: {"decisions": [{"type": "approve"}]}})
    )

    assert [started[n].label for n in "123"] == [f"general-purpose{n}" for n in ("", " 2", " 3")]
    assert only.tool_call_id
    assert {n: need.agent for n, need in asked.items()} == {n: started[n].label for n in "23"}
    (ended,) = of_kind(second, SubagentFinished)
    assert (ended.label, ended.call_id) == (started["3"].label, started["3"].call_id)
    (wrote,) = of_kind(second, ToolFinished)
    (said,) = of_kind(second, Token)
    for each in (wrote, said):
        assert (each.agent, each.agent_name, each.agent_call_id) == (
            "general-purpose 3",
            "general-purpose",
            started["3"].call_id,
        )


class FailsOnce(AgentMiddleware[Any, Any]):
    """Ends the run at the first call of a tool, as a process that is killed would."""

    failed = False

    def _fail(self) -> None:
        if not self.failed:
            self.failed = True
            raise ConnectionError("cut off")

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        self._fail()
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        self._fail()
        return await handler(request)


@pytest.mark.parametrize("in_a_new_process", [False, True])
def test_a_call_that_was_cut_off_is_told_again_as_it_begins_again(
    call_mode: CallMode, *, in_a_new_process: bool
) -> None:
    asked = call("write_file", file_path="/a.txt", content="hi")
    task = call("task", description="dig", subagent_type="general-purpose")
    agent = create_deep_agent(
        ScriptedModel(asked, task, "dug", "Done."), middleware=[FailsOnce()], checkpointer=InMemorySaver()
    )
    observed = Observed(agent, Observer())
    with pytest.raises(ConnectionError):
        call_mode.stream(observed, HELLO)

    events = call_mode.stream(Observed(agent) if in_a_new_process else observed, None)

    told = of_kind(events, ToolCalled, ToolFinished, SubagentStarted, SubagentFinished)
    assert [type(each) for each in told] == [ToolCalled, ToolFinished, SubagentStarted, SubagentFinished]
    assert told[0] == ToolCalled("write_file", asked.tool_calls[0]["args"], asked.tool_calls[0]["id"] or "")


def test_a_call_that_was_approved_is_told_once(call_mode: CallMode) -> None:
    agent = create_deep_agent(
        ScriptedModel(call("write_file", file_path="/a.txt", content="hi"), "Done."),
        interrupt_on={"write_file": True},
        checkpointer=InMemorySaver(),
    )
    observed = Observed(agent, Observer())
    first = call_mode.stream(observed, HELLO)
    (asked,) = of_kind(first, ApprovalNeeded)
    yes = {asked.requests[0].interrupt_id: {"decisions": [{"type": "approve"}]}}
    second = call_mode.stream(observed, Command(resume=yes))

    assert len(of_kind([*first, *second], ToolCalled)) == 1
    assert len(of_kind(second, ToolFinished)) == 1


def test_calls_whose_ids_a_provider_repeats_are_told_apart() -> None:
    def same_id(name: str, **args: Any) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "call_0"}])

    worker: Any = {"name": "s", "description": "d", "model": ScriptedModel(same_id("ls", path="/"), *"ab")}
    tasks = [same_id("task", description="d", subagent_type="s") for _ in range(2)]

    events = events_of(ScriptedModel(*tasks, "Done."), subagents=[worker])

    assert [each.label for each in of_kind(events, SubagentStarted)] == ["s", "s 2"]
    assert [(each.label, each.text) for each in of_kind(events, SubagentFinished)] == [
        ("s", "a"),
        ("s 2", "b"),
    ]
    assert [each.agent for each in of_kind(events, ToolFinished)] == ["s"]


async def test_closing_the_events_stops_the_run() -> None:
    ended: list[str] = []

    @tool
    async def wait() -> str:
        """Wait."""
        get_stream_writer()("begun")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stopped")
        return "waited"

    agent = create_deep_agent(ScriptedModel(call("wait"), "Done."), tools=[wait])
    async with aclosing(aobserve(agent, HELLO)) as events:
        async for event in events:
            if isinstance(event, Custom):
                break

    assert ended == ["stopped"]


def test_an_agent_in_a_tool_has_a_label_of_its_own() -> None:
    helper: Any = create_agent(ScriptedModel("named", "named"), name="helper")
    nameless: Any = create_agent(ScriptedModel("nameless"))

    @tool
    def ask_both() -> str:
        """Ask."""
        for each in (helper, nameless, helper):
            each.invoke({"messages": [("user", "?")]})
        return "asked"

    events = events_of(ScriptedModel(call("ask_both"), "Done."), tools=[ask_both], name="lead")

    tokens = [(token.text, token.agent) for token in of_kind(events, Token)]
    assert tokens == [
        ("named", "helper"),
        ("nameless", "ask_both"),
        ("named", "helper 2"),
        ("Done.", None),
    ]


def test_a_subagent_of_a_subagent_is_named_below_it() -> None:
    inner = create_deep_agent(
        ScriptedModel(call("task", description="deep", subagent_type="general-purpose"), "low", "middle")
    )
    lead: Any = {"name": "lead", "description": "leads", "runnable": inner}

    events = events_of(
        ScriptedModel(call("task", description="go", subagent_type="lead"), "top"), subagents=[lead]
    )

    assert [(token.text, token.agent, token.agent_name) for token in of_kind(events, Token)] == [
        ("low", "lead/general-purpose", "general-purpose"),
        ("middle", "lead", "lead"),
        ("top", None, None),
    ]
    nested = of_kind(events, SubagentStarted)[1]
    assert (nested.agent, nested.label) == ("lead", "lead/general-purpose")


def test_an_agent_inside_another_graph_is_the_one_that_speaks() -> None:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", create_deep_agent(ScriptedModel("Hi.")))
    graph.add_edge(START, "agent")

    events = list(Observed(graph.compile()).stream(HELLO))

    assert events == [Token("Hi."), FinalAnswer("Hi.")]


def test_an_error_of_the_model_reaches_the_caller() -> None:
    with pytest.raises(ConnectionError, match="gone"):
        events_of(ScriptedModel(ConnectionError("gone")))


def test_a_question_that_is_no_approval_is_told(call_mode: CallMode) -> None:
    @tool
    def ask() -> str:
        """Ask."""
        return interrupt({"text": "which call_mode?"})

    model = ScriptedModel(call("ask"), "Blue, then.")
    agent = create_deep_agent(model, tools=[ask], checkpointer=InMemorySaver())
    observed = Observed(agent, Observer())

    (asked,) = of_kind(call_mode.stream(observed, HELLO), QuestionAsked, ApprovalNeeded, FinalAnswer)
    events = call_mode.stream(observed, resume_with([(asked, "blue")]))

    assert asked == QuestionAsked(asked.interrupt_id, {"text": "which call_mode?"})
    assert from_dict(asked.as_dict()) == asked
    assert events[-1] == FinalAnswer("Blue, then.")


def test_interrupts_of_other_kinds_ask_for_no_approval() -> None:
    assert interrupts_to_event([Interrupt(value="what is your name?", id="i")]) is None


def test_chunks_of_any_shape_are_understood() -> None:
    observer = Observer()
    see = observer.see

    assert list(see(((), "updates", {"model": None}))) == []
    assert list(see(((), "updates", {"tools": [{"messages": []}, None]}))) == []
    assert list(see(((), "updates", {"model": {"messages": AIMessage("alone")}}))) == []
    assert list(see(((), "values", {"messages": []}))) == []
    assert list(observer.end()) == [FinalAnswer("alone")]
    assert list(observer.end()) == []


def test_awaited_events_that_nobody_reads_leave_nothing_behind() -> None:
    events: Any = aobserve(create_deep_agent(ScriptedModel("Hi.")), HELLO)
    with pytest.raises(TypeError, match="async"):
        list(events)

    # A coroutine that nobody awaited warns when it is collected.
    del events
    gc.collect()

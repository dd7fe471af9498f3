"""LimitsMiddleware: what counts, when the model is told, how an agent ends, and what nobody can count."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from deepagents import Limits, Price, RubricMiddleware, create_deep_agent
from deepagents.backends import LocalShellBackend
from deepagents.errors import ConfigError, StackError
from deepagents.events import LimitNear, LimitReached
from deepagents.middleware.limits import LIMIT_REACHED, LimitsMiddleware
from deepagents.observe import observe
from deepagents.testing import Asked, ScriptedModel, WindowedModel, call, calls, is_summary_request
from tests.conftest import CallMode

THREAD: Any = {"configurable": {"thread_id": "1"}}


def look(at: str) -> str:
    """Look."""
    return f"seen {at}"


def looking(**settings: Any) -> ScriptedModel:
    """Look somewhere else each time, for ever."""
    return ScriptedModel(always=lambda asked: call("look", at=str(len(asked.messages))), **settings)


def using(read: int, written: int, cached: int = 0, reply: str | None = None) -> AIMessage:
    made = AIMessage(reply) if reply else call("look", at=str(read + written))
    usage: Any = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    usage["input_token_details"] = {"cache_read": cached}
    return made.model_copy(update={"usage_metadata": usage})


def notes(model: ScriptedModel) -> list[str]:
    return [asked.last for asked in model.asked if asked.last.startswith("[Limits]")]


def mark(result: Any) -> Any:
    return result["messages"][-1].additional_kwargs[LIMIT_REACHED]


def test_a_run_within_its_limits_is_not_touched(call_mode: CallMode) -> None:
    with ScriptedModel(call("look", at="/"), "Done.") as model:
        agent = create_deep_agent(model, [look], limits=Limits(model_calls=10, tool_calls=10, seconds=600))
        result = call_mode.invoke(agent, {"messages": "Go"})

    assert result["messages"][-1].text == "Done."
    assert notes(model) == []
    assert "_limits_spent" not in result


def test_tokens_are_those_that_models_tell_of_in_all_calls(call_mode: CallMode) -> None:
    model = ScriptedModel(using(4_000, 1_000), using(3_000, 1_500), using(9, 1))
    agent = create_deep_agent(model, [look], limits=Limits(tokens=10_500))
    result = call_mode.invoke(agent, {"messages": "Go"})

    assert len(model.asked) == 2
    assert mark(result)["spent"] == 9_500
    assert "too little of the limit of 10,500 tokens is left" in result["messages"][-1].text


def test_money_is_what_they_cost_with_cached_input_at_its_own_price() -> None:
    price = Price(input=3, output=15, cached_input=0.3)
    model = ScriptedModel(using(1_000_000, 100_000, cached=600_000), using(1, 1))
    limits = Limits(money=2.88, prices={"scripted:scripted": price})
    result = create_deep_agent(model, [look], limits=limits).invoke({"messages": "Go"})

    assert len(model.asked) == 1
    assert mark(result)["spent"] == pytest.approx(1.2 + 0.18 + 1.5)


def test_a_price_may_stand_in_the_profile_of_a_model() -> None:
    cost: Any = {"cost": {"input": 1, "output": 2, "cache_read": 0.1}}
    model = ScriptedModel(using(1_000_000, 1))
    # LangChain warns of a key that it does not know, but only where a model is made.
    model.profile = cost
    agents: list[Any] = [
        create_deep_agent(model, [look], limits=Limits(money=1)),
        create_agent(model.then(using(1_000_000, 1)), [look], middleware=[LimitsMiddleware(Limits(money=1))]),
    ]
    for agent in agents:
        result = agent.invoke({"messages": "Go"})
        assert mark(result)["all_spent"]["money"] == pytest.approx(1.000002)


def test_a_model_without_a_price_is_refused_where_money_is_limited() -> None:
    with pytest.raises(ConfigError, match=r"what model 'scripted' costs.*Price"):
        create_deep_agent(ScriptedModel(), limits=Limits(money=1))
    other = ScriptedModel(model_name="other")
    with pytest.raises(ConfigError, match="'other'"):
        create_deep_agent(
            ScriptedModel(), limits=Limits(money=1, prices={"scripted": Price(1, 1)}), fallback_models=[other]
        )
    child: Any = {"name": "child", "description": "d", "system_prompt": "", "model": other}
    with pytest.raises(ConfigError, match="'other'"):
        create_deep_agent(
            ScriptedModel(), subagents=[child], limits=Limits(money=1, prices={"scripted": Price(1, 1)})
        )
    bare: Any = create_agent(looking(), [look], middleware=[LimitsMiddleware(Limits(money=1))])
    with pytest.raises(ConfigError, match="'scripted'"):
        bare.invoke({"messages": "Go"})


def test_the_model_is_told_once_of_each_kind_that_runs_short(call_mode: CallMode) -> None:
    model = looking()
    agent = create_deep_agent(
        model, [look], limits=Limits(model_calls=10, tool_calls=9), checkpointer=InMemorySaver()
    )
    result = call_mode.invoke(agent, {"messages": "Go"}, THREAD)

    first, *others = notes(model)
    assert first.startswith(
        "[Limits] left: 2 model calls of 10, this answer included; left: 1 tool call of 9."
    )
    assert others == []
    assert len(model.asked) == 10
    assert not any(each.text.startswith("[Limits]") for each in result["messages"])


def test_the_last_of_few_calls_is_always_announced() -> None:
    model = looking()
    create_deep_agent(model, [look], limits=Limits(model_calls=1)).invoke({"messages": "Go"})
    (note,) = notes(model)
    assert "1 model call of 1, this answer included" in note


def test_a_row_of_equal_calls_is_announced_refused_and_ends_the_agent() -> None:
    same, other = call("look", at="a"), call("look", at="b")
    model = ScriptedModel(same, other, same, same, other, same, same, same, same)
    agent = create_deep_agent(model, [look], limits=Limits(repeats=3))
    result = agent.invoke({"messages": "Go"})

    (note,) = notes(model)
    refused = result["messages"][-2]
    assert "same call 3 times in a row" in note
    assert refused.additional_kwargs["error_code"] == "limit_reached"
    assert "same call as the 3 before it" in refused.text
    assert mark(result)["kind"] == "repeats"
    assert "Last result: seen a" in result["messages"][-1].text


def test_two_calls_in_turn_are_a_row_too() -> None:
    one, other = call("look", at="a"), call("look", at="b")
    model = ScriptedModel(one, other, one, other, one, other, one, other)
    result = create_deep_agent(model, [look], limits=Limits(repeats=3)).invoke({"messages": "Go"})

    assert [each.text for each in result["messages"] if each.type == "tool"][:6] == ["seen a", "seen b"] * 3
    assert mark(result)["kind"] == "repeats"


def test_equal_calls_of_one_turn_count_too_and_a_new_message_begins_anew() -> None:
    same = ("look", {"at": "a"})
    model = ScriptedModel(calls(same, same, same), calls(same, same), "Fine.")
    agent = create_deep_agent(model, [look], limits=Limits(repeats=2), checkpointer=InMemorySaver())
    first = agent.invoke({"messages": "Go"}, THREAD)
    second = agent.invoke({"messages": "Again"}, THREAD)

    assert [each.status for each in first["messages"] if each.type == "tool"] == [
        "success",
        "success",
        "error",
    ]
    assert second["messages"][-1].text == "Fine."


def test_a_subagent_in_a_row_ends_alone() -> None:
    child: Any = {
        "name": "child",
        "description": "d",
        "system_prompt": "",
        "model": ScriptedModel(always=lambda _: call("look", at="a")),
    }
    with ScriptedModel(call("task", description="d", subagent_type="child"), "I go on.") as model:
        agent = create_deep_agent(model, [look], subagents=[child], limits=Limits(repeats=2))
        result = agent.invoke({"messages": "Go"})

    assert "same call was made more than 2 times" in result["messages"][-2].text
    assert result["messages"][-1].text == "I go on."


def test_the_final_answer_tells_what_there_is(call_mode: CallMode) -> None:
    model = ScriptedModel(
        call("write_todos", todos=[{"content": "Count", "status": "in_progress"}]),
        calls(("write_file", {"file_path": "/a.txt", "content": "1"}), text="I begin with a."),
        calls(
            ("write_file", {"file_path": "/b.txt", "content": "2"}),
            ("edit_file", {"file_path": "/none.txt", "old_string": "a", "new_string": "b"}),
        ),
    )
    result = call_mode.invoke(create_deep_agent(model, limits=Limits(model_calls=3)), {"messages": "Go"})

    said = result["messages"][-1].text
    assert "Last written: I begin with a." in said
    assert "- [in_progress] Count" in said
    assert "Files changed: /a.txt, /b.txt" in said
    assert "none.txt" not in said
    assert "3 model calls, 4 tool calls" in said
    assert set(result["files"]) == {"/a.txt", "/b.txt"}


class Form(BaseModel):
    """What is wanted."""

    answer: str


@pytest.mark.parametrize("tools", [[look], []])
def test_an_agent_with_a_form_ends_without_one(tools: list[Any]) -> None:
    wrong = call("Form", wrong=1)
    model = looking() if tools else ScriptedModel(always=lambda _: wrong)
    agent: Any = create_agent(
        model, tools, response_format=Form, middleware=[LimitsMiddleware(Limits(model_calls=3))]
    )
    result = agent.invoke({"messages": "Go"})

    assert len(model.asked) == 3
    assert "Stopped at a limit" in result["messages"][-1].text
    assert result.get("structured_response") is None


class Clock:
    """A tool after which time is up."""

    def __init__(self, seconds: float) -> None:
        self._busy = seconds

    def tool(self) -> Callable[..., str]:
        def work(at: str) -> str:
            """Work."""
            Event().wait(self._busy)
            return f"worked {at}"

        return work


def test_time_is_looked_at_before_each_call() -> None:
    model = ScriptedModel(always=lambda asked: call("work", at=str(len(asked.messages))))
    agent = create_deep_agent(model, [Clock(0.3).tool()], limits=Limits(seconds=0.25))
    result = agent.invoke({"messages": "Go"})

    assert len(model.asked) == 1
    assert mark(result)["kind"] == "seconds"
    assert "Last result: worked 2" in result["messages"][-1].text


def test_the_time_in_which_a_person_is_waited_for_does_not_count() -> None:
    model = ScriptedModel(call("work", at="a"), call("look", at="b"))
    agent = create_deep_agent(
        model,
        [Clock(0.2).tool(), look],
        limits=Limits(seconds=600, model_calls=2),
        interrupt_on={"look": True},
        checkpointer=InMemorySaver(),
    )
    began = monotonic()
    agent.invoke({"messages": "Go"}, THREAD)
    Event().wait(0.6)
    result = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)

    seconds = mark(result)["all_spent"]["seconds"]
    assert 0.2 <= seconds <= monotonic() - began - 0.6


def test_a_fork_counts_for_the_whole_and_not_twice() -> None:
    child: Any = {"name": "fork", "description": "d", "mode": "fork"}
    delegate = call("task", description="d", subagent_type="fork")
    model = ScriptedModel(call("look", at="a"), delegate, call("look", at="b"), "Report.", "Done.")
    agent = create_deep_agent(model, [look], subagents=[child], limits=Limits(model_calls=5, tool_calls=3))
    result = agent.invoke({"messages": "Go"})

    assert result["messages"][-1].text == "Done."
    assert len(model.asked) == 5


def test_a_command_gets_the_time_that_is_left(tmp_path: Any) -> None:
    model = ScriptedModel(always=lambda _: call("execute", command="exec sleep 60", timeout=50))
    backend = LocalShellBackend(root_dir=tmp_path, virtual_mode=True)
    agent = create_deep_agent(model, backend=backend, limits=Limits(seconds=0.8))
    result = agent.invoke({"messages": "Go"})

    assert len(model.asked) == 1
    assert "timed out after 1 seconds" in result["messages"][-2].text
    assert mark(result)["spent"] < 20


def test_reading_a_command_waits_for_no_longer_than_the_time_that_is_left(tmp_path: Any) -> None:
    model = ScriptedModel(
        call("execute", command="exec sleep 60", background=True),
        call("read_command", command_id="command-1", wait=50),
        always=lambda _: call("read_command", command_id="command-1", wait=50),
    )
    agent = create_deep_agent(model, backend=LocalShellBackend(tmp_path), limits=Limits(seconds=0.8))
    result = agent.invoke({"messages": "Go"})

    assert mark(result)["kind"] == "seconds"
    assert mark(result)["spent"] < 20


def test_summaries_and_graders_count() -> None:
    def answer(asked: Asked) -> Any:
        return (
            "notes" if is_summary_request(asked) else call("look", at="x" * 2_000 + str(len(asked.messages)))
        )

    model = WindowedModel(always=answer, window=6_000)
    result = create_deep_agent(model, [look], limits=Limits(model_calls=12)).invoke({"messages": "Go"})
    assert sum(map(is_summary_request, model.asked)) >= 1
    assert mark(result)["all_spent"]["model_calls"] == len(model.asked) == 12

    grader = ScriptedModel(
        always=lambda _: call(
            "GraderResponse",
            result="needs_revision",
            explanation="e",
            criteria=[{"name": "n", "passed": False, "gap": "g"}],
        )
    )
    worker = ScriptedModel(always=lambda _: "a poem")
    agent = create_deep_agent(
        worker, middleware=[RubricMiddleware(model=grader, max_iterations=20)], limits=Limits(model_calls=7)
    )
    result = agent.invoke({"messages": "Go", "rubric": "It rhymes."})
    assert len(worker.asked) + len(grader.asked) == 7


def test_attempts_count_and_a_limit_is_not_tried_again() -> None:
    model = ScriptedModel(always=lambda _: TimeoutError("busy"))
    agent = create_deep_agent(model, limits=Limits(model_calls=1), model_retries=5)
    result = agent.invoke({"messages": "Go"})

    assert len(model.asked) == 1
    assert "Stopped at a limit" in result["messages"][-1].text


def test_a_call_that_middleware_answers_itself_does_not_count(call_mode: CallMode) -> None:
    class Known(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return AIMessage("known")

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return AIMessage("known")

    limits = Limits(model_calls=1, per="thread")
    agent = create_deep_agent(
        ScriptedModel(), middleware=[Known()], limits=limits, checkpointer=InMemorySaver()
    )
    results = [call_mode.invoke(agent, {"messages": "Go"}, THREAD) for _ in range(3)]
    assert [each.text for each in results[-1]["messages"][1::2]] == ["known"] * 3


def test_an_agent_with_limits_inside_another_is_bound_by_both() -> None:
    def nested(own: int, outer: int) -> tuple[ScriptedModel, Any]:
        child = looking()
        inner: Any = create_deep_agent(child, [look], limits=Limits(model_calls=own))
        spec: Any = {"name": "child", "description": "d", "runnable": inner}
        model = ScriptedModel(call("task", description="d", subagent_type="child"), "Done.")
        agent = create_deep_agent(model, subagents=[spec], limits=Limits(model_calls=outer))
        return child, agent.invoke({"messages": "Go"})

    for own, outer, ran, last in ((3, 10, 3, "Done."), (10, 3, 2, "Stopped at a limit")):
        child, result = nested(own, outer)
        assert len(child.asked) == ran
        assert last in result["messages"][-1].text


def test_a_callers_middleware_binds_the_children_as_the_parameter_does() -> None:
    model = ScriptedModel(
        always=lambda asked: call("task", description=str(len(asked.messages)), subagent_type="child")
    )
    child = looking()
    spec: Any = {"name": "child", "description": "d", "system_prompt": "", "model": child}
    own = LimitsMiddleware(Limits(model_calls=5))
    agent = create_deep_agent(model, [look], subagents=[spec], middleware=[own])
    result = agent.invoke({"messages": "Go"})

    assert len(child.asked) + len(model.asked) == 5
    assert "Stopped at a limit" in result["messages"][-2].text
    with pytest.raises(StackError, match="limits= and a LimitsMiddleware"):
        create_deep_agent(model, middleware=[own], limits=Limits(model_calls=5))


def test_those_who_follow_a_run_are_told() -> None:
    agent = create_deep_agent(looking(), [look], limits=Limits(model_calls=5))
    events = list(observe(agent, {"messages": "Go"}))

    assert LimitNear(kind="model_calls", limit=5, spent=4) in events
    assert LimitReached(kind="model_calls", limit=5, spent=5) in events


def test_without_limits_there_is_no_middleware_and_no_channel() -> None:
    agent = create_deep_agent(ScriptedModel())
    assert "_limits_spent" not in agent.channels

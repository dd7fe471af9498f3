"""What counts where, who spoke, and how a run ends when a limit is reached elsewhere than at its model."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from deepagents import Limits, Price, RubricMiddleware, create_deep_agent
from deepagents.errors import ConfigError
from deepagents.middleware.limits import LIMIT_REACHED, LimitsMiddleware
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests.conftest import CallMode

REVISE = call(
    "GraderResponse",
    result="needs_revision",
    explanation="e",
    criteria=[{"name": "n", "passed": False, "gap": "g"}],
)


def look(at: str) -> str:
    """Look."""
    return f"seen {at}"


def mark(result: Any) -> Any:
    return result["messages"][-1].additional_kwargs[LIMIT_REACHED]


@pytest.mark.parametrize(
    "details",
    [
        {"cache_read": 0, "cache_creation": 1_000_000},
        {"cache_read": None, "cache_creation": 0, "ephemeral_5m_input_tokens": 1_000_000},
        {"cache_creation": 0, "ephemeral_5m_input_tokens": 400_000, "ephemeral_1h_input_tokens": 600_000},
    ],
)
def test_what_is_written_to_a_cache_has_its_own_price_however_it_is_told(details: Any) -> None:
    usage: Any = {"input_tokens": 1_000_000, "output_tokens": 1, "total_tokens": 1_000_001}
    answer = call("look", at="1").model_copy(
        update={"usage_metadata": {**usage, "input_token_details": details}}
    )
    limits = Limits(money=3.75, prices={"*": Price(3, 15, cached_input=0.3, cache_write=3.75)})
    result = create_deep_agent(ScriptedModel(answer), [look], limits=limits).invoke({"messages": "Go"})

    assert mark(result)["spent"] == pytest.approx(3.750015)


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_a_limit_reached_while_grading_ends_the_run_with_what_there_is(
    call_mode: CallMode, most: int, caplog: pytest.LogCaptureFixture
) -> None:
    grader = ScriptedModel(always=lambda _: REVISE)
    worker = ScriptedModel(always=lambda _: "A poem.")
    rubric = RubricMiddleware(model=grader, max_iterations=20)
    agent = create_deep_agent(worker, middleware=[rubric], limits=Limits(model_calls=most))
    with caplog.at_level(logging.WARNING):
        result = call_mode.invoke(agent, {"messages": "Go", "rubric": "It rhymes."})

    assert len(worker.asked) + len(grader.asked) == most
    assert mark(result)["kind"] == "model_calls"
    assert "Last written: A poem." in result["messages"][-1].text
    assert caplog.messages == []


def test_a_limit_reached_by_a_fallback_is_no_matter_for_the_log(caplog: pytest.LogCaptureFixture) -> None:
    first, second = (ScriptedModel(always=lambda _: ConnectionError("down")) for _ in range(2))
    agent = create_deep_agent(first, fallback_models=[second], limits=Limits(model_calls=1))
    with caplog.at_level(logging.WARNING):
        result = agent.invoke({"messages": "Go"})

    assert (len(first.asked), len(second.asked)) == (1, 0)
    assert mark(result)["spent"] == 1
    assert "Meter" not in caplog.text


def test_a_grader_with_limits_of_its_own_does_not_end_the_run() -> None:
    grader = ScriptedModel(always=lambda _: call("GraderResponse", result="nonsense"))
    own = LimitsMiddleware(Limits(model_calls=1))
    rubric = RubricMiddleware(model=grader, grader_middleware=[own])
    agent = create_deep_agent(ScriptedModel("A poem."), middleware=[rubric], limits=Limits(model_calls=9))
    result = agent.invoke({"messages": "Go", "rubric": "It rhymes."})

    assert result["messages"][-1].text == "A poem."
    assert len(grader.asked) == 1


def test_words_of_a_grader_do_not_begin_a_row_anew() -> None:
    def answer(asked: Asked) -> AIMessage | str:
        made = sum(each.type == "tool" for each in asked.messages)
        spoke = asked.messages[-1].type == "tool"
        return "A poem." if spoke and made % 3 == 0 else call("look", at="a")

    rubric = RubricMiddleware(model=ScriptedModel(always=lambda _: REVISE), max_iterations=4)
    agent = create_deep_agent(
        ScriptedModel(always=answer), [look], middleware=[rubric], limits=Limits(repeats=4)
    )
    result = agent.invoke({"messages": "Go", "rubric": "It rhymes."})

    assert mark(result)["kind"] == "repeats"
    assert sum(each.type == "tool" and each.status == "success" for each in result["messages"]) == 4


@pytest.mark.parametrize("key", ["lc_source", "deepagents_notification"])
def test_news_do_not_hide_what_there_is(key: str) -> None:
    news = HumanMessage("A task elsewhere ended.", additional_kwargs={key: "news"})
    history = [HumanMessage("Go"), AIMessage("Half a poem."), news]
    limits = LimitsMiddleware(Limits(model_calls=1))
    model = ScriptedModel(call("look", at="1"))
    agent: Any = create_agent(model, [look], middleware=[limits])
    result = agent.invoke({"messages": history})

    assert "Last written: Half a poem." in result["messages"][-1].text


def test_calls_that_a_subagent_was_refused_do_not_exhaust_its_parent() -> None:
    child: Any = {
        "name": "child",
        "description": "d",
        "system_prompt": "",
        "middleware": [LimitsMiddleware(Limits(tool_calls=4))],
        "model": ScriptedModel(
            always=lambda asked: calls(*[("look", {"at": f"{len(asked.messages)}.{n}"}) for n in range(20)])
        ),
    }
    model = ScriptedModel(call("task", description="d", subagent_type="child"), "I go on.")
    agent = create_deep_agent(model, [look], subagents=[child], limits=Limits(tool_calls=15))
    result = agent.invoke({"messages": "Go"})

    assert "4 tool calls" in result["messages"][-2].text
    assert result["messages"][-1].text == "I go on."


def test_threads_of_a_tool_count_when_they_are_given_its_context() -> None:
    inner = ScriptedModel(always=lambda _: "yes")

    def consult(question: str) -> str:
        """Ask many at once."""
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(copy_context().run, inner.invoke, question) for _ in range(6)]
        return str(sum(each.exception() is None for each in asked))

    model = ScriptedModel(call("consult", question="?"))
    agent = create_deep_agent(model, [consult], limits=Limits(model_calls=4))
    result = agent.invoke({"messages": "Go"})

    assert result["messages"][-2].text == "3"
    assert mark(result)["spent"] == 4


@pytest.mark.parametrize("kind", ["tokens", "money", "seconds", "model_calls", "warn_at"])
def test_a_number_beyond_all_numbers_is_no_limit(kind: str) -> None:
    given: Any = {"tokens": 1, kind: 10**400}
    with pytest.raises(ConfigError, match=rf"Limits\({kind}=1000"):
        Limits(**given)


@pytest.mark.parametrize("told", [(0, 0), (-5_000, -1), (0, 7), (-9, 3)])
def test_usage_of_zero_or_less_is_not_believed(told: tuple[int, int]) -> None:
    usage: Any = {"input_tokens": told[0], "output_tokens": told[1], "total_tokens": sum(told)}
    model = ScriptedModel(
        always=lambda asked: call("look", at=str(len(asked.messages))).model_copy(
            update={"usage_metadata": usage}
        )
    )
    agent = create_deep_agent(
        model, [look], limits=Limits(tokens=3_000, money=1, model_calls=50, prices={"*": Price(1, 1)})
    )
    result = agent.invoke({"messages": "Go"})

    assert mark(result)["kind"] == "tokens"
    assert mark(result)["all_spent"]["money"] > 0

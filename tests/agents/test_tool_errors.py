"""A failing tool never ends the run, and a bug in somebody's middleware is not hidden as one."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain.tools import ToolRuntime
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from deepagents import create_deep_agent
from deepagents.errors import ToolFailure
from deepagents.middleware.tool_errors import ToolErrorMiddleware
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode


@tool
def divide(a: int, b: int) -> str:
    """Divide a by b."""
    return str(a / b)


def test_what_a_tool_raises_is_read_by_the_model(call_mode: CallMode) -> None:
    with ScriptedModel(call("divide", a=1, b=0), "It cannot be done.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=[divide]), {"messages": "1 / 0?"})

    failed = result["messages"][-2]
    assert failed.status == "error"
    assert "ZeroDivisionError: division by zero" in failed.text
    assert "[tool_failed]" in failed.text
    assert failed.additional_kwargs["error_code"] == "tool_failed"
    assert result["messages"][-1].text == "It cannot be done."


def test_a_failure_in_words_for_the_model_is_read_without_a_class(call_mode: CallMode) -> None:
    @tool
    def order() -> str:
        """Order."""
        raise ToolFailure("timeout", "the shop did not answer within 3 seconds")

    with ScriptedModel(call("order"), "Later.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=[order]), {"messages": "Order."})

    said = result["messages"][-2].text
    assert said.startswith(
        "Error: order failed: the shop did not answer within 3 seconds. Check the arguments"
    )


def test_siblings_that_finished_keep_their_results() -> None:
    both = calls(("divide", {"a": 1, "b": 0}), ("divide", {"a": 6, "b": 3}))
    with ScriptedModel(both, "2.") as model:
        result = create_deep_agent(model, tools=[divide]).invoke({"messages": "Go"})

    assert [message.status for message in result["messages"][-3:-1]] == ["error", "success"]
    assert result["messages"][-2].text == "2.0"


def test_wrong_arguments_are_named_to_the_model_and_not_repeated() -> None:
    @tool
    def greet(name: str, runtime: ToolRuntime[Any, Any]) -> str:
        """Greet."""
        return name

    long = "word " * 1000
    wrong = calls(
        ("read_file", {"path": long}),
        ("task", {"description": long, "subagent_type": "general-purpose", "context": long}),
        ("greet", {"name": [long]}),
    )
    with ScriptedModel(wrong, "Sorry.") as model:
        result = create_deep_agent(model, tools=[greet]).invoke({"messages": "Go"})

    said = [each.text for each in result["messages"][-4:-1]]
    codes = [each.additional_kwargs["error_code"] for each in result["messages"][-4:-1]]
    assert codes == ["invalid_argument"] * 3
    assert said[0] == (
        "Error: read_file cannot be called so: file_path: Field required. read_file takes no 'path'; it "
        "takes file_path, offset, limit [invalid_argument]"
    )
    assert "context: task takes description and subagent_type only" in said[1]
    assert (
        said[2] == "Error: greet cannot be called so: name: Input should be a valid string [invalid_argument]"
    )
    assert all("word word" not in each for each in said)


def test_a_tool_keeps_its_own_words_about_wrong_arguments() -> None:
    @tool
    def greet(name: str) -> str:
        """Greet."""
        return name

    greet.handle_validation_error = "Names are text."
    with ScriptedModel(call("greet", name=5), "Sorry.") as model:
        result = create_deep_agent(model, tools=[greet]).invoke({"messages": "Go"})

    refused = result["messages"][-2]
    assert (refused.text, refused.additional_kwargs["error_code"]) == ("Names are text.", "tool_failed")


def test_an_unknown_tool_is_read_by_the_model() -> None:
    with ScriptedModel(call("fly"), "I cannot.") as model:
        result = create_deep_agent(model).invoke({"messages": "Fly"})

    assert result["messages"][-2].status == "error"


def test_a_callers_retry_sees_the_failure_first(call_mode: CallMode) -> None:
    attempts: list[int] = []

    @tool
    def flaky() -> str:
        """Work at the second attempt."""
        attempts.append(1)
        if len(attempts) == 1:
            raise TimeoutError("try again")
        return "worked"

    retry: Any = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False, on_failure="error")
    with ScriptedModel(call("flaky"), "Done.") as model:
        result = call_mode.invoke(
            create_deep_agent(model, tools=[flaky], middleware=[retry]), {"messages": "Go"}
        )

    assert result["messages"][-2].text == "worked"


def test_a_bug_in_a_callers_middleware_reaches_the_caller(call_mode: CallMode) -> None:
    class Buggy(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            raise AttributeError("a typo")

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            raise AttributeError("a typo")

    agent = create_deep_agent(ScriptedModel(call("divide", a=1, b=1)), tools=[divide], middleware=[Buggy()])
    with pytest.raises(AttributeError, match="a typo"):
        call_mode.invoke(agent, {"messages": "Go"})


def test_a_failing_main_model_reaches_the_caller() -> None:
    agent = create_deep_agent(ScriptedModel(ConnectionError("the provider is away")))
    with pytest.raises(ConnectionError, match="the provider is away"):
        agent.invoke({"messages": "Go"})


def test_a_failing_subagents_model_is_an_error_result() -> None:
    helper: Any = {"name": "helper", "description": "helps", "model": ScriptedModel(ConnectionError("away"))}
    with ScriptedModel(call("task", description="Help", subagent_type="helper"), "No help.") as model:
        result = create_deep_agent(model, subagents=[helper]).invoke({"messages": "Go"})

    assert result["messages"][-2].status == "error"
    assert "ConnectionError: away" in result["messages"][-2].text


def test_an_interrupt_passes_through(call_mode: CallMode) -> None:
    @tool
    def ask(question: str) -> str:
        """Ask a person."""
        return str(interrupt(question))

    agent = create_deep_agent(
        ScriptedModel(call("ask", question="Why?")), tools=[ask], checkpointer=InMemorySaver()
    )
    result = call_mode.invoke(agent, {"messages": "Go"}, {"configurable": {"thread_id": "1"}})

    assert result["__interrupt__"][0].value == "Why?"


def test_a_caller_can_ask_for_raising() -> None:
    agent = create_deep_agent(
        ScriptedModel(call("divide", a=1, b=0)),
        tools=[divide],
        middleware=[ToolErrorMiddleware(raise_errors=True)],
    )
    with pytest.raises(ZeroDivisionError):
        agent.invoke({"messages": "1 / 0?"})


def test_a_very_long_failure_is_cut() -> None:
    @tool
    def dump() -> str:
        """Fail, saying all."""
        raise RuntimeError("E" * 500_000)

    with ScriptedModel(call("dump"), "Sorry.") as model:
        result = create_deep_agent(model, tools=[dump]).invoke({"messages": "Go"})

    assert len(result["messages"][-2].text) < 5_000
    assert "[the rest was cut]" in result["messages"][-2].text

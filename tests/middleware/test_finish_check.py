"""An agent that stops where it seems not to be done is asked once."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from deepagents import create_deep_agent
from deepagents.middleware import FinishCheckMiddleware
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

FAILS = call("read_file", file_path="/hello.py")
WRITES = call("write_file", file_path="/hello.py", content="print('hello')\n")
PLANS = call("write_todos", todos=[{"content": "Write", "status": "pending"}])


def work(*script: Any, call_mode: CallMode, follow_up: str = "") -> list[Any]:
    """Run an agent with the check through a script that must be used up."""
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(model, middleware=[FinishCheckMiddleware()])
        messages = call_mode.invoke(agent, {"messages": "Write hello.py."})["messages"]
        if follow_up:
            messages = call_mode.invoke(agent, {"messages": [*messages, HumanMessage(follow_up)]})["messages"]
    return messages


def questions(messages: list[Any]) -> list[str]:
    """Return what the agent was asked by the check."""
    return [each.text for each in messages if each.additional_kwargs.get("lc_source") == "finish_check"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ((FAILS, "Error: File '/hello.py' not found"), "your last call, of read_file, failed"),
        ((PLANS, "Done."), "a to-do is open"),
        (("Next I will write the file.",), "you announced a next step"),
        (("I see. Now I will edit /a.py.",), "you announced a next step"),
        (("I will now do this:",), "you announced a next step"),
        (("\u5185\u5bb9\u5982\u4e0b\uff1a",), "you announced a next step"),
        (("",), "you said nothing"),
    ],
)
def test_a_doubtful_end_is_asked_about_and_the_work_goes_on(
    script: tuple[Any, ...], why: str, call_mode: CallMode
) -> None:
    messages = work(*script, WRITES, "The file is there.", call_mode=call_mode)

    assert [why in each for each in questions(messages)] == [True]
    assert messages[-1].text == "The file is there."


def test_it_is_asked_once_for_each_request(call_mode: CallMode) -> None:
    messages = work(FAILS, "It is not there.", "It is not there.", call_mode=call_mode)
    assert len(questions(messages)) == 1

    again = work(
        FAILS, "Next I will.", "Next I will.", FAILS, "No.", "No.", call_mode=call_mode, follow_up="Go on."
    )
    assert len(questions(again)) == 2


@pytest.mark.parametrize(
    "script",
    [
        ("Done.",),
        (FAILS, "Which file do you mean?"),
        (FAILS, WRITES, "The file is there. I will be glad to help again, if you like!"),
        (AIMessage("Done. Let me know if you need more"),),
        ("Done. If you like, I'll add a test.",),
        ("Done. I'll be here.",),
    ],
)
def test_an_end_is_an_end(script: tuple[Any, ...], call_mode: CallMode) -> None:
    assert questions(work(*script, call_mode=call_mode)) == []


def test_a_long_answer_is_read_at_once(call_mode: CallMode) -> None:
    began = process_time()
    (*_, last) = work("Rows:" + "\n" * 8_000 + "end", call_mode=call_mode)

    assert last.text.endswith("end")
    assert process_time() - began < 2


def test_what_a_model_cannot_mend_is_a_reason_to_stop(call_mode: CallMode) -> None:
    def fetch() -> str:
        """Fetch it."""
        raise OSError("no route")

    with ScriptedModel(call("fetch"), "The network is down.") as model:
        agent = create_deep_agent(model, tools=[fetch], middleware=[FinishCheckMiddleware()])
        messages = call_mode.invoke(agent, {"messages": "Fetch."})["messages"]

    assert questions(messages) == []

"""What a server asks in the middle of a call is put to a person, who answers at leisure; the call waits."""

from __future__ import annotations

import json
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel, call
from tests.mcp.servers import agent_that_calls, crooked, results
from tests.waiting import until

THREAD: Any = {"configurable": {"thread_id": "one"}}
SURE = {"action": "accept", "content": {"sure": True}}


def asking_agent(mcp: Any, checkpointer: Any = None, **arguments: Any) -> Any:
    model = ScriptedModel(call("mcp__one__ask", **arguments), "Done.")
    return create_deep_agent(model, mcp=mcp, checkpointer=checkpointer or InMemorySaver())


def question(state: Any) -> Any:
    [interrupt] = state["__interrupt__"]
    return interrupt.value


def answer(call_mode: Any, agent: Any, **responses: Any) -> Any:
    return call_mode.invoke(agent, Command(resume={"responses": responses}), THREAD)


def said(state: Any) -> Any:
    [result] = results(state)
    return json.loads(result.content)


def test_a_question_is_an_interrupt_and_the_call_is_made_once(call_mode: Any) -> None:
    entry = {**crooked("ask", call="ask", env={"TOKEN": "s3cret-value"}), "timeout": 500}
    agent = asking_agent({"one": entry})

    asked = question(call_mode.invoke(agent, {"messages": "Go."}, THREAD))
    assert asked == {
        "type": "mcp_elicitation",
        "server": "one",
        "tool_name": "ask",
        "requests": [
            {
                "key": "q0",
                "message": "Sure, the 1. time? \\u202eevil\\x1b[31m ***",
                "mode": "form",
                "requested_schema": {
                    "type": "object",
                    "properties": {"sure": {"type": "boolean", "title": "Sure, the 1. time? evil[31m ***"}},
                },
            }
        ],
    }

    # Longer than the call may take: while a person thinks, its time stands still.
    sleep(0.7)
    assert said(answer(call_mode, agent, q0=SURE)) == {"calls": 1, "answers": [SURE]}


@pytest.mark.parametrize("half", ["bytes", "escape"])
def test_half_a_character_in_a_question_is_shown_as_a_replacement(call_mode: Any, half: str) -> None:
    agent = asking_agent({"one": crooked("ask", call="halves")}, half=half)

    [asked] = question(call_mode.invoke(agent, {"messages": "Go."}, THREAD))["requests"]
    assert asked["message"].startswith("Sure \ufffd, the 1. time?")
    assert asked["requested_schema"]["properties"]["sure"]["title"].startswith("Sure \ufffd, the 1. time?")

    assert said(answer(call_mode, agent, q0=SURE)) == {"answers": [SURE]}


def test_several_questions_come_one_after_the_other(call_mode: Any) -> None:
    agent = asking_agent({"one": crooked("ask", call="ask")}, times=3)
    call_mode.invoke(agent, {"messages": "Go."}, THREAD)

    answer(call_mode, agent, q0=SURE)
    second = answer(call_mode, agent, q1={"action": "decline"})
    assert question(second)["requests"][0]["message"].startswith("Sure, the 3. time?")

    found = said(answer(call_mode, agent, q2={"action": "accept", "content": 7}))
    assert found == {"calls": 1, "answers": [SURE, {"action": "decline"}, {"action": "cancel"}]}


def test_servers_of_the_newest_revision_ask_all_at_once(call_mode: Any) -> None:
    with MCPServers({"one": crooked("ask", call="input", modern=True)}) as servers:
        agent = asking_agent(servers)
        asked = question(call_mode.invoke(agent, {"messages": "Go."}, THREAD))
        assert servers.status()["one"].protocol == "2026-07-28"
        assert [each["key"] for each in asked["requests"]] == ["first", "second"]

        found = said(answer(call_mode, agent, first=SURE, second={"action": "decline"}))

    assert found["answers"] == {"first": SURE, "second": {"action": "decline"}}
    assert found["state"] == "opaque"


def test_a_flood_of_questions_reaches_nobody_whole(call_mode: Any) -> None:
    agent = asking_agent({"one": crooked("ask", call="flood")})
    asked = question(call_mode.invoke(agent, {"messages": "Go."}, THREAD))
    keys = [each["key"] for each in asked["requests"]]
    while True:
        state = answer(call_mode, agent, **dict.fromkeys(keys, {"action": "decline"}))
        if not state.get("__interrupt__"):
            break
        keys = [each["key"] for each in question(state)["requests"]]

    assert said(state) == {"cancel": 900, "decline": 100}


def test_after_a_restart_the_call_is_made_again(call_mode: Any) -> None:
    saver = InMemorySaver()
    with MCPServers({"one": crooked("ask", call="ask")}) as servers:
        call_mode.invoke(asking_agent(servers, saver), {"messages": "Go."}, THREAD)

    model = ScriptedModel("Done.")
    with MCPServers({"one": crooked("ask", call="ask")}) as servers:
        agent = create_deep_agent(model, mcp=servers, checkpointer=saver)
        assert said(answer(call_mode, agent, q0=SURE)) == {"calls": 1, "answers": [SURE]}


def test_a_call_ends_at_its_server_when_the_thread_goes_on_without_an_answer(
    call_mode: Any, tmp_path: Path
) -> None:
    told = tmp_path / "cancelled"
    agent = asking_agent({"one": crooked("ask", call="ask", env={"CANCELLED": str(told)})})
    call_mode.invoke(agent, {"messages": "Go."}, THREAD)

    call_mode.invoke(agent, {"messages": "Never mind."}, THREAD)

    until(told.exists)


@pytest.mark.parametrize("given", ["yes", {"responses": {"q0": "yes"}}, {"responses": 7}])
def test_what_is_no_answer_cancels(given: Any) -> None:
    agent = asking_agent({"one": crooked("ask", call="ask")})
    agent.invoke({"messages": "Go."}, THREAD)

    state = agent.invoke(Command(resume=given), THREAD)

    assert said(state)["answers"] == [{"action": "cancel"}]


def test_without_a_checkpointer_the_answer_is_no(call_mode: Any) -> None:
    agent = agent_that_calls("mcp__one__ask", {"one": crooked("ask", call="ask")})

    assert said(call_mode.invoke(agent, {"messages": "Go."}))["answers"] == [{"action": "cancel"}]


def test_sampling_is_refused_and_roots_are_named_only_if_given(tmp_path: Any) -> None:
    entry = crooked("ask", call="sample")
    with MCPServers({"one": entry}) as bare, MCPServers({"one": entry}, roots=[tmp_path]) as rooted:
        refused, [_, given] = (json.loads(each.tools()[0].invoke({})) for each in (bare, rooted))

    assert refused == ["Sampling not supported", "List roots not supported"]
    assert given == {"roots": [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]}

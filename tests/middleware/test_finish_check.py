"""An agent that stops where it seems not to be done is asked once."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend, LocalShellBackend
from deepagents.errors import ConfigError
from deepagents.middleware import FinishCheckMiddleware
from deepagents.profiles import HarnessProfile, register_harness_profile
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


LOOKS = call("ls", path="/")


def total(
    *script: Any, call_mode: CallMode, text: str = "Write the sum to out/total.txt.", **options: Any
) -> Any:
    """Run an agent that has no check of its own through a script that must be used up."""
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(model, **options)
        return call_mode.invoke(agent, {"messages": text})["messages"]


def test_every_agent_is_asked_about_a_file_that_the_request_names_and_that_is_not_there(
    call_mode: CallMode,
) -> None:
    writes = call("write_file", file_path="/out/total.txt", content="6\n")

    messages = total(LOOKS, "The sum is 6.", writes, "The sum is 6, in out/total.txt.", call_mode=call_mode)

    assert [
        "out/total.txt, which the request names, does not exist" in each for each in questions(messages)
    ] == [True]
    assert messages[-1].text == "The sum is 6, in out/total.txt."


def test_files_are_found_where_commands_work(tmp_path: Path, call_mode: CallMode) -> None:
    text = f"Copy a.txt to b.txt, and {tmp_path}/a.txt to {tmp_path}/c.txt."
    (tmp_path / "a.txt").write_text("text")
    copies = call("execute", command="cp a.txt b.txt")
    backend = LocalShellBackend(tmp_path)

    messages = total(copies, "Copied.", "Copied.", call_mode=call_mode, text=text, backend=backend)

    assert [f"but {tmp_path}/c.txt, which" in each for each in questions(messages)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "Delete old.txt.",
        "Rename old.txt to new.txt.",
        "In the directory out, write a.md.",
        "Use asyncio.run and json.loads, as on https://example.com/page.html, in *.md and {id}.csv.",
        "Look at these: " + ", ".join(f"{each}.txt" for each in range(21)),
        "Write neu.md?",
    ],
)
def test_files_that_went_or_lie_elsewhere_are_not_missed(
    tmp_path: Path, call_mode: CallMode, text: str
) -> None:
    (tmp_path / "old.txt").write_text("text")
    script = [
        call("write_file", file_path="/out/a.md", content="a"),
        call("write_file", file_path="/new.txt", content="text"),
        call("delete", file_path="/old.txt"),
        "What should be in neu.md?" if "neu" in text else "Done.",
    ]

    backend = FilesystemBackend(tmp_path, virtual_mode=True)

    assert questions(total(*script, call_mode=call_mode, text=text, backend=backend)) == []


def test_who_did_nothing_or_was_refused_is_not_asked(call_mode: CallMode) -> None:
    rules = [FilesystemPermission(operations=["write"], paths=["/out/**"], mode="deny")]
    writes = call("write_file", file_path="/out/total.txt", content="6\n")

    assert questions(total("It would be 6.", call_mode=call_mode)) == []
    assert questions(total(writes, "I may not.", call_mode=call_mode, permissions=rules)) == []


def test_an_answer_stands_where_asking_fails(call_mode: CallMode) -> None:
    def fails(_: Any) -> AIMessage:
        raise ConnectionError("no route")

    messages = total(LOOKS, "The sum is 6.", fails, call_mode=call_mode)

    assert len(questions(messages)) == 1
    assert [each.text for each in messages if each.type == "ai"][1:] == ["The sum is 6."] * 2
    assert len({each.id for each in messages}) == len(messages)


def test_it_is_asked_beside_middleware_that_follows_the_model(call_mode: CallMode) -> None:
    class Follower(AgentMiddleware[Any, Any, Any]):
        def after_model(self, state: Any, runtime: Any) -> None:
            return None

    messages = total(LOOKS, "6.", "6, not written.", call_mode=call_mode, middleware=[Follower()])

    assert messages[-1].text == "6, not written."


def test_a_profile_leaves_it_out(call_mode: CallMode) -> None:
    profile = HarnessProfile(excluded_middleware=frozenset({"FinishCheckMiddleware"}))
    register_harness_profile("unasked", profile)
    with ScriptedModel(LOOKS, "6.", provider="unasked") as model:
        messages = call_mode.invoke(create_deep_agent(model), {"messages": "Write a.txt."})["messages"]

    assert questions(messages) == []


def test_a_doubt_of_another_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no doubt 'typo'; choose from"):
        FinishCheckMiddleware(["typo"])  # type: ignore[list-item]

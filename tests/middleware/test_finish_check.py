"""An agent that stops where it seems not to be done is asked once."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend, LocalShellBackend, StoreBackend
from deepagents.backends.protocol import LsResult
from deepagents.middleware import FilesystemMiddleware, FinishCheckMiddleware
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


def test_a_long_command_is_read_at_once(tmp_path: Path, call_mode: CallMode) -> None:
    script = [call("execute", command="true" + "\n" * 40_000), "Done.", "It failed."]
    backend = LocalShellBackend(tmp_path, virtual_mode=True)
    began = process_time()

    messages = total(*script, call_mode=call_mode, text="Write try.py.", backend=backend)

    assert len(questions(messages)) == 1
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
    """Run an agent with the check on a request that names files; the script must be used up."""
    brought = [FinishCheckMiddleware(), *options.pop("middleware", ())]
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(model, middleware=brought, **options)
        return call_mode.invoke(agent, {"messages": text})["messages"]


def test_a_file_that_the_request_names_and_that_is_not_there_is_asked_about(call_mode: CallMode) -> None:
    writes = call("write_file", file_path="/out/total.txt", content="6\n")

    messages = total(LOOKS, "The sum is 6.", writes, "The sum is 6, in out/total.txt.", call_mode=call_mode)

    (question,) = questions(messages)
    assert "out/total.txt, which the request names, does not exist" in question
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
        "Call console.log(x) and requests.patch(y).",
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


@pytest.mark.parametrize(
    "script",
    [
        [
            call("write_file", file_path="/tmp/try.py", content="x"),
            call("execute", command="cd tmp; rm *.py"),
        ],
        [call("execute", command="mkdir tmp; echo x > tmp/try.py"), call("delete", file_path="/tmp/try.py")],
        [call("execute", command="mkdir tmp; echo x > tmp/try.py; rm tmp/try.py")],
    ],
)
def test_a_file_that_was_made_and_removed_again_is_not_missed(
    tmp_path: Path, call_mode: CallMode, script: list[Any]
) -> None:
    text = "Write tmp/try.py, run it, and remove it."
    backend = LocalShellBackend(tmp_path, virtual_mode=True)

    messages = total(*script, "Done.", call_mode=call_mode, text=text, backend=backend)

    assert questions(messages) == []
    assert not (tmp_path / "tmp" / "try.py").exists()


@pytest.mark.parametrize("command", ["echo rm > sub-try.py", "rm -f sub-try.py", "python make.py > try.log"])
def test_a_file_that_no_call_has_made_or_removed_is_missed(
    tmp_path: Path, call_mode: CallMode, command: str
) -> None:
    script = [call("execute", command=command), "Done.", "It failed."]
    backend = LocalShellBackend(tmp_path, virtual_mode=True)

    messages = total(*script, call_mode=call_mode, text="Write tmp/try.py.", backend=backend)

    assert ["tmp/try.py, which" in each for each in questions(messages)] == [True]


def test_who_did_nothing_or_was_refused_is_not_asked(call_mode: CallMode) -> None:
    rules = [FilesystemPermission(operations=["write"], paths=["/out/**"], mode="deny")]
    writes = call("write_file", file_path="/out/total.txt", content="6\n")

    assert questions(total("It would be 6.", call_mode=call_mode)) == []
    assert questions(total(writes, "I may not.", call_mode=call_mode, permissions=rules)) == []


def test_files_are_looked_for_where_the_file_tools_have_them(tmp_path: Path, call_mode: CallMode) -> None:
    (tmp_path / "a.txt").write_text("text")
    tools = FilesystemMiddleware(backend=FilesystemBackend(tmp_path, virtual_mode=True))

    assert questions(total(LOOKS, "Read.", call_mode=call_mode, text="Read a.txt.", middleware=[tools])) == []


def test_a_tree_is_not_searched_for_files_that_are_there(tmp_path: Path, call_mode: CallMode) -> None:
    searched: list[str] = []

    class Watched(FilesystemBackend):
        def glob(self, pattern: str, path: str | None = None) -> Any:
            searched.append(pattern)
            return super().glob(pattern, path)

    (tmp_path / "a.txt").write_text("text")
    backend = Watched(tmp_path, virtual_mode=True)

    assert questions(total(LOOKS, "Read.", call_mode=call_mode, text="Read a.txt.", backend=backend)) == []
    assert searched == []
    assert len(questions(total(LOOKS, "6.", "6.", call_mode=call_mode, backend=backend))) == 1
    assert searched == ["**/total.txt"]


def test_what_a_list_that_broke_off_does_not_show_is_not_missed(tmp_path: Path, call_mode: CallMode) -> None:
    class Broken(FilesystemBackend):
        def ls(self, path: str) -> LsResult:
            return LsResult(error="too many entries", entries=[])

    backend = Broken(tmp_path, virtual_mode=True)

    assert questions(total(call("glob", pattern="*"), "6.", call_mode=call_mode, backend=backend)) == []


def test_a_request_that_names_a_file_ends_no_run(call_mode: CallMode) -> None:
    assert questions(total("Hello.", call_mode=call_mode, backend=StoreBackend())) == []


def test_a_plain_agent_is_asked_too(tmp_path: Path, call_mode: CallMode) -> None:
    def look() -> str:
        """Look."""
        return "Nothing."

    check = FinishCheckMiddleware(backend=FilesystemBackend(tmp_path, virtual_mode=True))
    with ScriptedModel(call("look"), "6.", "6, not written.") as model:
        agent = create_agent(model, [look], middleware=[check])
        messages = call_mode.invoke(agent, {"messages": [("user", "Write total.txt.")]})["messages"]

    assert len(questions(messages)) == 1

"""A model writes programs whose functions are its tools: one turn for many calls, which count as any call."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from threading import Event, Lock
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ToolCallLimitMiddleware,
)
from langchain.tools import InjectedState, InjectedToolCallId
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.channels import EphemeralValue, UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from deepagents import DeepAgentState, FilesystemPermission, Limits, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.errors import ConfigError, RunConfigError
from deepagents.events import ApprovalNeeded, FinalAnswer, ToolCalled, ToolFinished
from deepagents.middleware import CodeModeMiddleware
from deepagents.middleware.tool_errors import ToolErrorMiddleware
from deepagents.testing import Asked, ScriptedModel, call, calls
from tests.conftest import CallMode
from tests.middleware.two_hundred import two_hundred

ASK = {"messages": "Go"}
THREAD: Any = {"configurable": {"thread_id": "one"}}
MAKERS = [create_deep_agent, create_agent]


def look(place: str) -> str:
    """Look at a place."""
    if place == "nowhere":
        raise ValueError("there is no such place")
    return f"{place} is fine"


@tool(response_format="content_and_artifact")
def measure(place: str) -> tuple[str, dict[str, Any]]:
    """Measure a place."""
    return "see the artifact", {"structured_content": {"place": place, "metres": [13, len(place)]}}


def run(
    code: str, *, make: Any = create_deep_agent, mode: CallMode | None = None, **options: Any
) -> ToolMessage:
    """Run one program in an agent, and return what the model reads of it."""
    options.setdefault("middleware", [CodeModeMiddleware()])
    options.setdefault("tools", [look, measure])
    with ScriptedModel(call("run_code", code=code), "Done.") as model:
        agent = make(model, **options)
        result = mode.invoke(agent, ASK) if mode else agent.invoke(ASK)
    return next(each for each in result["messages"] if each.type == "tool")


@pytest.mark.parametrize("make", MAKERS)
def test_a_program_calls_tools_and_returns_what_it_makes_of_them(make: Any, call_mode: CallMode) -> None:
    code = """
import asyncio
texts = await asyncio.gather(*[look(place=name) for name in ("Brest", "Saint-Malo")])
found = await measure(place="Brest")
print(texts[1], found["metres"][0])
sum(found["metres"])
"""
    answer = run(code, make=make, mode=call_mode)

    assert answer.text == "Saint-Malo is fine 13\n18"
    assert (answer.name, answer.status) == ("run_code", "success")


@pytest.mark.parametrize("make", MAKERS)
def test_a_call_that_fails_raises_with_the_words_of_the_tool(make: Any, call_mode: CallMode) -> None:
    caught = (
        "try:\n    await look(place='nowhere')\nexcept RuntimeError as error:\n    print('caught', error)"
    )
    uncaught = "await look(place='Brest')\nprint('half')\nawait look(place='nowhere')"

    assert "there is no such place" in run(caught, make=make, mode=call_mode).text
    answer = run(uncaught, make=make, mode=call_mode)
    assert answer.status == "error"
    assert answer.additional_kwargs["error_code"] == "tool_failed"
    assert "line 3" in answer.text
    assert "It had printed:\nhalf" in answer.text
    assert "- look(place='Brest'): done\n- look(place='nowhere'): failed" in answer.text


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("look(place='Brest')", "did not wait for look: write `await` before a call"),
        ("await look('Brest')", "call look by keyword"),
        ("print(input())", "no function or tool 'input'"),
        ("await lok(place='Brest')", "no function or tool 'lok'; nearest in name: look"),
        ("await look(plaice='Brest')", "takes no 'plaice'; it takes place"),
        ("await look(place={1, 2})", "must be values of JSON"),
        ("await run_code(code='1')", "run_code cannot be called by a program"),
        ("tool_help()", "takes the name of a tool"),
        ("await tool_help('lok')", "no tool 'lok'; nearest in name: look"),
        ("for x in 1:\npass", "SyntaxError"),
        ("open('/etc/passwd').read()", "PermissionError"),
        ("import socket", "No module named 'socket'"),
        ("import os\nos.environ['HOME']", "not supported"),
        ("().__class__.__mro__", "AttributeError"),
    ],
)
def test_a_mistake_is_explained(code: str, words: str) -> None:
    answer = run(code)

    assert words in answer.text
    assert answer.status == "error"


def test_a_call_that_is_not_awaited_is_not_made(tmp_path: Path) -> None:
    answer = run(
        "write_file(file_path='/a', content='x')", backend=FilesystemBackend(tmp_path, virtual_mode=True)
    )

    assert answer.status == "error"
    assert "It had made these calls" not in answer.text
    assert not (tmp_path / "a").exists()


def test_tools_are_values_and_describe_themselves() -> None:
    code = "f = look\nprint(await f(place='Brest'))\nprint(tool_help('look'))\nprint(await tool_help('look'))"
    lines = run(code).text.splitlines()

    assert lines[0] == "Brest is fine"
    assert lines[1:3] == lines[3:]
    assert lines[1] == "look: Look at a place."
    assert '"place"' in lines[2]


def test_tools_that_are_held_back_can_be_described_and_called() -> None:
    name = "mcp__money__list_invoices"
    with ScriptedModel(
        call("run_code", code=f"print(tool_help('{name}'))\nawait {name}(status='open')"), "Done."
    ) as model:
        agent = create_deep_agent(model, tools=two_hundred(), middleware=[CodeModeMiddleware()])
        result = agent.invoke(ASK)

    answer = result["messages"][-2].text
    assert answer.startswith(f"{name}: List invoices, paid, open or overdue.")
    assert answer.endswith("list_invoices did ['status']")
    assert name not in model.asked[1].tool_names


def test_nothing_that_was_returned_is_lost_on_the_way_to_the_program() -> None:
    def report() -> str:
        """Return a long report."""
        return "x" * 400_000 + "end"

    answer = run("text = await report()\n(len(text), text[-3:])", tools=[report])
    assert answer.text == "(400003, 'end')"


class Counting(DeepAgentState):
    seen: Annotated[list[str], lambda known, new: [*known, *new]]
    last: str


@tool
def note(
    text: str, call_id: Annotated[str, InjectedToolCallId], state: Annotated[dict[str, Any], InjectedState]
) -> Command[Any]:
    """Note a text."""
    before = f"{len(state.get('seen') or [])} noted before, last {state.get('last')}"
    return Command(
        update={"seen": [text], "last": text, "messages": [ToolMessage(before, tool_call_id=call_id)]}
    )


def test_what_calls_change_in_the_state_is_kept_and_seen_by_the_next(call_mode: CallMode) -> None:
    code = """
print(await note(text="a"))
print(await note(text="b"))
await write_file(file_path="/notes.md", content="tide")
await write_todos(todos=[{"content": "one", "status": "pending"}])
await write_todos(todos=[{"content": "two", "status": "completed"}])
print(await read_todos())
print(await read_file(file_path="/notes.md"))
1 / 0
"""
    with ScriptedModel(call("run_code", code=code), "Done.") as model:
        agent = create_deep_agent(
            model, tools=[note], middleware=[CodeModeMiddleware()], state_schema=Counting
        )
        result = call_mode.invoke(agent, {**ASK, "seen": [], "last": "none"})

    answer = next(each for each in result["messages"] if each.type == "tool")
    assert "0 noted before, last none\n1 noted before, last a\n[x] two" in answer.text
    assert "tide" in answer.text
    assert "ZeroDivisionError" in answer.text
    assert (result["seen"], result["last"]) == (["a", "b"], "b")
    assert result["files"]["/notes.md"]["content"] == "tide"
    assert [each["content"] for each in result["todos"]] == ["two"]
    assert len([each for each in result["messages"] if each.type == "tool"]) == 1


def test_a_call_that_waits_for_a_person_is_not_made(call_mode: CallMode) -> None:
    made: list[str] = []

    def pay(amount: str) -> str:
        """Pay an amount."""
        made.append(amount)
        return "paid"

    only_large: Any = {
        "allowed_decisions": ["approve", "reject"],
        "when": lambda request: len(request.tool_call["args"]["amount"]) > 1,
    }
    code = "print(await pay(amount='1'))\nawait pay(amount='100')"
    with ScriptedModel(call("run_code", code=code), call("pay", amount="100"), "Done.") as model:
        agent = create_deep_agent(
            model,
            tools=[pay],
            middleware=[CodeModeMiddleware()],
            interrupt_on={"pay": only_large},
            checkpointer=InMemorySaver(),
        )
        result = call_mode.invoke(agent, ASK, THREAD)
        assert made == ["1"]
        assert "pay waits for a person, and a program cannot wait: call it by itself" in model.asked[1].last
        assert result["__interrupt__"]
        call_mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), THREAD)

    assert made == ["1", "100"]


def test_a_subagent_of_a_program_asks_no_one_and_goes_on(call_mode: CallMode) -> None:
    code = "await task(description='Look', subagent_type='general-purpose')"
    with ScriptedModel(
        call("run_code", code=code), call("look", place="Brest"), "It needs a person.", "Done."
    ) as model:
        agent = create_deep_agent(
            model,
            tools=[look],
            middleware=[CodeModeMiddleware()],
            interrupt_on={"look": True},
            checkpointer=InMemorySaver(),
        )
        events = call_mode.observe(agent, ASK, THREAD)

    assert not any(isinstance(each, ApprovalNeeded) for each in events)
    assert "the program that this agent works for cannot wait" in model.asked[2].last
    assert model.asked[3].last == "It needs a person."


def test_a_program_itself_may_wait_for_a_person(call_mode: CallMode) -> None:
    saver = InMemorySaver()

    def agent(model: Any) -> Any:
        return create_deep_agent(
            model,
            tools=two_hundred(),
            middleware=[CodeModeMiddleware()],
            interrupt_on={"run_code": True},
            checkpointer=saver,
        )

    code = "await mcp__money__list_invoices(status='open')"
    with ScriptedModel(call("run_code", code=code)) as model:
        call_mode.invoke(agent(model), ASK, THREAD)
    with ScriptedModel("Done.") as model:
        approved: Any = Command(resume={"decisions": [{"type": "approve"}]})
        result = call_mode.invoke(agent(model), approved, THREAD)

    assert result["messages"][-2].text == "list_invoices did ['status']"


def test_a_tool_that_asks_a_person_fails_in_a_program(call_mode: CallMode) -> None:
    def ask() -> str:
        """Ask a person."""
        return str(interrupt("How high?"))

    answer = run("await ask()", tools=[ask], mode=call_mode, checkpointer=False)
    assert "ask asks a person, for whom a program cannot wait: call it by itself" in answer.text


def test_beside_the_approval_of_langchain_the_tools_have_to_be_named() -> None:
    approval: Any = HumanInTheLoopMiddleware({"look": True})

    with pytest.raises(RunConfigError, match="name in tools="):
        run("await look(place='Brest')", make=create_agent, middleware=[CodeModeMiddleware(), approval])
    named = CodeModeMiddleware(tools=["measure"])
    answer = run("await look(place='Brest')", make=create_agent, middleware=[named, approval])
    assert "look cannot be called by a program" in answer.text


def test_permissions_hold(call_mode: CallMode, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("42")
    rules = [FilesystemPermission(["read", "write"], ["/secret"], "deny")]
    answer = run(
        "await read_file(file_path='/secret')",
        mode=call_mode,
        backend=FilesystemBackend(tmp_path, virtual_mode=True),
        permissions=rules,
    )

    assert "permission_denied" in answer.text
    assert "42" not in answer.text


def test_limits_count_each_call(call_mode: CallMode) -> None:
    code = "for place in 'abcdef':\n    print(await look(place=place))"
    model = ScriptedModel(call("run_code", code=code))
    agent = create_deep_agent(
        model, tools=[look], middleware=[CodeModeMiddleware()], limits=Limits(tool_calls=4)
    )
    result = call_mode.invoke(agent, ASK)

    answer = next(each for each in result["messages"] if each.type == "tool")
    assert "c is fine" in answer.text
    assert "d is fine" not in answer.text
    assert "limit_reached" in answer.text


def test_middleware_around_tools_sees_each_call(call_mode: CallMode) -> None:
    seen: list[str] = []

    class Watch(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            seen.append(request.tool_call["name"])
            return handler(request)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            seen.append(request.tool_call["name"])
            return await handler(request)

    both = [Watch(), CodeModeMiddleware()]
    run("await look(place='a')\nawait measure(place='b')", mode=call_mode, middleware=both)
    assert seen == ["run_code", "look", "measure"]


def test_only_tools_that_are_named_can_be_called() -> None:
    only = CodeModeMiddleware(tools=["mea*", look])
    code = "print(await measure(place='a'))\nawait read_file(file_path='/a')"

    assert "read_file cannot be called by a program" in run(code, middleware=[only]).text


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("print('begun')\nwhile True:\n    pass", "timeout", "begun"),
        ("print('begun')\nimport time\ntime.sleep(60)", "timeout", "begun"),
        ("import asyncio\nprint('begun')\nawait asyncio.sleep(60)", "timeout", "begun"),
        ("print('begun')\nx = ['y' * 10 ** 6 for _ in range(1000)]", "too_large", "begun"),
        ("def f(n):\n    return f(n + 1)\nprint('begun')\nf(0)", "tool_failed", "RecursionError"),
        ("for n in range(9):\n    await look(place=str(n))", "tool_failed", "may make 5 calls"),
    ],
)
def test_a_program_that_takes_too_much_is_ended(
    code: str, error: str, words: str, call_mode: CallMode
) -> None:
    began = time.monotonic()
    bounded = CodeModeMiddleware(seconds=0.5, memory=20 * 2**20, calls=5)
    answer = run(code, middleware=[bounded], mode=call_mode)

    assert answer.additional_kwargs["error_code"] == error
    assert words in answer.text
    assert time.monotonic() - began < 20


def test_calls_under_way_are_cancelled_when_time_is_over(call_mode: CallMode) -> None:
    cancelled: list[str] = []
    over = Event()

    @tool
    def hang(name: str) -> str:
        """Hang."""
        over.wait(20)
        return name

    async def ahang(name: str) -> str:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            cancelled.append(name)
            raise
        return name

    hang.coroutine = ahang
    code = "import asyncio\nawait asyncio.gather(look(place='a'), hang(name='b'), hang(name='c'))"
    began = time.monotonic()
    answer = run(code, tools=[look, hang], middleware=[CodeModeMiddleware(seconds=0.5)], mode=call_mode)
    over.set()

    assert time.monotonic() - began < 10
    assert "the program took longer than 0.5 s" in answer.text
    assert "- look(place='a'): done" in answer.text
    assert "- hang(name='b'): under way" in answer.text
    assert sorted(cancelled) == ([] if call_mode.name == "sync" else ["b", "c"])


async def test_a_run_that_is_cancelled_leaves_no_process() -> None:
    before = children()
    with ScriptedModel(call("run_code", code="while True:\n    pass")) as model:
        agent = create_deep_agent(model, middleware=[CodeModeMiddleware(seconds=60)])
        running = asyncio.ensure_future(agent.ainvoke(ASK))
        while not (new := children() - before):
            await asyncio.sleep(0.01)
        running.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert time.monotonic() - began < 10
    assert not new & children()


def test_an_interpreter_that_is_killed_is_a_failure_and_the_next_program_runs() -> None:
    before = children()

    def stop() -> str:
        """Kill the interpreter."""
        for each in children() - before:
            os.kill(each, signal.SIGKILL)
        return "killed"

    answer = run("await stop()", tools=[stop])
    assert "the interpreter of the program ended" in answer.text
    assert run("1 + 1").text == "2"


def test_calls_run_at_the_same_time(call_mode: CallMode) -> None:
    both = [Event(), Event()]

    def meet(number: int) -> str:
        """Meet the other one."""
        both[number].set()
        return str(both[1 - number].wait(20))

    code = "import asyncio\nawait asyncio.gather(meet(number=0), meet(number=1))"
    assert run(code, tools=[meet], mode=call_mode).text == "['True', 'True']"


def test_at_most_thirty_two_calls_run_at_the_same_time(call_mode: CallMode) -> None:
    lock, running, most = Lock(), 0, 0

    def wait(number: int) -> str:
        """Wait a moment."""
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        Event().wait(0.01)
        with lock:
            running -= 1
        return str(number)

    code = "import asyncio\nsum(map(int, await asyncio.gather(*[wait(number=n) for n in range(100)])))"
    assert run(code, tools=[wait], mode=call_mode).text == "4950"
    assert 2 <= most <= 32


def test_a_program_that_prints_without_end_is_cut() -> None:
    answer = run("for n in range(3000):\n    print('x' * 1000)", make=create_agent)

    assert len(answer.text) < 1_100_000
    assert "more characters were printed" in answer.text


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"memory": -1}, {"calls": True}, {"tools": "look"}])
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        CodeModeMiddleware(**wrong)


def test_subagents_that_stand_in_for_the_agent_have_it_too(call_mode: CallMode) -> None:
    with ScriptedModel(
        call("task", description="Look", subagent_type="general-purpose"),
        call("run_code", code="await look(place='Brest')"),
        "Looked.",
        "Done.",
    ) as model:
        agent = create_deep_agent(model, tools=[look], middleware=[CodeModeMiddleware()])
        call_mode.invoke(agent, ASK)

    assert model.asked[2].last == "Brest is fine"


def test_a_subagent_can_be_called(call_mode: CallMode) -> None:
    code = "await task(description='Look', subagent_type='general-purpose')"
    with ScriptedModel(call("run_code", code=code), call("ls"), "Looked.", "Done.") as model:
        agent = create_deep_agent(model, tools=[look], middleware=[CodeModeMiddleware()])
        result = call_mode.invoke(agent, ASK)

    assert result["messages"][-2].text == "Looked."


def children() -> set[int]:
    """Return the processes that this one has started."""
    found: set[int] = set()
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(each.parent.name))
    return found


def test_what_is_no_whole_text_reaches_the_program() -> None:
    def odd() -> str:
        """Return half of a pair of surrogates."""
        return "a\ud800b"

    assert run("len(await odd())", tools=[odd]).text == "5"


def test_pictures_are_named_to_a_program() -> None:
    def chart() -> list[dict[str, str]]:
        """Draw a chart."""
        picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
        return [{"type": "text", "text": "Tides"}, picture]

    assert run("await chart()", tools=[chart]).text == "Tides\n[image: a program cannot see it]"


def test_two_programs_of_a_turn_keep_what_both_change(call_mode: CallMode) -> None:
    both = calls(
        ("run_code", {"code": "await note(text='a')"}), ("run_code", {"code": "await note(text='b')"})
    )
    with ScriptedModel(both, "Done.") as model:
        agent = create_deep_agent(
            model, tools=[note], middleware=[CodeModeMiddleware()], state_schema=Counting
        )
        result = call_mode.invoke(agent, {**ASK, "seen": [], "last": "none"})

    assert sorted(result["seen"]) == ["a", "b"]
    assert result["last"] in ("a", "b")


def test_edits_of_one_file_at_the_same_time_all_land(call_mode: CallMode, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("".join(f"line {n}.\n" for n in range(20)))
    code = """
import asyncio
await read_file(file_path="/log.txt")
edits = [
    edit_file(file_path="/log.txt", old_string=f"line {n}.", new_string=f"LINE {n}.") for n in range(20)
]
await asyncio.gather(*edits)
"""
    answer = run(code, mode=call_mode, backend=FilesystemBackend(tmp_path, virtual_mode=True))

    assert answer.status == "success"
    assert (tmp_path / "log.txt").read_text() == "".join(f"LINE {n}.\n" for n in range(20))


def test_a_person_who_watches_sees_the_program_as_one_call(call_mode: CallMode) -> None:
    code = "await look(place='Brest')\nawait task(description='Look', subagent_type='general-purpose')"
    with ScriptedModel(call("run_code", code=code), "Looked.", "Done.") as model:
        agent = create_deep_agent(model, tools=[look], middleware=[CodeModeMiddleware()])
        events = call_mode.observe(agent, ASK)

    assert [each.name for each in events if isinstance(each, ToolCalled)] == ["run_code"]
    finished = [each for each in events if isinstance(each, ToolFinished)]
    assert [(each.name, each.status) for each in finished] == [("run_code", "success")]
    assert isinstance(events[-1], FinalAnswer)


def test_without_the_interpreter_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(ConfigError, match=r"deepagents\[code\]"):
        CodeModeMiddleware()


class OwnMail(AgentMiddleware[Any, Any, Any]):
    """Give each of two runs at once a tool of its own, of the same name."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = 0
        self._both_asked = asyncio.Event()

    def bring(self, state: Any) -> Any:
        def mail() -> str:
            """Read mail."""
            return f"mail of {state['messages'][0].text}"

        return StructuredTool.from_function(mail)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        response = await handler(request.override(tools=[*request.tools, self.bring(request.state)]))
        self._asked += 1
        if self._asked == 2:
            self._both_asked.set()
        await self._both_asked.wait()
        return response

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        if request.tool is None and request.tool_call["name"] == "mail":
            request = request.override(tool=self.bring(request.state))
        return await handler(request)


async def test_a_program_calls_the_tools_of_its_own_run() -> None:
    def answer(asked: Asked) -> AIMessage | str:
        return asked.last if asked.messages[-1].type == "tool" else call("run_code", code="await mail()")

    agent = create_deep_agent(ScriptedModel(always=answer), middleware=[CodeModeMiddleware(), OwnMail()])
    people = ["Alice", "Bob"]
    results = await asyncio.gather(*[agent.ainvoke({"messages": each}) for each in people])

    assert [each["messages"][-1].text for each in results] == ["mail of Alice", "mail of Bob"]


LARGE = "one = 'x' * 1_000_000\n"
KEEP = "print('half')\nawait write_todos(todos=[{'content': 'one', 'status': 'pending'}])\n"
DEEP = "deep = 1\nfor _ in range(5_000):\n    deep = [deep]\n"


@pytest.mark.parametrize(
    ("code", "error_code", "words"),
    [
        (f"{LARGE}[one] * 300", "too_large", "more than 10,000,000 characters: return a part of it"),
        (f"{LARGE}{{1: (one, [one] * 10)}}", "too_large", "more than 10,000,000 characters"),
        ("some = [1] * 300\nfor _ in range(3):\n    some = [some] * 300\nsome", "too_large", "more than"),
        ("class Some:\n    pass\nit = Some()\n" + LARGE + "it.all = [one] * 300\nit", "too_large", "more"),
        (
            f"{LARGE}await look(place=[one] * 300)",
            "tool_failed",
            "arguments of look take more than 10,000,000",
        ),
        ("10**6_000", "tool_failed", "the last value cannot be shown"),
        (f"{DEEP}deep", "tool_failed", "the last value cannot be shown"),
    ],
)
def test_values_that_cannot_be_written_out_lose_nothing_else(
    code: str, error_code: str, words: str, call_mode: CallMode
) -> None:
    began = time.monotonic()
    with ScriptedModel(call("run_code", code=KEEP + code), "Done.") as model:
        agent = create_deep_agent(model, tools=[look], middleware=[CodeModeMiddleware()])
        result = call_mode.invoke(agent, ASK)

    answer = next(each for each in result["messages"] if each.type == "tool")
    assert answer.additional_kwargs["error_code"] == error_code
    assert words in answer.text
    assert "It had printed:\nhalf" in answer.text
    assert "- write_todos(todos=[{'content': 'one', 'status': 'pending'}]): done" in answer.text
    assert [each["content"] for each in result["todos"]] == ["one"]
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("value", ["[one] * 9", "{'all': [one] * 9}", "one * 20"])
def test_a_long_value_is_whole(value: str) -> None:
    answer = run(f"{LARGE}{value}", make=create_agent)

    assert len(answer.text) > 9_000_000
    assert answer.status == "success"


def test_halves_of_surrogate_pairs_inside_a_value_reach_the_program() -> None:
    @tool(response_format="content_and_artifact")
    def odd() -> tuple[str, dict[str, Any]]:
        """Return a value with half of a pair of surrogates."""
        return "see the artifact", {"structured_content": {"a\ud800": ["b\udfff", 1, None]}}

    assert run("it = await odd()\n[*it.items()]", tools=[odd]).text == "[('a���', ['b���', 1, None])]"


class Passing(DeepAgentState):
    for_a_step: NotRequired[Annotated[int, EphemeralValue(int)]]
    for_a_run: NotRequired[Annotated[int, UntrackedValue(int)]]


@tool
def pass_on(number: int, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Pass a number on, and say so to the model."""
    said = [ToolMessage("ok", tool_call_id=call_id), HumanMessage(f"{number} was passed on")]
    return Command(update={"for_a_step": number, "for_a_run": number, "messages": said})


class Watch(AgentMiddleware[Any, Any, Any]):
    """Note what of the state reaches the model."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def before_model(self, state: Any, runtime: Any) -> None:
        self.seen.append((state.get("for_a_step"), state.get("for_a_run")))


def test_the_last_of_many_changes_of_a_key_that_takes_one_is_kept(call_mode: CallMode) -> None:
    watch = Watch()
    code = "await pass_on(number=1)\nawait pass_on(number=2)"
    with ScriptedModel(call("run_code", code=code), "Done.") as model:
        agent = create_deep_agent(
            model, tools=[pass_on], middleware=[CodeModeMiddleware(), watch], state_schema=Passing
        )
        result = call_mode.invoke(agent, ASK)

    assert watch.seen[-1] == (2, 2)
    assert [each.text for each in result["messages"]][2:] == [
        "ok",
        "1 was passed on",
        "2 was passed on",
        "Done.",
    ]


def test_a_program_writes_no_list_of_to_dos_beside_a_call_that_does(call_mode: CallMode) -> None:
    one, other = [[{"content": each, "status": "pending"}] for each in ("one", "other")]
    both = calls(("write_todos", {"todos": one}), ("run_code", {"code": f"await write_todos(todos={other})"}))
    with ScriptedModel(both, "Done.") as model:
        agent = create_deep_agent(model, middleware=[CodeModeMiddleware()])
        result = call_mode.invoke(agent, ASK)

    answers = {each.name: each for each in result["messages"] if each.type == "tool"}
    assert result["todos"] == one
    assert answers["write_todos"].status == "success"
    assert "call it once a turn" in answers["run_code"].text


def test_of_two_programs_of_a_turn_one_replaces_a_list(call_mode: CallMode) -> None:
    texts = {each: [{"content": each, "status": "pending"}] for each in ("one", "other")}
    both = calls(*(("run_code", {"code": f"await write_todos(todos={each})"}) for each in texts.values()))
    later = call("run_code", code=f"await write_todos(todos={[*texts['one'], *texts['other']]})")
    with ScriptedModel(both, later, "Done.") as model:
        agent = create_deep_agent(model, middleware=[CodeModeMiddleware()])
        result = call_mode.invoke(agent, ASK)

    first, second, third = [each for each in result["messages"] if each.type == "tool"]
    refused, done = sorted((first, second), key=lambda each: each.status)
    assert (refused.status, done.status, third.status) == ("error", "success", "success")
    assert "another program of this turn has changed 'todos'" in refused.text
    assert [each["content"] for each in result["todos"]] == ["one", "other"]


def test_a_tool_is_called_by_a_name_that_can_be_written(call_mode: CallMode) -> None:
    def named(name: str) -> Any:
        return StructuredTool.from_function(lambda: f"I am {name}", name=name, description="Say who you are.")

    code = "print(await who_am_i(), tool_help('who_am_i'), tool_help('a_b'), sep='\\n')\nawait a_b()"
    tools = [named(each) for each in ("who-am-i", "a-b", "a_b", "x-y", "x.y")]
    answer = run(code, tools=tools, mode=call_mode)
    assert answer.text.split("\n")[:2] == ["I am who-am-i", "who-am-i: Say who you are."]
    assert "a_b: Say who you are." in answer.text
    assert answer.text.endswith("I am a_b")

    assert "no function or tool 'x_y'" in run("await x_y()", tools=tools, mode=call_mode).text


class Faulty(AgentMiddleware[Any, Any, Any]):
    """Have a bug where one tool is called."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return request.nothing if request.tool_call["name"] == "look" else handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return request.nothing if request.tool_call["name"] == "look" else await handler(request)


@pytest.mark.parametrize(
    ("place", "further", "error"),
    [("Brest", Faulty(), AttributeError), ("nowhere", ToolErrorMiddleware(raise_errors=True), ValueError)],
)
@pytest.mark.parametrize("times", [1, 2])
def test_what_would_reach_the_caller_does_so_from_a_program(
    place: str, further: Any, error: type[Exception], times: int, call_mode: CallMode
) -> None:
    code = f"""
import asyncio
try:
    await asyncio.gather(*[look(place={place!r}) for _ in range({times})])
except RuntimeError:
    print("caught")
"""
    with pytest.raises(error):
        run(code, middleware=[CodeModeMiddleware(), further], mode=call_mode)


def test_beside_the_limit_of_langchain_the_tools_have_to_be_named() -> None:
    limit: Any = ToolCallLimitMiddleware(tool_name="measure", run_limit=1)

    for make in MAKERS:
        with pytest.raises(RunConfigError, match="does not count the calls of programs"):
            run("await look(place='Brest')", make=make, middleware=[CodeModeMiddleware(), limit])
        named = CodeModeMiddleware(tools=["look"])
        answer = run("await look(place='Brest')", make=make, middleware=[named, limit])
        assert answer.text == "Brest is fine"


@pytest.mark.slow
def test_what_a_program_has_done_stays_when_another_call_of_it_is_cut_off(call_mode: CallMode) -> None:
    def dawdle() -> str:
        """Take long."""
        Event().wait(3)
        return "late"

    code = "import asyncio\nawait asyncio.gather(dawdle(), write_file(file_path='/kept.md', content='x'))"
    with ScriptedModel(call("run_code", code=code), "Done.") as model:
        agent = create_deep_agent(model, tools=[dawdle], middleware=[CodeModeMiddleware(seconds=2)])
        result = call_mode.invoke(agent, ASK)

    read = next(each.text for each in result["messages"] if each.type == "tool")
    assert "took longer than 2 s" in read
    assert "write_file(file_path='/kept.md', content='x'): done" in read
    assert "/kept.md" in result["files"]

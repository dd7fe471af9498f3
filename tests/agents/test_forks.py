"""Forks: they go on with the conversation of the agent that called them, at the cost of what is new."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import (
    AsyncSubAgent,
    CompiledSubAgent,
    FilesystemMiddleware,
    SubAgentMiddleware,
    create_deep_agent,
)
from deepagents.backends import StateBackend
from deepagents.errors import ConfigError
from deepagents.middleware import SkillsMiddleware
from deepagents.testing import Asked, ScriptedModel, WindowedModel, call, calls
from deepagents.testing.histories import history_faults
from deepagents.testing.prefixes import assert_prefix_kept, shared_prefix
from tests import savers
from tests.agents.delegating import text
from tests.conftest import CallMode


def fork(**rest: Any) -> Any:
    return {"name": "twin", "description": "is the agent itself", "mode": "fork", **rest}


def delegate(to: str = "twin", what: str = "Look into the tides.") -> AIMessage:
    return call("task", description=what, subagent_type=to)


def test_a_fork_is_asked_what_its_caller_was_asked_and_then_its_task(call_mode: CallMode) -> None:
    """With all that adds to a request: memory, skills, a plan, tools and middleware of the caller."""

    @tool
    def tides(place: str) -> str:
        """Tell the tides."""
        return "high"

    skill = "---\nname: sailing\ndescription: How to sail.\n---\nMind the wind."
    files = {"/AGENTS.md": text("Use tabs."), "/skills/sailing/SKILL.md": text(skill)}
    plan = [{"content": "look", "status": "pending"}]
    script = (call("write_todos", todos=plan), delegate(), "From the fork.", "Told.")
    with WindowedModel(*script) as model:
        agent = create_deep_agent(
            model,
            tools=[tides],
            system_prompt="You are Ada.",
            memory=["/AGENTS.md"],
            skills=["/skills"],
            subagents=[fork(system_prompt="Answer in verse.")],
        )
        result = call_mode.invoke(agent, {"messages": "Tides?", "files": files})

    _, asked, forked, told = model.asked
    assert_prefix_kept([asked, forked])
    assert forked.messages[0] == asked.messages[0]
    assert forked.tools == asked.tools
    assert history_faults(forked.messages) == []
    assert "Use tabs." in forked.system
    assert "sailing" in forked.system
    assert forked.last.endswith("Answer in verse.\n\nTask:\nLook into the tides.")
    assert result["messages"][-2].text == "From the fork."
    assert shared_prefix(asked, told).whole


def test_a_fork_has_the_tools_that_a_skill_disclosed_and_those_for_tasks_elsewhere() -> None:
    @tool
    def sail(where: str) -> str:
        """Sail."""
        return "sailed"

    path = "/skills/sailing/SKILL.md"
    front = "name: sailing\ndescription: How to sail.\nmetadata:\n  include_tools: sail"
    skills = SkillsMiddleware(backend=StateBackend(), sources=["/skills"], tools=[sail])
    far = AsyncSubAgent(name="far", description="is far", graph_id="g", url="http://127.0.0.1:1")
    script = (call("read_file", file_path=path), delegate(), call("sail", where="home"), "Home.", "Done.")
    with WindowedModel(*script) as model:
        agent = create_deep_agent(model, middleware=[skills], subagents=[fork(), far])
        files = {path: text(f"---\n{front}\n---\nMind the wind.")}
        agent.invoke({"messages": "Go", "files": files})

    assert {"sail", "start_async_task"} <= set(model.asked[1].tool_names)
    assert_prefix_kept(model.asked[1:4])
    assert model.asked[3].last == "sailed"


def test_a_fork_sees_what_was_said_in_the_turn_that_called_it() -> None:
    """And forks of one turn share all but their tasks."""
    turn = calls(
        ("task", {"description": "left", "subagent_type": "twin"}),
        ("task", {"description": "right", "subagent_type": "twin"}),
        text="I split the work at the harbour wall.",
    )

    def work(asked: Asked) -> str:
        return f"did {asked.last.splitlines()[-1]}"

    with WindowedModel(turn, work, work, "Done.") as model:
        result = create_deep_agent(model, subagents=[fork()]).invoke({"messages": "Go"})

    first, left, right, _ = model.asked
    assert [each.text for each in result["messages"] if each.type == "tool"] == ["did left", "did right"]
    assert "harbour wall" in str(left.messages)
    assert_prefix_kept([first, left])
    assert shared_prefix(left, right).messages == len(left.messages) - 2


def test_a_fork_sees_the_results_that_its_turn_has_already() -> None:
    """As where a person has refused one call of it."""
    turn = calls(
        ("delete", {"file_path": "/a.txt"}), ("task", {"description": "Go", "subagent_type": "twin"})
    )
    with WindowedModel(turn, "Fork done.", "Done.") as model:
        agent = create_deep_agent(
            model, subagents=[fork()], interrupt_on={"delete": True}, checkpointer=InMemorySaver()
        )
        thread: Any = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": "Go", "files": {"/a.txt": text("x")}}, thread)
        refused = {"type": "reject", "message": "Keep that file."}
        result = agent.invoke(Command(resume={"decisions": [refused]}), thread)

    _, forked, _ = model.asked
    assert history_faults(forked.messages) == []
    assert "Keep that file." in str(forked.messages)
    assert result["messages"][-2].text == "Fork done."


def long_turns(count: int, *, thinking_aloud: bool = True) -> list[AIMessage]:
    """Write files whose texts are clipped later, or say so much that a summary has to stand for it."""
    return [
        calls(
            ("write_file", {"file_path": f"/{number}.txt", "content": f"line {number}\n" * 700}),
            text=f"thought {number} " * (300 if thinking_aloud else 1),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("compacted", [True, False])
def test_a_fork_sees_summaries_and_clipped_arguments_as_its_caller_does(compacted: bool) -> None:
    turns = long_turns(14, thinking_aloud=compacted)
    with WindowedModel(*turns, delegate(), "Forked.", "Done.", window=16_000) as model:
        result = create_deep_agent(model, subagents=[fork()]).invoke({"messages": "Write."})

    asked, forked, told = model.turns[-3:]
    assert bool(model.summaries) == compacted
    assert ("<summary>" if compacted else "argument truncated") in str(asked.messages)
    assert_prefix_kept([asked, forked])
    assert shared_prefix(asked, told).whole
    assert result["messages"][-2].text == "Forked."


def test_what_a_fork_sums_up_is_its_own() -> None:
    with WindowedModel(delegate(), *long_turns(14), "Forked.", "Done.", window=16_000) as model:
        agent = create_deep_agent(model, subagents=[fork()])
        result = agent.invoke({"messages": "Write."})

    assert model.summaries
    assert result["messages"][-2].text == "Forked."
    assert [message.type for message in model.asked[-1].messages] == ["system", "human", "ai", "tool"]
    archives = [path for path in result["files"] if path.startswith("/conversation_history/")]
    assert len(archives) == 1


def test_a_fork_may_not_delegate() -> None:
    with ScriptedModel(delegate(), delegate("general-purpose"), "Did it myself.", "Done.") as model:
        result = create_deep_agent(model, subagents=[fork()]).invoke({"messages": "Go"})

    refused = model.asked[2].messages[-1]
    assert isinstance(refused, ToolMessage)
    assert refused.status == "error"
    assert refused.additional_kwargs["error_code"] == "not_supported"
    assert "cannot delegate" in refused.text
    assert result["messages"][-2].text == "Did it myself."


def test_a_fork_that_says_nothing_does_not_speak_with_its_callers_words() -> None:
    with ScriptedModel("Hello.", delegate(), "", "Done.") as model:
        agent = create_deep_agent(model, subagents=[fork()], checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": "Hi"}, thread)
        result = agent.invoke({"messages": "Go"}, thread)

    assert "without writing an answer" in result["messages"][-2].text


def test_what_a_fork_changes_comes_back_and_its_plan_does_not() -> None:
    plan = [{"content": "main's", "status": "pending"}]
    own = [{"content": "fork's", "status": "pending"}]
    edit = {"file_path": "/a.txt", "old_string": "old", "new_string": "new"}
    script = (
        call("write_todos", todos=plan),
        call("read_file", file_path="/a.txt"),
        delegate(),
        call("read_todos"),
        calls(("write_todos", {"todos": own}), ("edit_file", edit)),
        "Edited.",
        "Done.",
    )
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(model, subagents=[fork()])
        result = agent.invoke({"messages": "Go", "files": {"/a.txt": text("old")}})

    assert model.asked[4].last == "[ ] main's"
    assert result["files"]["/a.txt"]["content"] == "new"
    assert [todo["content"] for todo in result["todos"]] == ["main's"]
    assert sorted(result) == ["files", "messages", "todos"]


def test_a_fork_asks_a_person_and_goes_on_where_it_was(call_mode: CallMode) -> None:
    script = (delegate(), call("delete", file_path="/a.txt"), "Deleted.", "Done.")
    with WindowedModel(*script) as model:
        agent = create_deep_agent(
            model, subagents=[fork()], interrupt_on={"delete": True}, checkpointer=InMemorySaver()
        )
        thread: Any = {"configurable": {"thread_id": "1"}}
        asked = call_mode.invoke(agent, {"messages": "Go", "files": {"/a.txt": text("x")}}, thread)
        result = call_mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), thread)

    assert asked["__interrupt__"][0].value["action_requests"][0]["name"] == "delete"
    assert result["messages"][-2].text == "Deleted."
    assert result["files"] == {}
    assert_prefix_kept(model.asked[:3])


def test_a_compiled_fork_is_given_what_its_caller_sees(call_mode: CallMode) -> None:
    seen: list[Any] = []

    def work(state: dict[str, Any]) -> dict[str, Any]:
        seen.append(state)
        return {"messages": [*state["messages"], AIMessage("Compiled.")]}

    ready = CompiledSubAgent(name="ready", description="d", runnable=RunnableLambda(work), mode="fork")
    with WindowedModel(*long_turns(14), delegate("ready"), "Done.", window=16_000) as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=[ready]), {"messages": "Write."})

    asked, _ = model.turns[-2:]
    messages = seen[0]["messages"]
    assert seen[0].keys() == {"messages", "files"}
    before = Asked([asked.messages[0], *messages], asked.tools)
    assert_prefix_kept([asked, before])
    assert history_faults(messages) == []
    assert messages[-1].text.endswith("Look into the tides.")
    assert "refuse" not in messages[-1].text
    assert result["messages"][-2].text == "Compiled."


def test_a_fork_on_another_model_has_that_models_prompt() -> None:
    """Another model shares no cache, so nothing is lost."""
    other = ScriptedModel("From afar.", model_name="claude-opus-4-7", provider="anthropic")
    with ScriptedModel(delegate(), "Done.") as model:
        agent = create_deep_agent(model, system_prompt="You are Ada.", subagents=[fork(model=other)])
        agent.invoke({"messages": "Go"})

    alone = ScriptedModel("Hi.", model_name="claude-opus-4-7", provider="anthropic")
    create_deep_agent(alone, system_prompt="You are Ada.", subagents=[fork()]).invoke({"messages": "Go"})
    assert other.asked[0].system == alone.asked[0].system
    assert other.asked[0].system != model.asked[0].system


def test_a_fork_has_the_callers_middleware_and_its_own() -> None:
    seen: list[str] = []

    class Note(AgentMiddleware[Any, Any, Any]):
        def __init__(self, name: str, says: str) -> None:
            self.called, self.says = name, says

        @property
        def name(self) -> str:
            return self.called

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(self.says)
            return handler(request)

    own = [Note("one", "fork one"), Note("three", "fork three")]
    callers = [Note("one", "one"), Note("two", "two")]
    with ScriptedModel(delegate(), "Forked.", "Done.") as model:
        agent = create_deep_agent(model, middleware=callers, subagents=[fork(middleware=own)])
        agent.invoke({"messages": "Go"})

    assert seen == ["one", "two", "fork one", "two", "fork three", "one", "two"]


def test_a_fork_with_tools_of_its_own_has_these_instead() -> None:
    def mine() -> str:
        """Do mine."""
        return "mine"

    def theirs() -> str:
        """Do theirs."""
        return "theirs"

    with ScriptedModel(delegate(), "Forked.", "Done.") as model:
        agent = create_deep_agent(model, tools=[theirs], subagents=[fork(tools=[mine])])
        agent.invoke({"messages": "Go"})

    assert "theirs" not in model.asked[1].tool_names
    assert model.asked[1].tool_names[-1] == "mine"


def test_the_task_tool_says_which_agents_are_forks() -> None:
    with ScriptedModel("Hi.") as model:
        create_deep_agent(model, subagents=[fork()]).invoke({"messages": "Go"})

    assert "- twin: is the agent itself (a fork" in str(model.asked[0].tools)


def test_middleware_alone_makes_forks_too() -> None:
    """Of complete specs, whose prompt and tools are the caller's affair."""
    with WindowedModel(delegate(), delegate(), "Forked.", "Done.") as model:
        files = FilesystemMiddleware(backend=StateBackend())
        spec = fork(model=model, tools=[], middleware=[files])
        agent: Any = create_agent(model, middleware=[files, SubAgentMiddleware(subagents=[spec])])
        result = agent.invoke({"messages": "Go"})

    first, forked, _, _ = model.asked
    assert forked.tools == first.tools
    assert "cannot delegate" in model.asked[2].last
    assert result["messages"][-2].text == "Forked."


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"skills": ["/skills"]}, "skills of its own"),
        ({"mode": "spoon"}, "'isolated' or 'fork', got 'spoon'"),
    ],
)
def test_what_no_fork_can_be_is_refused(spec: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        create_deep_agent(ScriptedModel(), subagents=[fork(**spec)])


def test_that_forks_are_in_beta_is_said_once_at_the_callers_line() -> None:
    with pytest.warns(DeprecationWarning, match="The feature `forked subagents` is in beta.") as warned:
        create_deep_agent(ScriptedModel(), subagents=[fork(), fork(name="other")])

    assert [each.filename for each in warned] == [__file__]


def test_no_skills_are_no_skills_of_its_own() -> None:
    create_deep_agent(ScriptedModel(), subagents=[fork(skills=[])])


def test_a_fork_goes_on_in_another_process_with_what_it_began_with(
    call_mode: CallMode, tmp_path: Path
) -> None:
    """Which is saved for its caller, and not again for each fork."""
    place = str(tmp_path / "threads.sqlite")
    thread: Any = {"configurable": {"thread_id": "1"}}
    wish = "Remove what nobody needs. " * 400
    begun = ScriptedModel(delegate(), call("delete", file_path="/a.txt"))
    ended = ScriptedModel("It is gone.", "Done.")

    def agent(model: ScriptedModel, saver: Any) -> Any:
        return create_deep_agent(model, subagents=[fork()], interrupt_on={"delete": True}, checkpointer=saver)

    with savers.opened("sqlite", call_mode, place) as saver:
        call_mode.invoke(agent(begun, saver), {"messages": wish, "files": {"/a.txt": text("x")}}, thread)
    with savers.opened("sqlite", call_mode, place) as saver:
        approve = Command(resume={"decisions": [{"type": "approve"}]})
        result = call_mode.invoke(agent(ended, saver), approve, thread)

    assert result["files"] == {}
    assert result["messages"][-2].text == "It is gone."
    assert_prefix_kept([*begun.asked, ended.asked[0]])
    with closing(sqlite3.connect(place)) as database:
        tables = {"checkpoints": "checkpoint", "writes": "value"}
        kept = [
            row
            for table, column in tables.items()
            for row in database.execute(f"SELECT checkpoint_ns, {column} FROM {table}")
        ]
    assert any(wish.encode() in value for namespace, value in kept if not namespace)
    assert not any(wish.encode() in value for namespace, value in kept if namespace)

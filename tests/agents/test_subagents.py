"""Delegation: who can be called, what a child sees, what comes back, and how parallel work merges."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from threading import Barrier
from typing import Annotated, Any, NotRequired

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from deepagents import (
    CompiledSubAgent,
    DeepAgentState,
    FilesystemMiddleware,
    MemoryMiddleware,
    RubricMiddleware,
    SubAgentMiddleware,
    create_deep_agent,
)
from deepagents.backends import StateBackend
from deepagents.errors import ConfigError
from deepagents.middleware import SkillsMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.testing import Asked, ScriptedModel, call
from tests.agents.delegating import delegate, text, together, worker
from tests.conftest import CallMode


def test_the_general_purpose_agent_works_with_the_same_tools_and_prompt(call_mode: CallMode) -> None:
    script = (delegate("general-purpose", "Find out"), "the finding", "Told.")
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(model, system_prompt="You are Ada.")
        result = call_mode.invoke(agent, {"messages": "Find out"})

    main, child, _ = model.asked
    assert result["messages"][-2].text == "the finding"
    assert child.messages[-1].text == "Find out"
    assert "You are Ada." in child.system
    assert "only your last message is returned" in child.system
    assert child.tool_names == [name for name in main.tool_names if name != "task"]


def test_a_declared_subagent_has_its_own_model_prompt_and_tools() -> None:
    def weather(city: str) -> str:
        """Tell the weather."""
        return "rain"

    child = worker(
        "meteo", call("weather", city="Oslo"), "Rain.", system_prompt="You watch clouds.", tools=[weather]
    )
    with ScriptedModel(delegate("meteo"), "Take a coat.") as model:
        result = create_deep_agent(model, subagents=[child]).invoke({"messages": "Oslo?"})

    asked: Asked = child["model"].asked[0]
    assert asked.system.startswith("You watch clouds.")
    assert "weather" in asked.tool_names
    assert "weather" not in model.asked[0].tool_names
    assert result["messages"][-2].text == "Rain."


def test_a_subagent_without_tools_of_its_own_takes_the_main_agents() -> None:
    def weather() -> str:
        """Tell the weather."""
        return "rain"

    inherits, has_none = worker("inherits", "ok"), worker("has-none", "ok", tools=[])
    with ScriptedModel(together("inherits", "has-none"), "Done.") as model:
        create_deep_agent(model, tools=[weather], subagents=[inherits, has_none]).invoke({"messages": "Go"})

    assert "weather" in inherits["model"].asked[0].tool_names
    assert "weather" not in has_none["model"].asked[0].tool_names


def test_a_compiled_subagent_is_used_as_it_is(call_mode: CallMode) -> None:
    graph = create_agent(ScriptedModel("compiled answer"), tools=[])
    compiled = CompiledSubAgent(name="ready", description="is ready", runnable=graph)
    with ScriptedModel(delegate("ready"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=[compiled]), {"messages": "Go"})

    assert result["messages"][-2].text == "compiled answer"


def test_a_compiled_subagent_may_answer_with_plain_dicts() -> None:
    plain = RunnableLambda(lambda state: {"messages": [{"role": "assistant", "content": "plain"}]})
    compiled = CompiledSubAgent(name="plain", description="is plain", runnable=plain)
    with ScriptedModel(delegate("plain"), "Done.") as model:
        result = create_deep_agent(model, subagents=[compiled]).invoke({"messages": "Go"})

    assert result["messages"][-2].text == "plain"


def test_an_unknown_subagent_is_an_error_that_names_the_known_ones() -> None:
    with ScriptedModel(delegate("nobody"), "Oh.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go"})

    refused = result["messages"][-2]
    assert refused.status == "error"
    assert refused.additional_kwargs["error_code"] == "unknown_subagent"
    assert "`general-purpose`" in refused.text


def test_an_extra_argument_of_task_is_refused_by_name() -> None:
    bad = call("task", description="Go", subagent_type="general-purpose", files=["/a"])
    with ScriptedModel(bad, "Oh.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go"})

    assert result["messages"][-2].status == "error"
    assert "files" in result["messages"][-2].text


def test_parallel_subagents_keep_each_others_files() -> None:
    first = worker("first", call("write_file", file_path="/a.txt", content="A"), "ok")
    second = worker("second", call("write_file", file_path="/b.txt", content="B"), "ok")
    with ScriptedModel(together("first", "second"), "Done.") as model:
        result = create_deep_agent(model, subagents=[first, second]).invoke({"messages": "Go"})

    assert {path: data["content"] for path, data in result["files"].items()} == {"/a.txt": "A", "/b.txt": "B"}


def test_parallel_edits_of_different_existing_files_both_stand() -> None:
    def editor(name: str, path: str) -> Any:
        return worker(name, call("edit_file", file_path=path, old_string="old", new_string=name), "ok")

    given = {"/a.txt": text("old"), "/b.txt": text("old")}
    subagents = [editor("first", "/a.txt"), editor("second", "/b.txt")]
    with ScriptedModel(together("first", "second"), "Done.") as model:
        agent = create_deep_agent(model, subagents=subagents)
        result = agent.invoke({"messages": "Go", "files": given})

    assert [message.text for message in result["messages"] if message.type == "tool"] == ["ok", "ok"]
    assert result["files"]["/a.txt"]["content"] == "first"
    assert result["files"]["/b.txt"]["content"] == "second"


def test_parallel_edits_of_one_file_merge_by_line() -> None:
    def editor(name: str, line: str) -> Any:
        return worker(name, call("edit_file", file_path="/a.txt", old_string=line, new_string=name), "ok")

    given = {"/a.txt": text("one\ntwo\nthree\nfour\nfive\n")}
    subagents = [editor("FIRST", "one"), editor("LAST", "five")]
    with ScriptedModel(together("FIRST", "LAST"), "Done.") as model:
        agent = create_deep_agent(model, subagents=subagents)
        result = agent.invoke({"messages": "Go", "files": given})

    assert result["files"]["/a.txt"]["content"] == "FIRST\ntwo\nthree\nfour\nLAST\n"


def test_parallel_changes_of_one_line_are_both_kept_and_marked() -> None:
    def editor(name: str) -> Any:
        return worker(name, call("edit_file", file_path="/a.txt", old_string="one", new_string=name), "ok")

    with ScriptedModel(together("red", "blue"), "Done.") as model:
        agent = create_deep_agent(model, subagents=[editor("red"), editor("blue")])
        result = agent.invoke({"messages": "Go", "files": {"/a.txt": text("one\n")}})

    content = result["files"]["/a.txt"]["content"]
    assert "red" in content
    assert "blue" in content
    assert "<<<<<<<" in content


def test_a_file_that_a_subagent_deleted_stays_deleted() -> None:
    remover = worker("remover", call("delete", file_path="/old.txt"), "ok")
    bystander = worker("bystander", "ok")
    with ScriptedModel(together("remover", "bystander"), "Done.") as model:
        agent = create_deep_agent(model, subagents=[remover, bystander])
        result = agent.invoke({"messages": "Go", "files": {"/old.txt": text("x"), "/new.txt": text("y")}})

    assert sorted(result["files"]) == ["/new.txt"]


def test_a_file_that_one_deletes_and_another_changes_is_kept() -> None:
    edit = {"file_path": "/a.txt", "old_string": "old", "new_string": "new"}
    for order in (("remover", "editor"), ("editor", "remover")):
        remover = worker("remover", call("delete", file_path="/a.txt"), "ok")
        editor = worker("editor", call("edit_file", **edit), "ok")
        with ScriptedModel(together(*order), "Done.") as model:
            agent = create_deep_agent(model, subagents=[remover, editor])
            result = agent.invoke({"messages": "Go", "files": {"/a.txt": text("old")}})

        assert result["files"]["/a.txt"]["content"] == "new"


def test_values_with_reducers_are_not_counted_twice() -> None:
    class Ledger(DeepAgentState):
        notes: Annotated[list[str], operator.add]
        spent: Annotated[int, operator.add]

    def work(state: Any) -> dict[str, Any]:
        return {
            **state,
            "notes": [*state["notes"], "n"],
            "spent": state["spent"] + 2,
            "messages": [AIMessage("ok")],
        }

    compiled = CompiledSubAgent(name="clerk", description="notes", runnable=RunnableLambda(work))
    with ScriptedModel(together("clerk", "clerk"), "Done.") as model:
        agent = create_deep_agent(model, subagents=[compiled], state_schema=Ledger)
        result = agent.invoke({"messages": "Go", "notes": ["p"], "spent": 10})

    assert result["notes"] == ["p", "n", "n"]
    assert result["spent"] == 14


def test_parallel_subagents_really_run_side_by_side(call_mode: CallMode) -> None:
    both_are_here = Barrier(2, timeout=30)

    def meet(asked: Asked) -> str:
        both_are_here.wait()
        return "met"

    subagents = [worker("left", meet), worker("right", meet)]
    with ScriptedModel(together("left", "right"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=subagents), {"messages": "Go"})

    assert [message.text for message in result["messages"][-3:-1]] == ["met", "met"]


class Finding(BaseModel):
    what: str
    when: date


@dataclass
class Place:
    city: str


def test_a_structured_response_comes_back_as_json(call_mode: CallMode) -> None:
    child = worker("finder", call("Finding", what="comet", when="2026-01-02"), response_format=Finding)
    with ScriptedModel(delegate("finder"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, subagents=[child]), {"messages": "Go"})

    assert result["messages"][-2].text == '{"what":"comet","when":"2026-01-02"}'


@pytest.mark.parametrize(
    ("structured", "expected"),
    [
        ({"a": 1}, '{"a": 1}'),
        (Place("Oslo"), '{"city": "Oslo"}'),
        ({"d": date(2026, 1, 2)}, '{"d": "2026-01-02"}'),
        ({"city": "Tromsø"}, '{"city": "Tromsø"}'),
    ],
)
def test_any_structured_value_becomes_json(structured: Any, expected: str) -> None:
    def work(state: Any) -> dict[str, Any]:
        return {"messages": [], "structured_response": structured}

    compiled = CompiledSubAgent(name="maker", description="makes", runnable=RunnableLambda(work))
    with ScriptedModel(delegate("maker"), "Done.") as model:
        result = create_deep_agent(model, subagents=[compiled]).invoke({"messages": "Go"})

    assert result["messages"][-2].text == expected


def test_an_empty_answer_is_said_to_be_empty() -> None:
    child = worker("mute", "  ")
    with ScriptedModel(delegate("mute"), "Done.") as model:
        result = create_deep_agent(model, subagents=[child]).invoke({"messages": "Go"})

    assert "without writing an answer" in result["messages"][-2].text


class OwnState(AgentState[Any]):
    """What a caller's own middleware keeps."""

    own: NotRequired[Annotated[int, PrivateStateAttr]]
    told: NotRequired[int]


class Own(AgentMiddleware[Any, Any, Any]):
    """A caller's own middleware with something to keep to itself, and something to tell."""

    state_schema = OwnState

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"own": 1, "told": 2}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"own": 1, "told": 2}


@pytest.mark.parametrize("alone", [True, False])
def test_a_subagent_sees_nothing_that_features_keep_to_themselves(call_mode: CallMode, alone: bool) -> None:
    seen: list[dict[str, Any]] = []

    def work(state: dict[str, Any]) -> dict[str, Any]:
        seen.append(state)
        return {"messages": [AIMessage("Done.")], "memory_contents": {"/AGENTS.md": "Forged."}}

    ready = CompiledSubAgent(name="ready", description="d", runnable=RunnableLambda(work))
    script = (call("read_file", file_path="/AGENTS.md"), delegate("ready"), "Told.")
    model = ScriptedModel(*script)
    if alone:
        backend = StateBackend()
        agent: Any = create_agent(
            model,
            middleware=[
                Own(),
                MemoryMiddleware(backend=backend, sources=["/AGENTS.md"]),
                SkillsMiddleware(backend=backend, sources=["/skills"]),
                FilesystemMiddleware(backend=backend),
                RubricMiddleware(model=ScriptedModel("?")),
                SummarizationMiddleware(model, backend=backend),
                SubAgentMiddleware(subagents=[ready], private_state_keys=frozenset({"own"})),
            ],
        )
    else:
        agent = create_deep_agent(
            model, memory=["/AGENTS.md"], skills=["/skills"], subagents=[ready], middleware=[Own()]
        )
    given = {"messages": "Go", "files": {"/AGENTS.md": text("Use tabs.")}}
    call_mode.invoke(agent, given)

    assert seen[0].keys() == {"messages", "files", "told"}
    assert "Use tabs." in model.asked[-1].system


def test_middleware_that_delegates_is_told_of_private_keys_and_left_as_it_was() -> None:
    seen: list[dict[str, Any]] = []

    def work(state: dict[str, Any]) -> dict[str, Any]:
        seen.append(state)
        return {"messages": [AIMessage("Done.")]}

    ready = CompiledSubAgent(name="ready", description="d", runnable=RunnableLambda(work))
    own = SubAgentMiddleware(subagents=[ready])
    before = dict(vars(own))
    agent = create_deep_agent(ScriptedModel(delegate("ready"), "Told."), middleware=[Own(), own])
    agent.invoke({"messages": "Go"})

    assert seen[0].keys() == {"messages", "files", "told"}
    assert vars(own) == before


def test_each_agent_keeps_its_own_plan() -> None:
    plan = [{"content": "child's", "status": "pending"}]
    child = worker("planner", call("write_todos", todos=plan), "ok")
    mine = [{"content": "main's", "status": "pending"}]
    with ScriptedModel(call("write_todos", todos=mine), delegate("planner"), "Done.") as model:
        result = create_deep_agent(model, subagents=[child]).invoke({"messages": "Go"})

    assert [todo["content"] for todo in result["todos"]] == ["main's"]


def test_the_older_key_prompt_still_works_and_warns_once() -> None:
    child = worker("old", "ok", prompt="You are old.")
    with pytest.warns(DeprecationWarning, match="'prompt'") as warned:
        agent = create_deep_agent(ScriptedModel(delegate("old"), "Done."), subagents=[child])
    agent.invoke({"messages": "Go"})

    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert child["model"].asked[0].system.startswith("You are old.")


@pytest.mark.parametrize(
    ("specs", "complaint"),
    [
        ([{"description": "d"}], "needs a name"),
        ([{"name": "a"}], "needs a description"),
        ([worker("a"), worker("a")], "'a'"),
        (["general-purpose"], "mapping"),
    ],
)
def test_a_bad_spec_is_refused_while_building(specs: list[Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        create_deep_agent(ScriptedModel(), subagents=specs)


def test_an_unknown_key_is_reported_with_what_was_meant() -> None:
    with pytest.warns(UserWarning, match="'systemprompt'.*'system_prompt'"):
        create_deep_agent(ScriptedModel(), subagents=[worker("a", systemprompt="x")])


def test_the_general_purpose_agent_takes_no_middleware_that_it_has_no_place_for() -> None:
    spec: Any = worker("helper", "helped", tools=[])
    script = (delegate("helper"), "Done.")
    with ScriptedModel(*script) as model:
        own = SubAgentMiddleware(subagents=[spec])
        result = create_deep_agent(model, middleware=[own]).invoke({"messages": "Go"})

    assert result["messages"][-2].text == "helped"
    assert "general-purpose" not in str(model.asked[0].tools)


def test_a_callers_general_purpose_agent_replaces_the_built_in_one() -> None:
    own = worker("general-purpose", "mine")
    with ScriptedModel(delegate("general-purpose"), "Done.") as model:
        result = create_deep_agent(model, subagents=[own]).invoke({"messages": "Go"})

    assert result["messages"][-2].text == "mine"


@pytest.mark.parametrize(
    ("work", "left"),
    [
        (lambda files: {"/new.txt": text("new")}, {"/old.txt": "old", "/new.txt": "new"}),
        (lambda files: {**files, "/new.txt": "new"}, {"/old.txt": "old", "/new.txt": "new"}),
        (lambda files: {"/old.txt": "changed"}, {"/old.txt": "changed"}),
        (lambda files: {"/old.txt": None}, {}),
    ],
)
def test_files_that_a_runnable_does_not_mention_stay(work: Any, left: dict[str, str]) -> None:
    def keep(given: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("ok")], "files": work(given["files"])}

    clerk = CompiledSubAgent(name="clerk", description="keeps files", runnable=RunnableLambda(keep))
    with ScriptedModel(delegate("clerk"), "Done.") as model:
        agent = create_deep_agent(model, subagents=[clerk])
        result = agent.invoke({"messages": "Go", "files": {"/old.txt": "old"}})

    assert {path: data["content"] for path, data in result["files"].items()} == left


def test_a_runnable_that_returns_no_state_is_told_what_to_return() -> None:
    runnable: Any = RunnableLambda(lambda given: AIMessage("ok"))
    wrong = CompiledSubAgent(name="wrong", description="is wrong", runnable=runnable)
    with ScriptedModel(delegate("wrong"), "Done.") as model:
        result = create_deep_agent(model, subagents=[wrong]).invoke({"messages": "Go"})

    assert "must return a state" in result["messages"][-2].text


class Watched(list[Any]):
    """No tools, and a note of each look at them: one for their names, and those of who compiles an agent."""

    def __init__(self, seen: list[str], name: str) -> None:
        super().__init__()
        self.seen, self.of = seen, name

    def __iter__(self) -> Iterator[Any]:
        self.seen.append(self.of)
        return super().__iter__()


class Compiled(AgentMiddleware[Any, Any, Any]):
    """Middleware of a subagent that tells when it was compiled."""

    def __init__(self, seen: list[str], name: str) -> None:
        self.tools = Watched(seen, name)


def test_a_subagent_is_compiled_on_first_use_and_once(call_mode: CallMode) -> None:
    """Also with state of its own kept back, with two at once, and in later runs."""
    seen: list[str] = []
    one, other = (worker(name, *["ok"] * 4, middleware=[Compiled(seen, name)]) for name in ("one", "other"))
    script = [together("one", "one"), "Done.", delegate("one"), "Done."]
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(model, subagents=[one, other])
        built = list(seen)
        call_mode.invoke(agent, {"messages": "Go"})
        used = list(seen)
        call_mode.invoke(agent, {"messages": "Again"})

    once: list[str] = []
    create_agent(ScriptedModel(), middleware=[Compiled(once, "one")])
    compiled = used[len(built) :]
    assert sorted(built) == ["one", "other"]
    assert len(compiled) <= len(once) + 1
    assert set(compiled) == {"one"}
    assert seen == used

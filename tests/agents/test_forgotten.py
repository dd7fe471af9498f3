"""What a developer forgot or mistook is said to the developer, and not to the model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from deepagents.errors import ConfigError, RunConfigError, StoreMissing
from deepagents.events import ToolFinished
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

# A thread and a message


@pytest.mark.parametrize("config", [None, {}, {"configurable": {"user_id": "ada"}}])
@pytest.mark.parametrize("method", ["invoke", "stream", "observe"])
def test_a_forgotten_thread_is_named(call_mode: CallMode, method: str, config: Any) -> None:
    agent = create_deep_agent(ScriptedModel("Hello."), checkpointer=InMemorySaver())
    run: Callable[..., Any] = getattr(call_mode, method)

    with pytest.raises(ValueError, match=r"Checkpointer requires .* thread_id.*config=\{"):
        run(agent, {"messages": "hi"}, config)


def test_a_thread_that_the_agent_is_bound_to_is_enough(call_mode: CallMode) -> None:
    bound: Any = create_deep_agent(ScriptedModel("Hello."), checkpointer=InMemorySaver()).with_config(
        {"configurable": {"thread_id": "1"}}
    )
    assert call_mode.invoke(bound, {"messages": "hi"})["messages"][-1].text == "Hello."


def test_a_state_without_any_key_of_the_agents_is_refused(call_mode: CallMode) -> None:
    with pytest.raises(TypeError, match=r"'message'; write \{\"messages\": \.\.\.\}"):
        call_mode.invoke(create_deep_agent(ScriptedModel()), {"message": "hi"})


# A bug in a tool


@tool
def lookup(word: str) -> str:
    """Look a word up."""
    found: dict[str, str] = {}
    return found[word]


def test_a_bug_in_a_tool_is_in_the_log_once_and_its_type_in_the_event(
    call_mode: CallMode, caplog: pytest.LogCaptureFixture
) -> None:
    helper: Any = {"name": "helper", "description": "helps", "model": ScriptedModel(ConnectionError("away"))}
    model = ScriptedModel(
        call("lookup", word="one"),
        call("lookup", word="two"),
        call("task", description="Help", subagent_type="helper"),
        "I cannot.",
    )
    with model, caplog.at_level(logging.WARNING, logger="deepagents"):
        events = call_mode.observe(
            create_deep_agent(model, tools=[lookup], subagents=[helper]), {"messages": "Go"}
        )

    finished = [each for each in events if isinstance(each, ToolFinished)]
    assert [each.error for each in finished] == ["KeyError", "KeyError"]
    bug, away = caplog.records
    assert (bug.getMessage(), bug.levelname) == (
        "the tool 'lookup' failed, and the model was told so",
        "WARNING",
    )
    assert "return found[word]" in caplog.text
    assert away.exc_info is not None
    assert isinstance(away.exc_info[1], ConnectionError)


# A tool that can only be awaited


@tool
async def search(query: str) -> str:
    """Search."""
    return f"nothing about {query}"


class Search(BaseTool):
    """A tool whose class has no blocking form."""

    name: str = "search"
    description: str = "Search."

    def _run(self, query: str) -> str:
        raise NotImplementedError("use the async form")

    async def _arun(self, query: str) -> str:
        return f"nothing about {query}"


@pytest.mark.parametrize("given", [search, Search()], ids=["function", "class"])
@pytest.mark.parametrize("where", ["agent", "subagent"])
def test_a_tool_that_can_only_be_awaited_ends_a_blocking_run(
    call_mode: CallMode, given: BaseTool, where: str
) -> None:
    searching = ScriptedModel(call("search", query="x"), "Nothing.")
    agent: Any = create_deep_agent(searching, tools=[given])
    if where == "subagent":
        helper: Any = {"name": "helper", "description": "helps", "model": searching, "tools": [given]}
        asking = ScriptedModel(call("task", description="Search", subagent_type="helper"), "Nothing.")
        agent = create_deep_agent(asking, subagents=[helper])
    if call_mode.name == "async":
        assert call_mode.invoke(agent, {"messages": "Go"})["messages"][-1].text == "Nothing."
        return

    with pytest.raises(ConfigError, match=r"the tool 'search' can only be awaited: .* ainvoke\(\)"):
        agent.invoke({"messages": "Go"})


@tool
def unfinished() -> str:
    """Do what is not written yet."""
    raise NotImplementedError("not written yet")


def test_a_tool_that_is_not_written_yet_is_read_by_the_model() -> None:
    with ScriptedModel(call("unfinished"), "Later.") as model:
        result = create_deep_agent(model, tools=[unfinished]).invoke({"messages": "Go"})

    assert "NotImplementedError: not written yet" in result["messages"][-2].text


# Files that the run cannot reach


@dataclass
class User:
    user_id: str


def of_user(runtime: Any) -> tuple[str, ...]:
    return ("ours", runtime.context.user_id)


@pytest.mark.parametrize(
    ("store", "context", "error", "says"),
    [
        (InMemoryStore(), None, RunConfigError, "AttributeError.*context="),
        (InMemoryStore(), User("Ada Lovelace"), RunConfigError, "disallowed characters: 'Ada Lovelace'"),
        (None, User("ada"), StoreMissing, r"StoreBackend has no store.*create_deep_agent\(..., store="),
    ],
    ids=["context", "blank", "store"],
)
@pytest.mark.parametrize("routed", [False, True], ids=["alone", "routed"])
def test_a_store_that_a_run_cannot_reach_ends_it(
    call_mode: CallMode, store: Any, context: Any, error: type[Exception], says: str, routed: bool
) -> None:
    files: Any = StoreBackend(namespace=of_user)
    backend = CompositeBackend(StateBackend(), {"/kept/": files}) if routed else files
    agent = create_deep_agent(
        ScriptedModel(call("write_file", file_path="/kept/a", content="x")),
        backend=backend,
        store=store,
        context_schema=User,
    )
    with pytest.raises(error, match=says) as caught:
        call_mode.invoke(agent, {"messages": "Go"}, context=context)
    assert "'ours'" not in str(caught.value)


@pytest.mark.parametrize("given", [InMemoryStore, {}], ids=["class", "dict"])
def test_what_is_no_store_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"store must be a LangGraph store, .*InMemoryStore\(\)"):
        create_deep_agent(ScriptedModel(), store=given)
    with pytest.raises(ConfigError, match="store must be a LangGraph store"):
        StoreBackend(store=given)


def test_files_in_state_are_out_of_reach_outside_of_a_run(call_mode: CallMode) -> None:
    for backend in (StateBackend(), CompositeBackend(StateBackend(), {})):
        with pytest.raises(RuntimeError, match="inside a LangGraph graph execution"):
            call_mode.call(backend, "write", "/a", "x")

"""What a deep agent is made of, seen from outside: the tools, the prompt, the results."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from langchain.agents.middleware import AgentMiddleware, TodoListMiddleware
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from deepagents import create_deep_agent
from deepagents._agent import factories
from deepagents._agent.stack import Slot
from deepagents.backends import FilesystemBackend, LocalShellBackend
from deepagents.errors import ConfigError, StackError
from deepagents.middleware.tool_errors import ToolErrorMiddleware
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode
from tests.tools.names import FILE_TOOLS


def test_an_agent_writes_a_file_and_answers(call_mode: CallMode) -> None:
    with ScriptedModel(call("write_file", file_path="/hello.txt", content="hi"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model), {"messages": "Write hi to /hello.txt"})

    assert result["files"]["/hello.txt"]["content"] == "hi"
    assert result["messages"][-1].text == "Done."


def test_the_default_tools_in_their_order() -> None:
    with ScriptedModel("Hello.") as model:
        create_deep_agent(model).invoke({"messages": "Hi"})

    assert model.asked[0].tool_names == ["write_todos", "read_todos", *FILE_TOOLS, "task"]


def test_execute_is_offered_where_the_backend_can_run_commands(tmp_path: Path) -> None:
    with ScriptedModel(call("execute", command="echo $((6 * 7))"), "Done.") as model:
        agent = create_deep_agent(model, backend=LocalShellBackend(root_dir=tmp_path))
        result = agent.invoke({"messages": "What is 6 * 7?"})

    assert "execute" in model.asked[0].tool_names
    assert result["messages"][-2].text.startswith("42")


def test_files_land_on_disk(call_mode: CallMode, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("old\n")
    script = (
        call("read_file", file_path="/note.md"),
        call("edit_file", file_path="/note.md", old_string="old", new_string="new"),
        "Done.",
    )
    with ScriptedModel(*script) as model:
        agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=tmp_path))
        result = call_mode.invoke(agent, {"messages": "Change old to new"})

    assert (tmp_path / "note.md").read_text() == "new\n"
    assert "files" not in result


def test_a_callers_system_message_keeps_its_blocks() -> None:
    block = {"type": "text", "text": "Cached.", "cache_control": {"type": "ephemeral"}}
    with ScriptedModel("Hello.") as model:
        create_deep_agent(model, system_prompt=SystemMessage(content=[block])).invoke({"messages": "Hi"})

    assert model.asked[0].messages[0].content[0] == block


def test_a_callers_tool_stands_beside_the_built_in_ones() -> None:
    @tool
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"Sunny in {city}"

    with ScriptedModel(call("weather", city="Oslo"), "Sunny.") as model:
        result = create_deep_agent(model, tools=[weather]).invoke({"messages": "Weather in Oslo?"})

    assert result["messages"][-2].text == "Sunny in Oslo"
    assert "weather" in model.asked[0].tool_names


def test_structured_answers(call_mode: CallMode) -> None:
    class Verdict(BaseModel):
        good: bool

    with ScriptedModel(call("Verdict", good=True)) as model:
        result = call_mode.invoke(create_deep_agent(model, response_format=Verdict), {"messages": "Good?"})

    assert result["structured_response"] == Verdict(good=True)


def test_middleware_of_a_slots_name_takes_its_place() -> None:
    with ScriptedModel("Hello.") as model:
        create_deep_agent(model, middleware=[TodoListMiddleware()]).invoke({"messages": "Hi"})

    assert "write_todos" in model.asked[0].tool_names
    assert "read_todos" not in model.asked[0].tool_names


def test_two_middleware_of_one_name_are_refused() -> None:
    class Same(AgentMiddleware[Any, Any, Any]):
        pass

    with pytest.raises(StackError, match="Same"):
        create_deep_agent(ScriptedModel(), middleware=[Same(), Same()])


def test_no_model_warns_and_lists_the_choices() -> None:
    with (
        pytest.warns(DeprecationWarning, match="model=None") as warned,
        pytest.raises(ConfigError, match="DEEPAGENTS_MODEL.*ANTHROPIC_API_KEY.*local-server.*models pull"),
    ):
        create_deep_agent()

    assert [each.filename for each in warned] == [__file__]


def test_two_changes_to_one_file_in_a_turn_do_not_race() -> None:
    both = calls(
        ("write_file", {"file_path": "/a.txt", "content": "first"}),
        ("write_file", {"file_path": "/./a.txt", "content": "second"}),
    )
    with ScriptedModel(both, "Done.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go"})

    assert result["files"]["/a.txt"]["content"] == "first"
    refused = result["messages"][-2]
    assert refused.status == "error"
    assert refused.additional_kwargs["error_code"] == "parallel_mutation"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_directory_is_not_deleted_beside_a_change_in_it(order: tuple[int, int]) -> None:
    wanted = (
        ("delete", {"file_path": "/d"}),
        ("edit_file", {"file_path": "/d/a.txt", "old_string": "x", "new_string": "y"}),
    )
    with ScriptedModel(calls(*(wanted[at] for at in order)), "Done.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go", "files": {"/d/a.txt": "x"}})

    assert [message.status for message in result["messages"][-3:-1]] == ["success", "error"]
    assert result["messages"][-2].additional_kwargs["error_code"] == "parallel_mutation"


def test_a_given_file_without_a_leading_slash_is_found() -> None:
    with ScriptedModel(call("read_file", file_path="/notes.md"), "Done.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go", "files": {"notes.md": {"content": "hi"}}})

    assert result["messages"][-2].text.endswith("hi")


def test_a_given_file_that_is_none_is_named() -> None:
    given: Any = {"messages": "Go", "files": {"/m": 7}}
    with pytest.raises(TypeError, match=r"files\['/m'\].*7"):
        create_deep_agent(ScriptedModel()).invoke(given)


def test_the_graph_carries_its_name_and_version() -> None:
    agent = create_deep_agent(ScriptedModel(), name="scribe")
    config: Any = agent.config

    assert config["metadata"]["lc_agent_name"] == "scribe"
    assert config["metadata"]["ls_integration"] == "deepagents"
    assert config["recursion_limit"] == 9_999


def test_a_row_of_the_stack_has_the_name_of_its_middleware() -> None:
    build = cast(Any, SimpleNamespace(overrides={}))
    right, wrong = (
        Slot(name, factories.always(ToolErrorMiddleware), "for this test")
        for name in ("ToolErrorMiddleware", "ToolErrorsMiddleware")
    )

    assert [each.name for each in right.fill(build)] == ["ToolErrorMiddleware"]
    with pytest.raises(StackError, match=r"row 'ToolErrorsMiddleware' .* makes a 'ToolErrorMiddleware'"):
        wrong.fill(build)

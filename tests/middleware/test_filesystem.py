"""FilesystemMiddleware on its own: which tools, which words, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from pydantic import ValidationError

from deepagents import FilesystemMiddleware, SubAgentMiddleware
from deepagents.backends import (
    BackendProtocol,
    CompositeBackend,
    FilesystemBackend,
    LocalShellBackend,
    StateBackend,
)
from deepagents.backends.protocol import GrepResult, LsResult
from deepagents.errors import ConfigError
from deepagents.middleware import TodoListMiddleware
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.tools.names import FILE_TOOLS


def asked_by(files: FilesystemMiddleware, **options: Any) -> Any:
    with ScriptedModel("Hello.") as model:
        agent: Any = create_agent(model, middleware=[files], **options)
        agent.invoke({"messages": [("user", "Hi")]})
    return model.asked[0]


def schemas_of(files: FilesystemMiddleware) -> dict[str, Any]:
    return {each.name: each.tool_call_schema for each in files.tools}


def test_tools_that_are_alike_share_their_schemas() -> None:
    one, other = schemas_of(FilesystemMiddleware()), schemas_of(FilesystemMiddleware())
    named = schemas_of(FilesystemMiddleware(custom_tool_descriptions={"ls": "Look around."}))

    assert [name for name in one if one[name] is not other[name]] == []
    assert [name for name in one if one[name] is not named[name]] == ["ls"]
    assert named["ls"].model_json_schema()["description"] == "Look around."


def test_a_model_is_given_the_schemas_that_langchain_would_make() -> None:
    worker: Any = {"name": "worker", "description": "Works.", "runnable": RunnableLambda(dict)}
    brought = (FilesystemMiddleware(), TodoListMiddleware(), SubAgentMiddleware(subagents=[worker]))
    tools: list[Any] = [tool for middleware in brought for tool in middleware.tools]
    for each in tools:
        usual = StructuredTool(name=each.name, description=each.description, args_schema=each.args_schema)
        shown: Any = each.tool_call_schema
        wanted: Any = usual.tool_call_schema

        if each.name == "edit_file":
            # Its schema leaves out the default of a flag, which LangChain would put back.
            wanted.model_config["json_schema_extra"] = each.args_schema.model_config["json_schema_extra"]
        assert shown.model_json_schema() == wanted.model_json_schema()
        assert shown.model_json_schema(by_alias=False) == wanted.model_json_schema(by_alias=False)
        assert (shown.__name__, shown.__doc__) == (wanted.__name__, wanted.__doc__)
        with pytest.raises(ValidationError):
            shown.model_validate({name: object() for name in wanted.model_fields} or None)


def test_it_works_alone_with_create_agent(call_mode: CallMode) -> None:
    with ScriptedModel(call("write_file", file_path="/a.txt", content="A"), "Done.") as model:
        agent: Any = create_agent(model, middleware=[FilesystemMiddleware()])
        result = call_mode.invoke(agent, {"messages": [("user", "Go")]})

    assert result["files"]["/a.txt"]["content"] == "A"


def test_its_words_name_the_tools_that_read_and_change_files() -> None:
    words = asked_by(FilesystemMiddleware()).system

    assert all(name in words for name in ("ls", "glob", "grep", "read_file", "write_file", "edit_file"))


def test_its_words_can_be_replaced_or_left_out() -> None:
    assert "You have a filesystem" in asked_by(FilesystemMiddleware()).system
    assert asked_by(FilesystemMiddleware(system_prompt="Files are dear.")).system == "Files are dear."
    assert asked_by(FilesystemMiddleware(system_prompt="")).system == ""


def test_the_blocks_of_a_system_message_are_kept() -> None:
    marked = {"type": "text", "text": "Mine.", "cache_control": {"type": "ephemeral"}}
    asked = asked_by(FilesystemMiddleware(), system_prompt=SystemMessage(content=[marked]))

    assert asked.messages[0].content[0] == marked
    assert asked.messages[0].content[1]["text"].startswith("\n\nYou have")


def test_descriptions_can_be_replaced() -> None:
    asked = asked_by(FilesystemMiddleware(custom_tool_descriptions={"ls": "Look around."}))

    assert (
        next(tool for tool in asked.tools if tool["function"]["name"] == "ls")["function"]["description"]
        == "Look around."
    )


def test_some_tools_can_be_chosen() -> None:
    assert asked_by(FilesystemMiddleware(tools=["ls", "read_file"])).tool_names == ["ls", "read_file"]
    assert asked_by(FilesystemMiddleware(tools="all")).tool_names == FILE_TOOLS


def test_a_tool_that_the_backend_cannot_do_is_not_shown() -> None:
    class ReadOnly(BackendProtocol):
        def ls(self, path: str) -> LsResult:
            return LsResult(entries=[])

    names = asked_by(FilesystemMiddleware(backend=ReadOnly())).tool_names
    assert "delete" not in names
    assert "execute" not in names


def test_places_that_commands_do_not_find_are_named_in_one_sentence(tmp_path: Path) -> None:
    shell = LocalShellBackend(root_dir=tmp_path)
    inner = CompositeBackend(default=shell, routes={"/skills": StateBackend()})
    backend = CompositeBackend(
        default=inner, routes={"/memories/": FilesystemBackend(root_dir=tmp_path / "m")}
    )
    with ScriptedModel("Hi.") as model:
        agent: Any = create_agent(model, middleware=[FilesystemMiddleware(backend=backend)])
        agent.invoke({"messages": [("user", "Go")]})

    said = model.asked[0].system
    assert said.endswith(
        f"Commands start in {tmp_path}, where your files are. Commands do not find what is below /memories/, "
        "/skills/: use the file tools there."
    )


def test_nothing_is_said_of_commands_where_there_is_nothing_to_say(tmp_path: Path) -> None:
    shell, routes = LocalShellBackend(root_dir=tmp_path), {"/memories/": StateBackend()}
    routed = CompositeBackend(default=shell, routes=routes)
    silent = [
        FilesystemMiddleware(backend=shell, tools=["ls", "read_file"]),
        FilesystemMiddleware(backend=CompositeBackend(default=StateBackend(), routes=routes)),
        FilesystemMiddleware(backend=routed, tools=["ls", "read_file"]),
        FilesystemMiddleware(backend=routed, system_prompt=""),
    ]

    assert all("Commands" not in asked_by(files).system for files in silent)


def test_of_many_places_the_first_are_named(tmp_path: Path) -> None:
    routes = {f"/{number}/": StateBackend() for number in range(10, 30)}
    backend = CompositeBackend(default=LocalShellBackend(root_dir=tmp_path), routes=routes)

    assert "/16/, /17/ and 12 more places: use" in asked_by(FilesystemMiddleware(backend=backend)).system


def test_a_backend_that_lacks_an_operation_answers_with_an_error() -> None:
    class Bare(BackendProtocol):
        pass

    with ScriptedModel(call("write_file", file_path="/a", content="A"), "Done.") as model:
        agent: Any = create_agent(model, middleware=[FilesystemMiddleware(backend=Bare())])
        result = agent.invoke({"messages": [("user", "Go")]})

    assert result["messages"][-2].additional_kwargs["error_code"] == "not_supported"


def test_a_search_option_that_an_older_backend_does_not_know_is_an_error_that_says_so() -> None:
    class Older(BackendProtocol):
        def grep(self, pattern: str, path: str | None = None, glob: str | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            return GrepResult(matches=[{"path": "/a", "line": 1, "text": pattern}])

    script = (call("grep", pattern="x"), call("grep", pattern="x", regex=True))
    with ScriptedModel(*script, "Done.") as model:
        agent: Any = create_agent(model, middleware=[FilesystemMiddleware(backend=Older())])
        result = agent.invoke({"messages": [("user", "Go")]})

    plain, expression = (message for message in result["messages"] if message.type == "tool")
    assert plain.text == "/a"
    assert expression.additional_kwargs["error_code"] == "not_supported"


def test_files_are_in_state_only_when_the_backend_keeps_them_there(tmp_path: Any) -> None:
    assert "files" in FilesystemMiddleware().state_schema.__annotations__
    on_disk = FilesystemMiddleware(backend=FilesystemBackend(root_dir=tmp_path))
    assert "files" not in on_disk.state_schema.__annotations__


def test_a_factory_works_and_warns_once_at_the_callers_line() -> None:
    with pytest.warns(DeprecationWarning, match="factory") as warned:
        files = FilesystemMiddleware(backend=lambda runtime: StateBackend())
    with ScriptedModel(call("write_file", file_path="/a.txt", content="A"), "Done.") as model:
        agent: Any = create_agent(model, middleware=[files])
        result = agent.invoke({"messages": [("user", "Go")]})

    assert [each.filename for each in warned] == [__file__]
    assert result["files"]["/a.txt"]["content"] == "A"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"max_execute_timeout": 0}, "max_execute_timeout must be positive, got 0"),
        ({"grep_max_count": -1}, "grep_max_count must be positive, got -1"),
        ({"backend_timeout": 0}, "backend_timeout must be positive, got 0"),
        ({"backend_timeout": -1}, "backend_timeout must be positive, got -1"),
        ({"backend_timeout": float("inf")}, "backend_timeout must be positive, got inf"),
        ({"tools": ["ls"]}, "read_file must be included in tools"),
        ({"tools": ["read_file", "fly"]}, "fly"),
        ({"backend": "/srv/files"}, "must be a BackendProtocol, got '/srv/files'; .*root_dir"),
    ],
)
def test_bad_settings_are_refused_while_building(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        FilesystemMiddleware(**wrong)

"""What a model reads of a call that failed shows what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.tools import ToolRuntime
from langchain.tools import tool as langchain_tool
from langchain_core.messages import AIMessage, InvalidToolCall, ToolMessage

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.tools.bench import Bench


def test_a_file_elsewhere_of_the_same_name_is_named(bench: Bench) -> None:
    bench.place("/src/a.py", "x")
    bench.place("/b/a.py", "x")

    for tool, more in (("read_file", {}), ("edit_file", {"old_string": "x", "new_string": "y"})):
        text = bench.use(tool, file_path="/workspace/src/a.py", **more).text
        assert "'/workspace/src/a.py' not found. There is '/src/a.py', '/b/a.py'. [" in text


def test_a_name_that_is_near_is_named(bench: Bench) -> None:
    bench.place("/src/settings.py", "x")

    assert "Near it in name: '/src/settings.py'." in bench.use("read_file", file_path="/src/setings.py").text


def test_a_long_directory_makes_no_names_alike(bench: Bench) -> None:
    bench.place("/packages/component/source/settings.py", "x")

    told = bench.use("read_file", file_path="/packages/component/source/zoo.txt").text
    assert "In '/packages/component/source': '/packages/component/source/settings.py'." in told


@pytest.mark.parametrize("bench", [("disk", "sync"), ("disk", "async")], indirect=True)
def test_what_is_there_is_named_where_a_directory_is_not(bench: Bench) -> None:
    bench.place("/src/a.py", "x")
    missing = "Path '/workspace' does not exist. In '/': '/src/'."

    assert "'/workspace': path_not_found. In '/': '/src/'. [" in bench.use("ls", path="/workspace").text
    assert missing in bench.use("grep", pattern="x", path="/workspace").text
    assert missing in bench.use("glob", pattern="*.py", path="/workspace").text


def test_a_file_that_is_to_be_made_names_the_tool_that_makes_it(bench: Bench) -> None:
    text = bench.use("read_file", file_path="/hello.py").text
    assert "'/hello.py' not found. It does not exist yet; write_file creates it." in text


def _read(path: str, root: Path, *rules: FilesystemPermission) -> str:
    model = ScriptedModel(call("read_file", file_path=path), "Done.")
    backend = FilesystemBackend(root_dir=root, virtual_mode=True)
    agent = create_deep_agent(model, backend=backend, permissions=list(rules))
    return agent.invoke({"messages": "Read."})["messages"][-2].text


def test_no_sentence_names_what_rules_deny(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("x")
    hidden = FilesystemPermission(operations=["read"], paths=["/secret", "/secret/**"], mode="deny")
    no_writing = FilesystemPermission(operations=["write"], paths=["/**"], mode="deny")

    assert "There is '/secret/key.txt'." in _read("/key.txt", tmp_path)
    assert "secret" not in _read("/key.txt", tmp_path, hidden)
    assert "write_file" not in _read("/new.txt", tmp_path, no_writing)


def test_a_write_says_whether_it_made_the_file_and_folders(tmp_path: Path, call_mode: CallMode) -> None:
    model = ScriptedModel(
        call("write_file", file_path="/workspace/src/a.py", content="1"),
        call("write_file", file_path="/workspace/src/a.py", content="2"),
        call("write_file", file_path="/workspace/b.py", content="3"),
        "Done.",
    )
    agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=tmp_path, virtual_mode=True))
    told = call_mode.invoke(agent, {"messages": "Write."})["messages"]

    assert [message.text for message in told if isinstance(message, ToolMessage)] == [
        "Created file /workspace/src/a.py, in the new folder /workspace",
        "Updated file /workspace/src/a.py",
        "Created file /workspace/b.py",
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "read_file",
            {"filename": "/a"},
            "file_path: Field required. read_file takes no 'filename'; it takes ",
        ),
        ("ls", {"path": "/", "depth": 2}, "No files found\n[ls takes no 'depth'; it takes path]"),
        ("edit_flie", {"file_path": "/a"}, "Nearest in name: edit_file"),
    ],
)
def test_misnamed_tools_and_arguments_are_told_apart(
    bench: Bench, tool: str, arguments: dict[str, Any], told: str
) -> None:
    assert told in bench.use(tool, **arguments).text


def test_a_repeated_look_and_a_repeated_failure_are_told(bench: Bench) -> None:
    bench.place("/a.txt", "x")
    look, other = call("read_file", file_path="/a.txt"), call("ls", path="/")

    first, second, third = bench.run(look, look, look)
    assert "Same call" not in first.text
    assert second.text == third.text == f"{first.text}\n[Same call and same result as just before.]"
    failed = call("read_file", file_path="/b.txt")
    assert [each.text.endswith("just before.]") for each in bench.run(failed, failed)] == [False, True]
    assert [each.text.endswith("just before.]") for each in bench.run(look, other, look)] == [False] * 3


def test_a_repeated_failure_keeps_its_picture(call_mode: CallMode) -> None:
    blocks: list[str | dict[str, Any]] = [
        {"type": "text", "text": "Failed."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]

    @langchain_tool
    def look(runtime: ToolRuntime[Any, Any]) -> ToolMessage:
        """Take a picture."""
        return ToolMessage(blocks, status="error", tool_call_id=runtime.tool_call_id, name="look")

    with ScriptedModel(call("look"), call("look"), "Done.") as model:
        told = call_mode.invoke(create_deep_agent(model, tools=[look]), {"messages": "Look."})["messages"]

    assert [each.content for each in told if each.type == "tool"] == [blocks, blocks]


def test_arguments_that_are_not_json_show_where() -> None:
    broken = InvalidToolCall(
        type="invalid_tool_call", name="ls", args='{"path": "/a" "/b"}', id="1", error="not JSON"
    )
    model = ScriptedModel(AIMessage("", invalid_tool_calls=[broken]), "Done.")
    told = create_deep_agent(model).invoke({"messages": "List."})["messages"][-2].text

    assert "Expecting ',' delimiter at character 14, after '{\"path\": \"/a\" ' and before '\"/b\"}'." in told

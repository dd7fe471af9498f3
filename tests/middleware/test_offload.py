"""A result too large for the context moves to a file, whole, and says where and how to read on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents.middleware.types import ToolCallRequest
from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Overwrite

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents._async import run
from deepagents.backends import FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.backends.filedata import file_data_to_bytes
from deepagents.backends.protocol import WriteResult
from deepagents.middleware.filesystem.offload import map_messages
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode

LONG = "\n".join(f"row {number}" for number in range(30_000))


@tool
def report() -> str:
    """Return a long report."""
    return LONG


def path_in(message: ToolMessage) -> str:
    found = re.search(r"saved to the file (\S+)", message.text)
    assert found
    return found[1]


def test_the_whole_result_is_kept_and_the_preview_begins_it(call_mode: CallMode) -> None:
    with ScriptedModel(call("report"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=[report]), {"messages": "Go"})

    notice = result["messages"][-2]
    assert result["files"][path_in(notice)]["content"] == LONG
    assert notice.additional_kwargs["lc_evicted_to"] == path_in(notice)
    assert notice.artifact == {"output_file": path_in(notice)}
    assert notice.text.startswith("Tool result too large")
    assert all(f"row {number}\n" in notice.text for number in range(10))
    assert "row 29999" in notice.text
    assert "offset=0 and limit=100" in notice.text
    assert len(notice.text) < 2000


def test_the_model_can_read_on(tmp_path: Path) -> None:
    def read_it(asked: Any) -> Any:
        return call("read_file", file_path=path_in(asked.messages[-1]), offset=500, limit=2)

    with ScriptedModel(call("report"), read_it, "Done.") as model:
        agent = create_deep_agent(model, tools=[report], backend=FilesystemBackend(root_dir=tmp_path))
        result = agent.invoke({"messages": "Go"})

    assert "   501\trow 500\n   502\trow 501" in result["messages"][-2].text


def test_a_small_result_stays() -> None:
    @tool
    def small() -> str:
        """Return a little."""
        return "x" * 80_000

    with ScriptedModel(call("small"), "Done.") as model:
        result = create_deep_agent(model, tools=[small]).invoke({"messages": "Go"})

    assert result["messages"][-2].text == "x" * 80_000


def test_the_limit_is_the_callers() -> None:
    @tool
    def small() -> str:
        """Return a little."""
        return "x" * 500

    files = FilesystemMiddleware(tool_token_limit_before_evict=100)
    with ScriptedModel(call("small"), "Done.") as model:
        agent = create_deep_agent(model, tools=[small], middleware=[files])
        result = agent.invoke({"messages": "Go"})

    assert "too large" in result["messages"][-2].text


@pytest.mark.parametrize("off", [None, 0])
def test_it_can_be_turned_off(off: int | None) -> None:
    files = FilesystemMiddleware(tool_token_limit_before_evict=off)
    with ScriptedModel(call("report"), "Done.") as model:
        result = create_deep_agent(model, tools=[report], middleware=[files]).invoke({"messages": "Go"})

    assert result["messages"][-2].text == LONG


def test_results_of_calls_with_one_id_do_not_overwrite_each_other() -> None:
    counter = iter("AB")

    @tool
    def letter() -> str:
        """Return one letter, often."""
        return next(counter) * 90_000

    def same_id() -> Any:
        said = call("letter")
        said.tool_calls[0]["id"] = "call.0"
        return said

    with ScriptedModel(same_id(), same_id(), "Done.") as model:
        result = create_deep_agent(model, tools=[letter]).invoke({"messages": "Go"})

    assert sorted(data["content"][0] for data in result["files"].values()) == ["A", "B"]


def test_images_beside_a_long_text_stay() -> None:
    image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}

    @tool
    def mixed() -> Any:
        """Return text and an image."""
        return [{"type": "text", "text": LONG}, image]

    with ScriptedModel(call("mixed"), "Done.") as model:
        result = create_deep_agent(model, tools=[mixed]).invoke({"messages": "Go"})

    blocks = result["messages"][-2].content
    assert "too large" in blocks[0]["text"]
    assert blocks[1] == image


def test_a_command_keeps_everything_but_the_long_text() -> None:
    @tool
    def commanding(tool_call_id: str = "") -> Any:
        """Return a command."""
        return Command(update={"messages": [ToolMessage(LONG, tool_call_id=wanted)], "todos": []})

    said = calls(("commanding", {}))
    wanted = said.tool_calls[0]["id"]
    with ScriptedModel(said, "Done.") as model:
        result = create_deep_agent(model, tools=[commanding]).invoke({"messages": "Go"})

    assert "too large" in result["messages"][-2].text
    assert result["todos"] == []


def test_refused_arguments_are_not_repeated_at_length() -> None:
    with ScriptedModel(call("write_file", content="x" * 300_000), "Done.") as model:
        result = create_deep_agent(model).invoke({"messages": "Go"})

    refused = result["messages"][-2]
    assert refused.status == "error"
    assert "file_path: Field required" in refused.text
    assert "xxx" not in refused.text
    assert len(refused.text) < 200


AWKWARD = {
    "crlf": "a\r\nb\r\n" * 20,
    "mixed ends": "a\r\nb\nc\rd" * 20,
    "form feeds and separators": "a\fb\vc\u2028d\x85e" * 20,
    "zeros": "a\0b" * 40,
    "half characters": "a\ud800b" * 40,
    "one line": "x" * 100_000,
    "blanks at the end": "a" * 100 + "  \n\n",
}


@pytest.mark.parametrize("where", ["virtual", "host", "shell", "host shell"])
@pytest.mark.parametrize("kind", AWKWARD)
def test_what_was_moved_is_there_byte_for_byte_and_below_the_root(
    tmp_path: Path, where: str, kind: str
) -> None:
    @tool
    def awkward() -> str:
        """Return something awkward."""
        return AWKWARD[kind]

    root = tmp_path / "root"
    root.mkdir()
    make = LocalShellBackend if "shell" in where else FilesystemBackend
    backend = make(root_dir=root, virtual_mode="host" not in where)
    files = FilesystemMiddleware(backend=backend, tool_token_limit_before_evict=10)
    said = call("awkward")
    said.tool_calls[0]["id"] = "../../../../escape.0"
    with ScriptedModel(said, "Done.") as model:
        agent = create_deep_agent(model, tools=[awkward], backend=backend, middleware=[files])
        result = agent.invoke({"messages": "Go"})

    # The model reads the path that commands have too, programs that of the backend.
    path = result["messages"][-2].artifact["output_file"]
    assert path_in(result["messages"][-2]).endswith(path)
    assert (answer := backend.download_files([path])[0]).error is None
    assert answer.content == AWKWARD[kind].encode("utf-8", "surrogatepass")
    odd = kind in ("zeros", "half characters")
    assert ("cannot show it in parts" in result["messages"][-2].text) is odd
    saved = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file.parent for file in saved] == [root / "large_tool_results"]
    assert not Path("/large_tool_results").exists()


@pytest.mark.parametrize("kind", AWKWARD)
def test_what_was_moved_into_state_is_there_as_it_was(kind: str) -> None:
    @tool
    def awkward() -> str:
        """Return something awkward."""
        return AWKWARD[kind]

    files = FilesystemMiddleware(tool_token_limit_before_evict=10)
    with ScriptedModel(call("awkward"), "Done.") as model:
        result = create_deep_agent(model, tools=[awkward], middleware=[files]).invoke({"messages": "Go"})

    saved = result["files"][path_in(result["messages"][-2])]
    assert file_data_to_bytes(saved) == AWKWARD[kind].encode("utf-8", "surrogatepass")


def test_long_messages_also_stay_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    backend = FilesystemBackend(root_dir=tmp_path / "root", virtual_mode=False)
    with ScriptedModel("Done.") as model:
        create_deep_agent(model, backend=backend).invoke({"messages": "x" * 300_000})

    assert [file.parent for file in tmp_path.rglob("*.md")] == [tmp_path / "root" / "conversation_history"]
    assert not Path("/conversation_history").exists()


@pytest.mark.parametrize("form", ["list of commands", "list of messages", "dict in a command"])
def test_messages_are_found_in_whatever_form_a_tool_returns_them(call_mode: CallMode, form: str) -> None:
    @tool
    def survey(tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Return a long report in its own form."""
        message = ToolMessage(LONG, tool_call_id=tool_call_id)
        short = {"role": "tool", "content": LONG, "tool_call_id": tool_call_id}
        return {
            "list of commands": [Command(update={"messages": [message]})],
            "list of messages": [message],
            "dict in a command": Command(update={"messages": [short]}),
        }[form]

    with ScriptedModel(call("survey"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=[survey]), {"messages": "Go"})

    assert result["files"][path_in(result["messages"][2])]["content"] == LONG
    assert "row 29999" in model.asked[1].last
    assert len(model.asked[1].last) < 2000


class ReadOnly(StateBackend):
    """A backend that can be read and not written."""

    def write(self, file_path: str, content: str, **options: Any) -> WriteResult:
        """Refuse."""
        return WriteResult(error="this place is read-only", code="permission_denied")

    def upload_files(self, files: Any, **options: Any) -> Any:
        """Refuse."""
        raise PermissionError("this place is read-only")


def test_the_artifact_of_a_tool_stays_as_it_is() -> None:
    @tool(response_format="content_and_artifact")
    def rows() -> Any:
        """Return a long report and what it holds."""
        return LONG, {"rows": 30_000}

    @tool(response_format="content_and_artifact")
    def other() -> Any:
        """Return a long report and an object."""
        return LONG, (1, 2)

    with ScriptedModel(call("rows"), call("other"), "Done.") as model:
        result = create_deep_agent(model, tools=[rows, other]).invoke({"messages": "Go"})

    first, second = [message for message in result["messages"] if message.type == "tool"]
    assert first.artifact == {"rows": 30_000}
    assert first.additional_kwargs["lc_evicted_to"] in result["files"]
    assert second.artifact == (1, 2)
    assert second.additional_kwargs["lc_evicted_to"] in result["files"]


@pytest.mark.parametrize("limit", [20_000, 100])
def test_where_it_cannot_be_saved_the_start_is_shown(call_mode: CallMode, limit: int) -> None:
    files = FilesystemMiddleware(backend=ReadOnly(), tool_token_limit_before_evict=limit)
    with ScriptedModel(call("report"), "Done.") as model:
        agent = create_deep_agent(model, tools=[report], backend=ReadOnly(), middleware=[files])
        message = call_mode.invoke(agent, {"messages": "Go"})["messages"][-2]

    assert message.text.startswith("Tool result too large, and it could not be saved to a file: this place")
    assert "the rest is lost" in message.text
    assert "row 0\nrow 1\n" in message.text
    assert len(message.text) <= limit * 4 + 500
    assert "lc_evicted_to" not in message.additional_kwargs


def test_a_result_that_the_shell_had_cut_is_not_called_whole(tmp_path: Path) -> None:
    backend = LocalShellBackend(root_dir=tmp_path, virtual_mode=True, max_output_bytes=90_000)
    with ScriptedModel(call("execute", command="seq 1 100000"), "Done.") as model:
        result = create_deep_agent(model, backend=backend).invoke({"messages": "Go"})

    shown = result["messages"][-2]
    assert shown.artifact["truncated"] is True
    assert "too large" in shown.text
    assert "all of it" not in shown.text
    saved = tmp_path / shown.artifact["output_file"].lstrip("/")
    assert saved.read_text().startswith("1\n2\n")


def request_without_messages(name: str, **arguments: Any) -> ToolCallRequest:
    state: dict[str, Any] = {}
    runtime = ToolRuntime(
        state=state, context=None, config={}, stream_writer=lambda _: None, tool_call_id="1", store=None
    )
    return ToolCallRequest(
        tool_call={"name": name, "args": arguments, "id": "1"}, tool=None, state=state, runtime=runtime
    )


def test_a_state_without_messages_is_no_error(call_mode: CallMode) -> None:
    files = FilesystemMiddleware()
    request = request_without_messages("write_file", file_path="/a.txt", content="A")
    answer = ToolMessage("Updated", tool_call_id="1")

    if call_mode.name == "sync":
        assert files.wrap_tool_call(request, lambda _: answer) is answer
        return

    async def handler(_: Any) -> ToolMessage:
        return answer

    assert call_mode.call(files, "wrap_tool_call", request, handler) is answer


MESSAGE = ToolMessage("quiet", tool_call_id="1")
LOUD = ToolMessage("QUIET", tool_call_id="1")
RESET = RemoveMessage(REMOVE_ALL_MESSAGES)
PERSON = HumanMessage("quiet")


async def loud(message: Any) -> Any:
    is_short = isinstance(message, ToolMessage) and message.content == "?"
    return LOUD if message is MESSAGE or is_short else message


def changed(result: Any) -> Any:
    return run(map_messages(result, loud))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"messages": [MESSAGE]}, {"messages": [LOUD]}),
        ({"messages": MESSAGE, "todos": []}, {"messages": LOUD, "todos": []}),
        ({"messages": [RESET, PERSON, MESSAGE, "hi"]}, {"messages": [RESET, PERSON, LOUD, "hi"]}),
        ({"messages": Overwrite([MESSAGE])}, {"messages": Overwrite([LOUD])}),
        ([("todos", []), ("messages", [MESSAGE])], [("todos", []), ("messages", [LOUD])]),
        ((("messages", Overwrite([MESSAGE])),), [("messages", Overwrite([LOUD]))]),
        ({"messages": []}, {"messages": []}),
        ({"todos": []}, {"todos": []}),
        (None, None),
        ({"messages": [{"role": "tool", "content": "?", "tool_call_id": "1"}]}, {"messages": [LOUD]}),
        ({"messages": {"role": "tool", "content": "?", "tool_call_id": "1"}}, {"messages": LOUD}),
        ({"messages": [{"role": "user", "content": ""}]}, {"messages": [{"role": "user", "content": ""}]}),
        ({"messages": [{"odd": 1}]}, {"messages": [{"odd": 1}]}),
    ],
)  # fmt: skip
def test_each_form_of_an_update_keeps_its_form(given: Any, expected: Any) -> None:
    assert changed(Command(update=given)).update == expected


def test_all_else_of_a_command_is_kept() -> None:
    command = Command(graph=Command.PARENT, update={"messages": [MESSAGE]}, resume={"a": 1}, goto="there")
    done = changed(command)

    assert (done.graph, done.resume, done.goto) == (Command.PARENT, {"a": 1}, "there")
    assert done.update == {"messages": [LOUD]}
    assert command.update == {"messages": [MESSAGE]}


def test_what_is_no_command_is_changed_or_left_alone() -> None:
    assert changed(MESSAGE) is LOUD
    assert changed("text") == "text"


def test_a_tool_may_return_several_commands_and_messages() -> None:
    done = changed([Command(update={"messages": [MESSAGE]}), MESSAGE, "text"])

    assert done == [Command(update={"messages": [LOUD]}), LOUD, "text"]

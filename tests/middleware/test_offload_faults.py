"""Moved results: where they are, and what is shown when they cannot be saved or were cut before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware.types import ToolCallRequest
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import LocalShellBackend, StateBackend
from deepagents.backends.protocol import WriteResult
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

LONG = "\n".join(f"row {number}" for number in range(30_000))


@tool
def report() -> str:
    """Return a long report."""
    return LONG


class ReadOnly(StateBackend):
    """A backend that can be read and not written."""

    def write(self, file_path: str, content: str, **options: Any) -> WriteResult:
        """Refuse."""
        return WriteResult(error="this place is read-only", code="permission_denied")

    def upload_files(self, files: Any, **options: Any) -> Any:
        """Refuse."""
        raise PermissionError("this place is read-only")


def last_result(call_mode: CallMode, model: ScriptedModel, **options: Any) -> ToolMessage:
    result = call_mode.invoke(create_deep_agent(model, **options), {"messages": "Go"})
    return next(message for message in reversed(result["messages"]) if message.type == "tool")


def test_the_path_of_a_moved_result_is_found_from_its_message(call_mode: CallMode) -> None:
    with ScriptedModel(call("report"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=[report]), {"messages": "Go"})

    message = result["messages"][-2]
    path = message.additional_kwargs["lc_evicted_to"]
    assert message.artifact == {"output_file": path}
    assert result["files"][path]["content"] == LONG


def test_the_artifact_of_a_tool_is_kept_and_told_the_path(call_mode: CallMode) -> None:
    @tool(response_format="content_and_artifact")
    def rows() -> Any:
        """Return a long report and what it holds."""
        return LONG, {"rows": 30_000}

    @tool(response_format="content_and_artifact")
    def other() -> Any:
        """Return a long report and an object."""
        return LONG, (1, 2)

    with ScriptedModel(call("rows"), call("other"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, tools=[rows, other]), {"messages": "Go"})

    first, second = [message for message in result["messages"] if message.type == "tool"]
    assert first.artifact == {"rows": 30_000, "output_file": first.additional_kwargs["lc_evicted_to"]}
    assert second.artifact == (1, 2)
    assert second.additional_kwargs["lc_evicted_to"] in result["files"]


def test_where_it_cannot_be_saved_the_start_is_shown_and_the_rest_is_named_as_lost(
    call_mode: CallMode,
) -> None:
    with ScriptedModel(call("report"), "Done.") as model:
        shown = last_result(call_mode, model, tools=[report], backend=ReadOnly())

    assert shown.text.startswith("Tool result too large")
    assert "could not be saved" in shown.text
    assert "read-only" in shown.text
    assert "row 0\nrow 1\n" in shown.text
    assert "row 29999" not in shown.text
    assert len(shown.text) <= 80_500
    assert "lc_evicted_to" not in shown.additional_kwargs


@pytest.mark.parametrize("limit", [20_000, 100])
def test_a_result_of_any_size_keeps_to_the_limit_where_nothing_can_be_saved(
    call_mode: CallMode, limit: int
) -> None:
    files = FilesystemMiddleware(backend=ReadOnly(), tool_token_limit_before_evict=limit)
    with ScriptedModel(call("report"), "Done.") as model:
        shown = last_result(call_mode, model, tools=[report], backend=ReadOnly(), middleware=[files])

    assert len(shown.text) <= limit * 4 + 500


def test_a_result_that_the_shell_had_cut_is_not_called_whole(tmp_path: Path, call_mode: CallMode) -> None:
    backend = LocalShellBackend(root_dir=tmp_path, virtual_mode=True, max_output_bytes=90_000)
    with ScriptedModel(call("execute", command="seq 1 100000"), "Done.") as model:
        shown = last_result(call_mode, model, backend=backend)

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

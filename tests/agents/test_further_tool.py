"""A file tool states its facts once: rules, approval, results, limits, memory and people follow them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from deepagents import FilesystemMiddleware, FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.errors import StackError
from deepagents.events import ApprovalRequest
from deepagents.limits import Limits
from deepagents.testing import ScriptedModel, WindowedModel, call, calls
from deepagents.tools import FILE_TOOLS, FsToolName, ToolSpec, specs_by_name
from deepagents.tools._tool import ToolContext, ToolOutput
from deepagents_cli.approval.policy import Policy
from deepagents_cli.session.display.lines import call_line, result_line
from tests.cli.answers import answer
from tests.conftest import CallMode


class AppendFile(BaseModel):
    target: str
    text: str


async def _append(context: ToolContext, target: str, text: str) -> ToolOutput:
    await context.files.append(target, text)
    return ToolOutput(f"Appended to {target}")


APPEND = ToolSpec(
    "append_file",
    "Add text to the end of a file.",
    AppendFile,
    _append,
    effect="write",
    path_argument="target",
    clipped_arguments=("text",),
    summary_arguments=("target",),
)
SPECS = {**specs_by_name(), APPEND.name: APPEND}


class Files(FilesystemMiddleware):
    @property
    def name(self) -> str:
        return "FilesystemMiddleware"

    def _tool_specs(self) -> Sequence[ToolSpec]:
        return (*super()._tool_specs(), APPEND)


def append(target: str, text: str = "more\n") -> Any:
    return call("append_file", target=target, text=text)


@pytest.fixture
def backend(tmp_path: Path) -> FilesystemBackend:
    return FilesystemBackend(root_dir=tmp_path)


def agent_on(backend: FilesystemBackend, model: ScriptedModel, limit: int = 20_000, **options: Any) -> Any:
    files = Files(backend=backend, tool_token_limit_before_evict=limit)
    return create_deep_agent(
        model, backend=backend, middleware=[files, *options.pop("middleware", ())], **options
    )


def results(result: Any) -> list[Any]:
    return [message for message in result["messages"] if message.type == "tool"]


def test_it_works_and_may_be_chosen(call_mode: CallMode, backend: FilesystemBackend, tmp_path: Path) -> None:
    with ScriptedModel(append("/a.txt"), append("/a.txt"), "Done.") as model:
        call_mode.invoke(agent_on(backend, model), {"messages": "Go"})
    chosen: Any = ["read_file", "append_file"]

    assert (tmp_path / "a.txt").read_text() == "more\nmore\n"
    assert [each.name for each in Files(tools=chosen).tools] == chosen


def test_rules_deny_it(backend: FilesystemBackend, tmp_path: Path) -> None:
    rules = [FilesystemPermission(["write"], ["/secret/**"], "deny")]
    with ScriptedModel(append("/secret/a.txt"), append("/a.txt"), "Done.") as model:
        result = agent_on(backend, model, permissions=rules).invoke({"messages": "Go"})

    assert [each.additional_kwargs.get("error_code") for each in results(result)] == [
        "permission_denied",
        None,
    ]
    assert not (tmp_path / "secret").exists()


def test_no_other_tool_may_take_its_name_under_rules(backend: FilesystemBackend) -> None:
    @tool
    def append_file(target: str) -> str:
        """Append without rules."""
        return target

    rules = [FilesystemPermission(["write"], ["/secret/**"], "deny")]
    with pytest.raises(StackError, match="append_file"):
        agent_on(backend, ScriptedModel(), permissions=rules, tools=[append_file])


def test_a_person_is_asked_where_rules_say_so(backend: FilesystemBackend, tmp_path: Path) -> None:
    rules = [FilesystemPermission(["write"], ["/notes/**"], "interrupt")]
    thread: Any = {"configurable": {"thread_id": "1"}}
    with ScriptedModel(append("/notes/a.txt"), "Done.") as model:
        agent = agent_on(backend, model, permissions=rules, checkpointer=InMemorySaver())
        asked = agent.invoke({"messages": "Go"}, thread)
        before = (tmp_path / "notes").exists()
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)

    assert asked["__interrupt__"][0].value["action_requests"][0]["name"] == "append_file"
    assert not before
    assert (tmp_path / "notes/a.txt").read_text() == "more\n"


def test_two_changes_of_one_file_in_a_turn_are_refused(backend: FilesystemBackend) -> None:
    both = calls(
        ("write_file", {"file_path": "/a.txt", "content": "A"}),
        ("append_file", {"target": "/a.txt", "text": "B"}),
    )
    with ScriptedModel(both, "Done.") as model:
        result = agent_on(backend, model).invoke({"messages": "Go"})

    assert results(result)[1].additional_kwargs["error_code"] == "parallel_mutation"


def test_its_result_may_move_to_a_file(backend: FilesystemBackend) -> None:
    with ScriptedModel(append("/a.txt"), "Done.") as model:
        result = agent_on(backend, model, limit=2).invoke({"messages": "Go"})

    assert "too large" in results(result)[0].text


def test_its_path_stands_in_the_answer_at_a_limit(backend: FilesystemBackend) -> None:
    with ScriptedModel(append("/a.txt")) as model:
        agent = agent_on(backend, model, limits=Limits(model_calls=1))
        result = agent.invoke({"messages": "Go"})

    assert "Files changed: /a.txt" in result["messages"][-1].text


def test_its_long_texts_are_clipped_when_they_are_old(backend: FilesystemBackend) -> None:
    appended = [append("/a.txt", "A long line. " * 400) for _ in range(6)]
    with WindowedModel(*appended, "Done.", window=10_000) as model:
        agent_on(backend, model).invoke({"messages": "Go"})

    assert "argument truncated; see the file /a.txt" in str(model.turns[-1].messages)


def test_memory_that_it_changed_is_read_again(backend: FilesystemBackend, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    with ScriptedModel(append("/AGENTS.md", "Be kind.\n"), "Done.") as model:
        agent_on(backend, model, memory=["/AGENTS.md"]).invoke({"messages": "Go"})

    assert "Be kind." not in model.asked[0].system
    assert "Be kind." in model.asked[1].system


def test_a_skill_that_it_changed_is_read_again(backend: FilesystemBackend, tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    text = "---\nname: look\ndescription: How to look.\n---\nLook.\n"
    with ScriptedModel(append("/skills/look/SKILL.md", text), "Done.") as model:
        agent_on(backend, model, skills=["/skills"]).invoke({"messages": "Go"})

    assert "How to look." not in model.asked[0].system
    assert "How to look." in model.asked[1].system


async def test_a_person_reads_the_true_change_that_it_makes(
    backend: FilesystemBackend, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("some\n")
    args = {"target": "/a.txt", "text": "more\n"}
    policy = Policy(FilesystemBackend(root_dir=tmp_path, virtual_mode=True), tmp_path, specs=SPECS)
    shown, decided = await answer(ApprovalRequest("1", "append_file", args), policy, ["y"])
    assert decided == {"type": "approve"}
    assert "The agent wants to append /a.txt" in shown
    assert "   some\n  +more\n" in shown
    assert call_line("append_file", args, SPECS) == "append_file /a.txt"
    assert result_line("append_file", "success", "Appended to /a.txt", SPECS) == ""
    assert APPEND.asks_by_default


def test_the_names_that_may_be_chosen_are_those_of_the_list() -> None:
    assert list(get_args(FsToolName)) == [spec.name for spec in FILE_TOOLS]

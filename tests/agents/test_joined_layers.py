"""The library's own middleware share one layer, and behave as if each had its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import AIMessage
from langsmith import Client, RunTree
from langsmith.run_helpers import tracing_context

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode


class Between(AgentMiddleware):
    """A caller's middleware, which lands between those of the library."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[str] = []

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        self.prompts.append(str(request.system_prompt))
        return handler(request)

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        self.prompts.append(str(request.system_prompt))
        return await handler(request)


class AsksTwice(Between):
    """Asks for each answer twice and takes the second."""

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        handler(request)
        return handler(request)

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        await handler(request)
        return await handler(request)


class AnswersItself(Between):
    """Answers in the model's place."""

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        return AIMessage("Mine.")

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        return AIMessage("Mine.")


class Watching(FilesystemMiddleware):
    """A replacement that keeps on itself what it saw."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.answers: list[Any] = []

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self.answers.append(super().wrap_model_call(request, handler))
        return self.answers[-1]

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self.answers.append(await super().awrap_model_call(request, handler))
        return self.answers[-1]

    @property
    def name(self) -> str:
        return "FilesystemMiddleware"


def spans_of(agent: Any) -> list[str]:
    """Return the names of the spans around calls of the model."""
    client = Client(
        api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False, tracing_sampling_rate=0
    )
    tree = RunTree(name="test", ls_client=client)
    with tracing_context(parent=tree, enabled="local", client=client):
        agent.invoke({"messages": "Go"})
    waiting, names = [tree], list[str]()
    while waiting:
        each = waiting.pop()
        names.append(each.name)
        waiting += each.child_runs
    return [name for name in names if name.endswith("wrap_model_call")]


def test_one_span_stands_for_all_layers_of_the_library() -> None:
    spans = spans_of(create_deep_agent(ScriptedModel("Done.")))

    assert len(spans) == 1


def test_a_caller_in_the_middle_parts_the_layers() -> None:
    between = Between()
    spans = spans_of(create_deep_agent(ScriptedModel("Done."), middleware=[between]))

    assert len(spans) == 3
    assert "write_file" in between.prompts[0]


def test_a_replacement_with_a_hook_of_its_own_is_called(call_mode: CallMode) -> None:
    watching = Watching()
    with ScriptedModel(call("write_file", file_path="/a.txt", content="x"), "Done.") as model:
        done = call_mode.invoke(create_deep_agent(model, middleware=[watching]), {"messages": "Go"})

    assert [each.result[-1].text for each in watching.answers] == ["", "Done."]
    assert list(done["files"]) == ["/a.txt"]


def test_asking_again_drops_what_the_first_try_wrote(call_mode: CallMode, tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "tides" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: tides\ndescription: about tides\n---\nAsk the moon.\n")
    agent = create_deep_agent(
        ScriptedModel("One.", "Two."),
        backend=FilesystemBackend(root_dir=tmp_path, virtual_mode=True),
        skills=["/skills/"],
        middleware=[AsksTwice()],
    )

    done = call_mode.invoke(agent, {"messages": "Go", "pinned_skills": ["tides"]})

    assert [each.type for each in done["messages"]] == ["human", "human", "ai"]
    assert done["messages"][-1].text == "Two."


def test_a_message_in_the_place_of_a_response_is_the_answer(call_mode: CallMode) -> None:
    done = call_mode.invoke(
        create_deep_agent(ScriptedModel(), middleware=[AnswersItself()]), {"messages": "Go"}
    )

    assert done["messages"][-1].text == "Mine."


def test_a_failure_of_the_model_passes_all_layers_as_it_is(call_mode: CallMode) -> None:
    agent = create_deep_agent(ScriptedModel(OSError("away")), middleware=[Between()])

    with pytest.raises(OSError, match="away"):
        call_mode.invoke(agent, {"messages": "Go"})


def test_agents_share_a_middleware_without_sharing_layers() -> None:
    shared = FilesystemMiddleware()
    first = create_deep_agent(ScriptedModel("One."), middleware=[shared])
    second = create_deep_agent(ScriptedModel("Two."), middleware=[shared])

    assert first.invoke({"messages": "Go"})["messages"][-1].text == "One."
    assert second.invoke({"messages": "Go"})["messages"][-1].text == "Two."
    assert type(shared) is FilesystemMiddleware


class Adding(Between):
    """Adds to the prompt in place, which it should not, and which must stay in its own request."""

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        content: Any = request.system_message and request.system_message.content
        content.append({"type": "text", "text": "MY-KEY"})
        return handler(request)


def test_a_prompt_that_is_changed_in_place_stays_with_its_request() -> None:
    with ScriptedModel(call("ls", path="/"), call("ls", path="/"), "Done.") as model:
        create_deep_agent(model, middleware=[Adding()]).invoke({"messages": "Go"})
    assert [asked.system.count("MY-KEY") for asked in model.asked] == [1, 1, 1]


def test_no_other_agent_sees_it() -> None:
    first, second = ScriptedModel("One."), ScriptedModel("Two.")
    for model, more in ((first, [Adding()]), (second, [])):
        agent: Any = create_agent(model, middleware=[FilesystemMiddleware(), *more])
        agent.invoke({"messages": "Go"})

    assert "MY-KEY" in first.asked[0].system
    assert "MY-KEY" not in second.asked[0].system


def test_what_a_caller_changes_on_its_own_middleware_later_counts() -> None:
    files = FilesystemMiddleware()
    with ScriptedModel("Done.") as model:
        agent = create_deep_agent(model, middleware=[files])
        files.system_prompt = "Look before you write."
        agent.invoke({"messages": "Go"})

    assert "Look before you write." in model.asked[0].system

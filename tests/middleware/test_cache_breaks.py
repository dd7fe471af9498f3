"""Requests that a provider's cache serves less of: where they part from the one before, and why."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import Limits, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.events import CacheBroken
from deepagents.observe import aobserve, observe
from deepagents.testing import ScriptedModel, WindowedModel, call, prefix_breaks

THREAD: Any = {"configurable": {"thread_id": "1"}}


def breaks(agent: Any, text: str = "Go", config: Any = THREAD) -> list[CacheBroken]:
    events = observe(agent, {"messages": text}, config)
    return [each for each in events if isinstance(each, CacheBroken)]


@pytest.mark.parametrize("config", [THREAD, None])
def test_requests_that_go_on_break_nothing(config: Any) -> None:
    steps = [call("write_file", file_path=f"/{number}.txt", content="x") for number in range(4)]
    agent = create_deep_agent(ScriptedModel(*steps, "Done.", "And done."), checkpointer=InMemorySaver())
    if config is None:
        agent = create_deep_agent(ScriptedModel(*steps, "Done.", "And done."))

    assert breaks(agent, config=config) == []
    assert breaks(agent, "More", config=config) == []


async def test_they_are_noticed_where_a_run_is_awaited() -> None:
    agent = create_deep_agent(ScriptedModel("One.", "Two."), middleware=[Changing("messages")])
    events = [each async for each in aobserve(agent, {"messages": "Go"})]
    assert [each for each in events if isinstance(each, CacheBroken)] == []


def test_a_compaction_is_named_and_found_where_the_requests_part() -> None:
    steps = [call("write_file", file_path=f"/{number}.txt", content="words " * 300) for number in range(30)]
    model = WindowedModel(*steps, "Done.", window=12_000)
    found = breaks(create_deep_agent(model, checkpointer=InMemorySaver()))

    places = [(each.shared.region, each.shared.index) for each in prefix_breaks(model.turns)]
    assert [(each.region, each.index) for each in found] == places
    assert "compaction" in {each.reason for each in found}
    assert {each.reason for each in found} <= {"compaction", "clipping"}
    assert max(each.lost_tokens for each in found) > 1_000


def test_memory_that_changed_is_named(tmp_path: Any) -> None:
    memory = tmp_path / "AGENTS.md"
    memory.write_text("Be kind.")
    backend = FilesystemBackend(root_dir=str(tmp_path), virtual_mode=True)
    model = ScriptedModel("One.", "Two.", "Three.")
    agent = create_deep_agent(model, backend=backend, memory=["/AGENTS.md"], checkpointer=InMemorySaver())
    assert breaks(agent) == []
    memory.write_text("Be quick.")
    (found,) = breaks(agent, "Again")

    assert (found.region, found.reason) == ("system", "memory")
    assert "Be kind." in str(model.asked[0].messages[0].content[found.index])
    assert found.lost_tokens > 10
    assert breaks(agent, "And again") == []


class Changing(AgentMiddleware[Any, Any]):
    """Changes a region from one request to the next."""

    def __init__(self, region: str) -> None:
        super().__init__()
        self.region, self.count = region, 0

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.count += 1
        match self.region:
            case "tools":
                request = request.override(tools=request.tools[self.count :])
            case "system":
                text = [*request.system_message.content, {"type": "text", "text": f"Turn {self.count}"}]
                request = request.override(
                    system_message=request.system_message.model_copy(update={"content": text})
                )
            case _:
                first = HumanMessage(f"Turn {self.count}", id="0")
                request = request.override(messages=[first, *request.messages])
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


@pytest.mark.parametrize("region", ["tools", "system", "messages"])
def test_what_others_change_has_a_place_and_no_reason(region: str) -> None:
    model = ScriptedModel(call("ls", path="/"), "Done.")
    (found,) = breaks(create_deep_agent(model, middleware=[Changing(region)]), config=None)
    (broken,) = prefix_breaks(model.asked)

    assert (found.region, found.index) == (region, broken.shared.index)
    assert broken.shared.region == region
    assert found.reason is None
    assert abs(found.lost_tokens - broken.shared.lost // 4) < 200


def test_a_note_for_one_request_is_no_break() -> None:
    model = ScriptedModel(call("ls", path="/"), call("ls", path="/"), "Done.")
    agent = create_deep_agent(model, limits=Limits(model_calls=5, warn_at=0.3))

    assert breaks(agent, config=None) == []
    assert any(asked.last.startswith("[Limits]") for asked in model.asked)


class Noting(AgentMiddleware[Any, Any]):
    """Adds two notes to each request."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        notes = [HumanMessage("It is noon."), HumanMessage("It rains.")]
        return handler(request.override(messages=[*request.messages, *notes]))


def test_several_notes_for_one_request_are_no_break_either() -> None:
    model = ScriptedModel(call("ls", path="/"), "Done.")

    assert breaks(create_deep_agent(model, middleware=[Noting()]), config=None) == []
    assert [asked.last for asked in model.asked] == ["It rains."] * 2


def test_threads_are_not_mixed_up() -> None:
    agent = create_deep_agent(ScriptedModel("1", "2", "3", "4"), checkpointer=InMemorySaver())
    for _ in range(2):
        for thread in "ab":
            assert breaks(agent, f"I am {thread}", {"configurable": {"thread_id": thread}}) == []


def test_what_has_keys_that_are_no_text_can_be_compared() -> None:
    class Odd(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            block: Any = {"type": "text", "text": "Go", "places": {(1, 2): "here"}}
            first = HumanMessage([block], id="odd")
            return handler(request.override(messages=[first, *request.messages]))

    steps = [call("ls", path="/"), "Done."]
    assert breaks(create_deep_agent(ScriptedModel(*steps), middleware=[Odd()])) == []

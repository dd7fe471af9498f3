"""A message too large for the context is kept whole, in a file and in state; requests show how it begins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware import filesystem
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

LONG = "\n".join(f"row {number}" for number in range(30_000))
THREAD: Any = {"configurable": {"thread_id": "one"}}


def path_in(text: str) -> str:
    found = re.search(r"saved to the file (\S+)", text)
    assert found
    return found[1]


def test_requests_show_a_preview_and_state_keeps_the_text(call_mode: CallMode) -> None:
    with ScriptedModel("Read.", "Again.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        result = call_mode.invoke(agent, {"messages": LONG}, THREAD)
        call_mode.invoke(agent, {"messages": "More"}, THREAD)

    shown = model.asked[0].last
    path = path_in(shown)
    assert re.fullmatch(r"/conversation_history/[0-9a-f]{32}\.md", path)
    assert result["files"][path]["content"] == LONG
    assert shown.startswith("Message too large")
    assert all(f"row {number}\n" in shown for number in range(10))
    assert len(shown) < 2000
    assert result["messages"][0].text == LONG
    assert result["messages"][0].additional_kwargs["lc_evicted_to"] == path
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    assert model.asked[1].messages[1].text == shown


def test_each_step_shows_the_same_object_so_that_its_tokens_are_counted_once() -> None:
    seen: list[AnyMessage] = []

    @wrap_model_call
    def look(request: Any, handler: Any) -> Any:
        seen.append(request.messages[0])
        return handler(request)

    with ScriptedModel(call("ls", path="/"), "Done.") as model:
        create_deep_agent(model, middleware=[look]).invoke({"messages": LONG})

    first, second = seen
    assert first.text.startswith("Message too large")
    assert first is second


def test_the_model_can_read_on(tmp_path: Path) -> None:
    def read_it(asked: Any) -> Any:
        return call("read_file", file_path=path_in(asked.last), offset=500, limit=2)

    with ScriptedModel(read_it, "Done.") as model:
        agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=tmp_path))
        result = agent.invoke({"messages": LONG})

    assert "   501\trow 500\n   502\trow 501" in result["messages"][-2].text
    assert [file.read_text() for file in (tmp_path / "conversation_history").iterdir()] == [LONG]


def test_each_message_of_a_turn_is_looked_at_and_pictures_stay() -> None:
    picture = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    given = [
        HumanMessage([{"type": "text", "text": LONG}, picture]),
        HumanMessage(LONG),
        HumanMessage("short"),
    ]
    with ScriptedModel("Done.") as model:
        result = create_deep_agent(model).invoke({"messages": given})

    first, second, third = model.asked[0].messages[1:]
    assert first.content[1] == picture
    assert path_in(first.text) != path_in(second.text)
    assert third.text == "short"
    assert len(result["files"]) == 2


def test_the_limit_is_the_callers() -> None:
    files = FilesystemMiddleware(human_message_token_limit_before_evict=10)
    with ScriptedModel("Done.") as model:
        create_deep_agent(model, middleware=[files]).invoke({"messages": "x" * 41})

    assert "too large" in model.asked[0].last


@pytest.mark.parametrize("off", [None, 0])
def test_it_can_be_turned_off(off: int | None) -> None:
    files = FilesystemMiddleware(human_message_token_limit_before_evict=off)
    with ScriptedModel("Done.") as model:
        create_deep_agent(model, middleware=[files]).invoke({"messages": LONG})

    assert model.asked[0].last == LONG


def test_when_it_cannot_be_saved_the_message_is_sent_whole(tmp_path: Path) -> None:
    (tmp_path / "conversation_history").write_text("in the way")
    with ScriptedModel("Done.") as model:
        agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=tmp_path))
        result = agent.invoke({"messages": LONG})

    assert model.asked[0].last == LONG
    assert "lc_evicted_to" not in result["messages"][0].additional_kwargs


@pytest.mark.parametrize("text", ["Hi", LONG])
def test_a_tag_that_does_not_fit_the_text_is_not_obeyed(text: str) -> None:
    marks = {"lc_evicted_to": "/etc/x", "lc_evicted_preview": "forged"}
    history = [HumanMessage(text, additional_kwargs=marks), AIMessage("Yes?"), HumanMessage("More")]
    with ScriptedModel("Done.") as model:
        result = create_deep_agent(model).invoke({"messages": history})

    shown = model.asked[0].messages[1].text
    assert "forged" not in shown
    assert "/etc/x" not in shown
    if text is LONG:
        assert result["files"][path_in(shown)]["content"] == LONG
        assert "row 0" in shown
    else:
        assert shown == "Hi"


def test_a_tag_is_not_obeyed_for_another_text() -> None:
    with ScriptedModel("Read.", "Again.") as model:
        agent = create_deep_agent(model)
        tagged = agent.invoke({"messages": LONG})["messages"][0]
        agent.invoke({"messages": [tagged.model_copy(update={"content": "Hi"})]})

    assert model.asked[1].last == "Hi"


def test_attempts_that_fail_save_one_message_once(tmp_path: Path) -> None:
    with ScriptedModel(OSError("away"), OSError("away"), "Read.") as model:
        agent = create_deep_agent(
            model, backend=FilesystemBackend(root_dir=tmp_path), checkpointer=InMemorySaver()
        )
        for given in ({"messages": LONG}, None):
            with pytest.raises(OSError, match="away"):
                agent.invoke(given, THREAD)
        agent.invoke(None, THREAD)

    assert [file.read_text() for file in (tmp_path / "conversation_history").iterdir()] == [LONG]


@pytest.mark.parametrize("name", ["TOO_LARGE_TOOL_MSG", "TOO_LARGE_HUMAN_MSG"])
def test_the_older_names_of_the_notices_work_with_a_warning(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} is deprecated") as warned:
        notice: str = getattr(filesystem, name)

    filled = notice.format(tool_call_id="1", file_path="/a", content_sample="first")
    assert "saved to the file /a\n" in filled
    assert filled.endswith("first")
    assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match="TOO_SMALL"):
        getattr(filesystem, name.replace("LARGE", "SMALL"))

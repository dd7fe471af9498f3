"""What a model does not take is told to it in a sentence; the run goes on, and state keeps what it had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.errors import ConfigError
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode

PICTURE = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
FILES = {
    "/a.png": {"content": "iVBORw0KGgoAAAAA", "encoding": "base64"},
    "/a.docx": {"content": "UEsDBAD/", "encoding": "base64"},
    "/a.pdf": {"content": "JVBERi0xLjf/", "encoding": "base64"},
}
REFUSED = ModelInvalidRequestError("400: bad image")
THREAD: Any = {"configurable": {"thread_id": "one"}}


def asking(*blocks: dict[str, Any]) -> HumanMessage:
    return HumanMessage([{"type": "text", "text": "Look."}, *blocks])


def kinds(message: Any) -> list[str]:
    return [block["type"] for block in message.content]


@pytest.mark.parametrize(
    ("block", "profile"),
    [
        (PICTURE, {"image_inputs": False}),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, {"image_inputs": False}),
        ({"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"}, {"audio_inputs": False}),
        ({"type": "video", "base64": "AAAA", "mime_type": "video/mp4"}, {"video_inputs": False}),
        ({"type": "file", "base64": "AAAA", "mime_type": "application/pdf"}, {"pdf_inputs": False}),
    ],
)
def test_what_the_profile_rejects_becomes_a_sentence_in_the_request_only(
    call_mode: CallMode, block: dict[str, Any], profile: dict[str, Any]
) -> None:
    with ScriptedModel("Done.", profile=profile) as model:
        result = call_mode.invoke(create_deep_agent(model), {"messages": [asking(block)]})

    shown = model.asked[0].messages[-1]
    assert kinds(shown) == ["text", "text"]
    assert "this model does not take it" in shown.text
    assert result["messages"][0].content[1] == block


def test_the_sentence_names_the_file_and_its_type() -> None:
    with ScriptedModel(
        call("read_file", file_path="/a.png"), "Done.", profile={"image_inputs": False}
    ) as model:
        result = create_deep_agent(model).invoke({"messages": "Look", "files": FILES})

    assert "The image '/a.png', of type image/png, is not shown" in model.asked[1].last
    assert kinds(result["messages"][-2]) == ["image"]


def test_a_profile_may_reject_media_in_results_of_tools_only() -> None:
    profile = {"image_inputs": True, "image_tool_message": False, "pdf_tool_message": False}
    script = (call("read_file", file_path="/a.png"), call("read_file", file_path="/a.pdf"), "Done.")
    with ScriptedModel(*script, profile=profile) as model:
        create_deep_agent(model).invoke({"messages": [asking(PICTURE)], "files": FILES})

    sent = model.asked[2].messages
    assert kinds(sent[1]) == ["text", "image"]
    assert [kinds(message) for message in sent if message.type == "tool"] == [["text"], ["text"]]


@pytest.mark.parametrize("profile", [None, {}, {"image_inputs": True}])
def test_what_the_profile_does_not_reject_is_sent(profile: Any) -> None:
    with ScriptedModel("Done.", profile=profile) as model:
        create_deep_agent(model).invoke({"messages": [asking(PICTURE)]})

    assert model.asked[0].messages[-1].content[1] == PICTURE


@pytest.mark.parametrize(("provider", "shown"), [("scripted", ["text"]), ("openai", ["file"])])
def test_other_files_are_sent_only_where_a_provider_may_take_them(provider: str, shown: list[str]) -> None:
    script = (call("read_file", file_path="/a.docx"), "Done.")
    with ScriptedModel(*script, provider=provider) as model:
        create_deep_agent(model).invoke({"messages": "Look", "files": FILES})

    assert kinds(model.asked[1].messages[-1]) == shown


def test_after_a_refusal_it_is_tried_once_without_and_state_remembers(call_mode: CallMode) -> None:
    with ScriptedModel(call("read_file", file_path="/a.png"), REFUSED, "Went on.", "And on.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        result = call_mode.invoke(agent, {"messages": "Look", "files": FILES}, THREAD)
        call_mode.invoke(agent, {"messages": "More"}, THREAD)

    read = result["messages"][-2]
    assert result["messages"][-1].text == "Went on."
    assert kinds(read) == ["text"]
    assert "'/a.png', of type image/png" in read.text
    assert "refused a request that held it. Go on" in model.asked[2].last
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert len(model.asked) == 4


def test_a_persons_picture_stays_in_state_and_is_not_sent_to_that_model_again() -> None:
    saver = InMemorySaver()
    with ScriptedModel(REFUSED, "Went on.", "And on.") as model:
        agent = create_deep_agent(model, checkpointer=saver)
        result = agent.invoke({"messages": [asking(PICTURE)]}, THREAD)
        agent.invoke({"messages": "More"}, THREAD)
    with ScriptedModel("I see.", model_name="another") as other:
        create_deep_agent(other, checkpointer=saver).invoke({"messages": "And you?"}, THREAD)

    assert result["messages"][0].content[1] == PICTURE
    assert kinds(model.asked[2].messages[1]) == ["text", "text"]
    assert other.asked[0].messages[1].content[1] == PICTURE


def test_media_that_were_seen_before_are_left_out_when_nothing_newer_can_be_the_cause() -> None:
    with ScriptedModel("Nice.", REFUSED, "Went on.") as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        agent.invoke({"messages": [asking(PICTURE)]}, THREAD)
        result = agent.invoke({"messages": "More"}, THREAD)

    assert result["messages"][-1].text == "Went on."


def test_a_refusal_that_has_nothing_to_do_with_media_reaches_the_caller() -> None:
    with ScriptedModel(REFUSED) as model, pytest.raises(ModelInvalidRequestError, match="bad image"):
        create_deep_agent(model).invoke({"messages": "Hi"})
    with ScriptedModel(REFUSED, REFUSED) as model, pytest.raises(ModelInvalidRequestError):
        create_deep_agent(model).invoke({"messages": [asking(PICTURE)]})


def test_the_sentence_says_what_is_known_of_a_refusal() -> None:
    read = calls(*(("read_file", {"file_path": path}) for path in ("/a.png", "/a.pdf")))
    with ScriptedModel(read, REFUSED, call("read_file", file_path="/a.png"), "I see.") as model:
        result = create_deep_agent(model).invoke({"messages": "Look", "files": FILES})

    told = "is not shown: the provider refused a request that held it and 1 more"
    assert [told in message.text for message in result["messages"][2:4]] == [True, True]
    assert "call read_file for one file at a time" in model.asked[2].last
    assert "does not take" not in model.asked[2].last
    assert kinds(model.asked[3].messages[-1]) == ["image"]


def test_two_models_that_take_turns_keep_their_marks() -> None:
    saver = InMemorySaver()
    first = ScriptedModel(REFUSED, "One.", "Three.", model_name="first")
    second = ScriptedModel(REFUSED, "Two.", "Four.", model_name="second")
    for model, said in ((first, [asking(PICTURE)]), (second, "?"), (first, "?"), (second, "?")):
        agent = create_deep_agent(model, checkpointer=saver)
        result = agent.invoke({"messages": said}, THREAD)

    assert kinds(first.asked[2].messages[1]) == kinds(second.asked[2].messages[1]) == ["text", "text"]
    assert result["messages"][-1].text == "Four."


def test_a_mark_of_a_form_that_is_not_ours_says_nothing() -> None:
    given = asking(PICTURE).model_copy(update={"additional_kwargs": {"media_rejected_by": "scripted"}})
    with ScriptedModel("Done.") as model:
        create_deep_agent(model).invoke({"messages": [given]})

    assert model.asked[0].messages[-1].content[1] == PICTURE


def test_a_message_that_is_moved_and_refused_in_one_call_keeps_both(tmp_path: Path) -> None:
    disk = FilesystemBackend(root_dir=tmp_path)
    files = FilesystemMiddleware(
        backend=disk, offload_binary_content=True, human_message_token_limit_before_evict=100
    )
    long = HumanMessage([{"type": "text", "text": "row\n" * 1000}, PICTURE])
    with ScriptedModel(REFUSED, "Went on.", "And on.") as model:
        agent = create_deep_agent(model, backend=disk, middleware=[files], checkpointer=InMemorySaver())
        result = agent.invoke({"messages": [long]}, THREAD)
        agent.invoke({"messages": "More"}, THREAD)

    kept = result["messages"][0]
    assert {"media_rejected_by", "lc_evicted_to"} <= set(kept.additional_kwargs)
    assert "deepagents_blob" in kept.content[1]
    assert kinds(model.asked[2].messages[1]) == ["text", "text"]
    assert [message.type for message in result["messages"]] == ["human", "ai"]


@pytest.mark.parametrize("odd", [["image"], {"a": 1}, None, 7])
def test_a_block_whose_type_is_no_text_does_not_end_the_run(odd: Any) -> None:
    with ScriptedModel("Done.") as model:
        create_deep_agent(model).invoke({"messages": [asking({"type": odd})]})

    assert "One part of this message is not shown" in model.asked[0].last


def test_a_model_without_bind_tools_is_refused_with_the_way_out(call_mode: CallMode) -> None:
    agent = create_deep_agent(FakeListChatModel(responses=["Hi."]), model_retries=1)

    with pytest.raises(ConfigError, match=r"'FakeListChatModel' cannot call tools .* define bind_tools"):
        call_mode.invoke(agent, {"messages": "Hi"})


def test_a_model_without_bind_tools_may_stand_for_one_that_is_chosen_later(call_mode: CallMode) -> None:
    class Choosing(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(model=ScriptedModel("Hi.")))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(model=ScriptedModel("Hi.")))

    agent = create_deep_agent(FakeListChatModel(responses=[]), middleware=[Choosing()])

    assert call_mode.invoke(agent, {"messages": "Hi"})["messages"][-1].text == "Hi."


def test_a_wrapper_takes_tools_if_what_it_wraps_does(call_mode: CallMode) -> None:
    class Wrapped(FakeListChatModel):
        def __getattribute__(self, name: str) -> Any:
            return model.bind_tools if name == "bind_tools" else super().__getattribute__(name)

    model = ScriptedModel("Hi.")
    agent = create_deep_agent(Wrapped(responses=[]))

    assert call_mode.invoke(agent, {"messages": "Hi"})["messages"][-1].text == "Hi."

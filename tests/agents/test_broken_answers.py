"""An answer of a model that broke off runs no call, and says that it is not whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.errors import BrokenAnswer
from deepagents.events import AnswerBroken, FinalAnswer, ModelRetry, ToolFinished
from deepagents.models.failures import may_pass
from deepagents.testing import ScriptedModel, call, calls, history_faults
from tests.cli.openai_server import OpenAIServer, Reply, Request, serving
from tests.conftest import CallMode

pytestmark = pytest.mark.slow

THREAD: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": "Go"}
OLD, NEW = "old\n", 'a "new" text\n'


def asking(server: OpenAIServer, **settings: Any) -> ChatOpenAI:
    given: dict[str, Any] = {"base_url": server.address, "api_key": "none", "max_retries": 0, **settings}
    return ChatOpenAI(model="fake", **given)


def write(content: str = NEW, **more: Any) -> Reply:
    return Reply(calls=[("write_file", {"file_path": "/a.txt", "content": content})], **more)


def with_metadata(message: AIMessage, **told: Any) -> AIMessage:
    return message.model_copy(update={"response_metadata": told})


def codes(result: Any) -> list[str]:
    return [each.additional_kwargs.get("error_code") for each in result["messages"] if each.type == "tool"]


def test_a_stream_that_stops_in_a_call_never_writes_half_a_file(call_mode: CallMode, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"

    def write_at_last(request: Request) -> Reply:
        assert file.read_text() == OLD
        assert "nothing of it was run" in request.last
        return write()

    whole = len(json.dumps(dict(write().calls[0][1])))
    with serving() as server:
        backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
        streaming = create_deep_agent(asking(server, streaming=True), backend=backend)
        streamed = create_deep_agent(asking(server), backend=backend)
        # Behind the beginning and the name of the call stand the characters of its arguments. Each colour is
        # cut at every other one, and each of the ways of a colour at every fourth.
        for cut in range(2 if call_mode.name == "sync" else 3, 2 + whole + 1, 2):
            file.write_text(OLD)
            server.then(write(cut=cut), write_at_last, "Done.")
            if cut % 4 < 2:
                call_mode.invoke(streaming, GO)
            else:
                call_mode.stream(streamed, GO, stream_mode="messages")
            assert file.read_text() == NEW


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("length", {"finish_reason": "length"}),
        ("filtered", {"finish_reason": "content_filter"}),
        ("length", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
        ("filtered", {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
        ("no_end", {"status": "in_progress"}),
        ("length", {"stop_reason": "max_tokens"}),
        ("length", {"stop_reason": "model_context_window_exceeded"}),
        ("filtered", {"stop_reason": "refusal"}),
        ("length", {"finish_reason": "MAX_TOKENS"}),
        ("filtered", {"finish_reason": "SAFETYSAFETY"}),
        ("no_end", {"finish_reason": "MALFORMED_FUNCTION_CALL"}),
        ("length", {"stopReason": "max_tokens"}),
        ("filtered", {"stopReason": "guardrail_intervened"}),
        ("length", {"finish_reason": "model_length"}),
        ("no_end", {"finish_reason": "error"}),
        ("length", {"done": True, "done_reason": "length"}),
    ],
    ids=lambda each: "-".join(map(str, each.values())) if isinstance(each, dict) else each,
)
def test_no_call_of_a_broken_answer_runs_whatever_its_provider_calls_that(kind: str, told: Any) -> None:
    broken = with_metadata(
        calls(("write_file", {"file_path": "/a", "content": "hal"}), ("ls", {"path": "/"})), **told
    )
    with ScriptedModel(broken, "Sorry.") as model:
        result = create_deep_agent(model).invoke(GO)

    assert codes(result) == ["incomplete_answer"] * 2
    assert "/a" not in result.get("files", {})
    assert result["messages"][1].response_metadata["broken"] == kind
    assert history_faults(model.asked[1].messages[1:]) == []
    assert "broken" not in result["messages"][-1].response_metadata


@pytest.mark.parametrize(
    "told",
    [
        {"finish_reason": "tool_calls", "model_provider": "openai"},
        {"finish_reason": "STOP", "model_provider": "google_genai"},
        {"stop_reason": "tool_use", "model_provider": "anthropic"},
        {"status": "completed", "model_provider": "openai"},
        {"stopReason": "tool_use"},
        {"finish_reason": "COMPLETE"},
        {"finish_reason": "eos_token"},
        {"model_provider": "a-model-that-never-says"},
        {},
    ],
    ids=str,
)
def test_an_answer_that_ends_well_or_never_says_is_run(call_mode: CallMode, told: Any) -> None:
    for run in (call_mode.invoke, call_mode.stream):
        with ScriptedModel(
            with_metadata(call("write_file", file_path="/a", content="all"), **told), "Done."
        ) as model:
            run(create_deep_agent(model), GO)
        assert getattr(model.asked[1].messages[-1], "status", None) == "success"


def test_arguments_that_are_no_whole_json_run_no_call_of_their_answer(call_mode: CallMode) -> None:
    head = '{"id":"1","object":"chat.completion.chunk","created":1,"model":"fake","choices":[{"index":0,'
    delta = (
        r'{"role":"assistant","content":"","tool_calls":['
        r'{"index":0,"id":"1","type":"function","function":{"name":"ls","arguments":"{\"path\":\"/\"}"}},'
        r'{"index":1,"id":"2","type":"function","function":{"name":"write_file",'
        r'"arguments":"{\"file_path\":\"/a\",\"content\":\"hal"}}]}'
    )
    lines = (
        f'{head}"delta":{delta},"finish_reason":null}}]}}',
        f'{head}"delta":{{}},"finish_reason":"tool_calls"}}]}}',
    )
    body = "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode()
    with serving(Reply(stream=body), "Sorry.") as server:
        result = call_mode.invoke(create_deep_agent(asking(server, streaming=True)), GO)

    assert codes(result) == ["incomplete_answer"] * 2
    assert "not whole JSON" in server.requests[1].last
    assert result["messages"][-1].text == "Sorry."


def test_a_stream_of_anthropic_without_its_end_runs_nothing(call_mode: CallMode) -> None:
    start = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [],
        "stop_reason": None,
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**start, "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0}
        | {"content_block": {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}},
        {"type": "content_block_delta", "index": 0}
        | {"delta": {"type": "input_json_delta", "partial_json": '{"path": "/"}'}},
    ]
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    text = [
        events[0],
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Sorry."}},
        {"type": "content_block_stop", "index": 0},
        stop,
        {"type": "message_stop"},
    ]
    bodies = [
        "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in each) for each in (events, text)
    ]
    with serving(*(Reply(stream=body.encode()) for body in bodies)) as server:
        address: Any = {"base_url": server.address.removesuffix("/v1"), "api_key": "none"}
        model = ChatAnthropic(model_name="c", max_retries=0, streaming=True, **address)
        result = call_mode.invoke(create_deep_agent(model), GO)

    assert codes(result) == ["incomplete_answer"]
    sent = [block["type"] for each in server.requests[1].messages[1:] for block in each["content"]]
    assert sent == ["tool_use", "tool_result"]
    assert result["messages"][-1].text == "Sorry."


def test_a_stream_that_stops_is_asked_for_again_where_that_was_wanted(call_mode: CallMode) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    late = Reply(stream=f"event: error\ndata: {json.dumps(overloaded)}\n\n".encode())
    with serving(
        Reply("Half an answer", cut=2), "All of it.", Reply("Half an answer", cut=2), late
    ) as server:
        patient = create_deep_agent(asking(server), model_retries=1)
        events = call_mode.observe(patient, GO)
        hasty = call_mode.observe(create_deep_agent(asking(server)), GO)
        address: Any = {"base_url": server.address.removesuffix("/v1"), "api_key": "none"}
        claude = ChatAnthropic(model_name="c", max_retries=0, streaming=True, **address)
        with pytest.raises(Exception, match="Overloaded") as raised:
            call_mode.invoke(create_deep_agent(claude), GO)

    assert may_pass(raised.value)
    assert [each.reason for each in events if isinstance(each, ModelRetry)] == ["the answer broke off"]
    assert events[-1] == FinalAnswer("All of it.")
    assert hasty[-1] == FinalAnswer("Half", broken="no_end")


@pytest.mark.parametrize("kind", ["length", "filtered"])
def test_calls_that_break_off_again_and_again_end_the_run(call_mode: CallMode, kind: str) -> None:
    told = {"length": "max_tokens", "filtered": "refusal"}[kind]
    broken = with_metadata(call("write_file", file_path="/a", content="hal"), stop_reason=told)
    model = ScriptedModel(broken, broken, call("ls", path="/"), broken, broken, broken)
    with model, pytest.raises(BrokenAnswer, match="3 answers of the model in a row broke off") as raised:
        call_mode.invoke(create_deep_agent(model), GO)

    assert raised.value.kind == kind


def test_a_text_that_broke_off_says_so_in_its_message_and_in_events(call_mode: CallMode) -> None:
    with ScriptedModel(with_metadata(AIMessage("Half an answ"), finish_reason="length")) as model:
        agent = create_deep_agent(model, checkpointer=InMemorySaver())
        events = call_mode.observe(agent, GO, THREAD)

    assert AnswerBroken("length") in events
    assert events[-1] == FinalAnswer("Half an answ", broken="length")
    assert agent.get_state(THREAD).values["messages"][-1].response_metadata["broken"] == "length"


def test_a_person_is_never_asked_about_half_a_change(call_mode: CallMode) -> None:
    broken = with_metadata(call("write_file", file_path="/a", content="hal"), finish_reason="length")
    with ScriptedModel(broken, "Too long for me.") as model:
        agent = create_deep_agent(model, interrupt_on={"write_file": True}, checkpointer=InMemorySaver())
        events = call_mode.observe(agent, GO, THREAD)

    assert [each.code for each in events if isinstance(each, ToolFinished)] == ["incomplete_answer"]
    assert events[-1] == FinalAnswer("Too long for me.")


def test_half_of_a_structured_answer_is_none(call_mode: CallMode) -> None:
    class Report(BaseModel):
        text: str

    half = with_metadata(call("Report", text="It beg"), finish_reason="length")
    with ScriptedModel(half, call("Report", text="Short.")) as model:
        result = call_mode.invoke(create_deep_agent(model, response_format=Report), GO)

    assert result["structured_response"] == Report(text="Short.")


def test_the_caller_reads_that_the_answer_of_a_subagent_is_not_whole(call_mode: CallMode) -> None:
    def answer(asked: Any) -> AIMessage | str:
        if asked.last == "Report":
            return with_metadata(AIMessage("First, the ti"), stop_reason="max_tokens")
        return "I see." if "First, the ti" in asked.last else delegate

    delegate = call("task", subagent_type="general-purpose", description="Report")
    model = ScriptedModel(always=answer)
    result = call_mode.invoke(create_deep_agent(model), GO)

    assert codes(result) == ["incomplete_answer"]
    assert "was cut off at a limit of tokens" in result["messages"][-2].text
    assert result["messages"][-1].text == "I see."

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from deepagents import Price
from deepagents.models.prices import price_of_model
from deepagents_local import ChatLocal, EngineError, WeightsMissing
from tests.conftest import CallMode
from tests.local.engines import (
    BrokenEngine,
    EndlessEngine,
    ScriptedEngine,
    allowed_names,
    with_tools,
)

READ = '{"tool": "read_file", "file_path": "/a.txt"}'


def plain(*replies: str, **options: Any) -> ChatLocal:
    return ChatLocal(engine=ScriptedEngine(*replies, **options), n_threads=1)


def test_without_tools_it_says_what_the_engine_says(call_mode: CallMode) -> None:
    answer = call_mode.invoke(plain("Hello there"), "Hi")

    assert isinstance(answer, AIMessage)
    assert answer.text == "Hello there"
    assert answer.usage_metadata == {
        "input_tokens": 20,
        "output_tokens": 5,
        "total_tokens": 25,
        "input_token_details": {"cache_read": 15},
    }
    assert answer.response_metadata["finish_reason"] == "stop"
    assert answer.response_metadata["model_name"] == "qwen2.5-coder-1.5b"


def test_text_streams_as_it_is_written(call_mode: CallMode) -> None:
    chunks = call_mode.stream(plain("Hello there"), "Hi")

    assert [chunk.text for chunk in chunks] == ["Hel", "lo ", "the", "re", ""]
    assert chunks[-1].chunk_position == "last"


def test_a_tool_call_comes_with_a_fresh_id(call_mode: CallMode) -> None:
    model = with_tools(ScriptedEngine(READ, READ))
    first, second = call_mode.invoke(model, "What is in a.txt?"), call_mode.invoke(model, "What is in a.txt?")

    (call,) = first.tool_calls
    assert (call["name"], call["args"]) == ("read_file", {"file_path": "/a.txt"})
    assert call["id"] != second.tool_calls[0]["id"]
    assert first.content == ""
    assert first.response_metadata["finish_reason"] == "tool_calls"


def test_a_final_answer_is_plain_text_and_streams() -> None:
    model = with_tools(ScriptedEngine('{"final_answer": "It says \\"hé\\"\\nand \\ud83d\\ude00."}'))
    chunks = list(model.stream("What does it say?"))

    assert "".join(chunk.text for chunk in chunks) == 'It says "hé"\nand 😀.'
    assert len([chunk for chunk in chunks if chunk.text]) > 3
    assert not any(chunk.tool_call_chunks for chunk in chunks)


def test_a_call_that_was_cut_off_is_a_message_and_never_a_call() -> None:
    engine = ScriptedEngine('{"tool": "write_file", "file_path": "/a.txt", "content": "half', cut=True)
    answer = with_tools(engine).invoke("Write a.txt")

    assert answer.tool_calls == []
    assert "cut off at the token limit" in answer.text
    assert "Nothing was done" in answer.text
    assert answer.response_metadata["finish_reason"] == "length"


def test_a_small_file_is_written_anew_by_an_edit_of_all_of_it(call_mode: CallMode) -> None:
    engine = ScriptedEngine('{"tool": "edit_file", "file_path": "/a.py"}\n```\nprint("b")\nb()\n```')
    read = {"name": "read_file", "args": {"file_path": "/a.py"}, "id": "1"}
    answer = call_mode.invoke(
        with_tools(engine),
        [
            HumanMessage("Say b in a.py"),
            AIMessage("", tool_calls=[read]),
            ToolMessage("     1\tprint('a')\n     2\ta()", tool_call_id="1", name="read_file"),
        ],
    )

    assert answer.tool_calls[0]["args"] == {
        "file_path": "/a.py",
        "old_string": "print('a')\na()",
        "new_string": 'print("b")\nb()',
    }


def test_an_answer_that_was_cut_off_keeps_its_beginning() -> None:
    answer = with_tools(ScriptedEngine('{"final_answer": "Once upon', cut=True)).invoke("Tell")

    assert answer.text.startswith("Once upon")
    assert "cut off" in answer.text


def test_earlier_calls_and_results_are_told_in_the_form_of_the_answers() -> None:
    engine = ScriptedEngine('{"final_answer": "moon"}')
    call = {"name": "read_file", "args": {"file_path": "/a.txt"}, "id": "1"}
    with_tools(engine).invoke(
        [
            SystemMessage("Be brief."),
            HumanMessage("What is in a.txt?"),
            AIMessage("", tool_calls=[call]),
            ToolMessage("     1\tmoon", tool_call_id="1", name="read_file"),
        ]
    )

    system, asked, called, result = engine.requests[0].turns
    assert system["content"].startswith("Be brief.")
    assert "read_file(file_path: str, offset: int = 0) - Read a file" in system["content"]
    assert asked == {"role": "user", "content": "What is in a.txt?"}
    assert called == {"role": "assistant", "content": READ}
    assert result["content"].startswith("Result of read_file:\n```\nmoon\n```\n")
    assert "The task is: What is in a.txt?" in result["content"]


def test_a_later_turn_only_adds_to_the_prompt() -> None:
    engine = ScriptedEngine(READ, '{"final_answer": "moon"}', '{"tool": "ls", "path": "/"}')
    model = with_tools(engine)
    history: list[Any] = [HumanMessage("What is in a.txt?")]
    for result in ("moon", "sun"):
        said = model.invoke(history)
        calls = said.tool_calls
        history.append(said)
        history += [ToolMessage(result, tool_call_id=calls[0]["id"], name="read_file")] if calls else []
    history.append(HumanMessage("And in b.txt?"))
    model.invoke(history)

    first, second, third = (request.turns for request in engine.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("any", ["ls", "read_file", "write_file", "edit_file", "grep"]),
        ("required", ["ls", "read_file", "write_file", "edit_file", "grep"]),
        ("ls", ["ls"]),
        ({"type": "function", "function": {"name": "ls"}}, ["ls"]),
        ("auto", ["ls", "read_file", "grep"]),
    ],
)
def test_a_tool_choice_decides_what_may_be_called(choice: Any, names: list[str]) -> None:
    engine = ScriptedEngine(READ)
    with_tools(engine, tool_choice=choice).invoke("Hi")

    assert allowed_names(engine.requests[0]) == names


def test_tool_choice_none_means_plain_text() -> None:
    engine = ScriptedEngine("Hi")
    with_tools(engine, tool_choice="none").invoke("Hi")

    assert engine.requests[0].grammar is None
    assert "Tools:" not in str(engine.requests[0].turns)


def test_an_unknown_tool_choice_is_named() -> None:
    with pytest.raises(ValueError, match="'fly', which is not among the tools"):
        with_tools(ScriptedEngine(), tool_choice="fly").invoke("Hi")


class Person(BaseModel):
    """Someone."""

    name: str
    age: int


def test_structured_output_is_one_forced_call() -> None:
    model = plain('{"tool": "Person", "name": "Ada", "age": 36}').with_structured_output(Person)

    assert model.invoke("Ada is 36") == Person(name="Ada", age=36)


def test_a_failing_engine_fails_the_call(call_mode: CallMode) -> None:
    with pytest.raises(EngineError, match="out of memory"):
        call_mode.invoke(ChatLocal(engine=BrokenEngine(EngineError("out of memory")), n_threads=1), "Hi")


def test_missing_weights_are_named_when_it_is_first_used(call_mode: CallMode) -> None:
    model = ChatLocal()

    with pytest.raises(WeightsMissing, match="deepagents models pull"):
        call_mode.invoke(model, "Hi")


def test_a_stream_that_is_left_stops_the_engine() -> None:
    engine = EndlessEngine()
    stream: Any = ChatLocal(engine=engine, n_threads=1).stream("Talk")
    next(stream)
    stream.close()

    assert engine.stopped.wait(10)


def test_a_cancelled_call_stops_the_engine() -> None:
    engine = EndlessEngine()

    async def cancel_soon() -> None:
        task = asyncio.create_task(ChatLocal(engine=engine, n_threads=1).ainvoke("Talk"))
        assert await asyncio.to_thread(engine.started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_soon())

    assert engine.stopped.wait(10)


def test_it_tells_who_it_is() -> None:
    model = ChatLocal(temperature=0.5, max_tokens=100, n_ctx=2_000, n_threads=1)

    assert (model.profile or {}).get("max_input_tokens") == 1_900
    assert price_of_model(model) == Price(0, 0)
    assert model.model_name == "qwen2.5-coder-1.5b"


def test_an_async_stream_that_is_left_stops_the_engine() -> None:
    engine = EndlessEngine()

    async def leave_after_a_word() -> None:
        stream: Any = ChatLocal(engine=engine, n_threads=1).astream("Talk")
        await anext(stream)
        await stream.aclose()

    asyncio.run(leave_after_a_word())

    assert engine.stopped.wait(10)


def test_what_a_call_asks_for_wins_over_the_settings() -> None:
    engine = ScriptedEngine("a", "b")
    model = ChatLocal(engine=engine, temperature=0.5, seed=1, n_threads=1)
    model.invoke("Hi")
    model.invoke("Hi", stop=["."], temperature=0.9, max_tokens=7, seed=2)

    first, second = engine.requests
    assert (first.temperature, first.max_tokens, first.seed, first.stop) == (0.5, 1024, 1, ())
    assert (second.temperature, second.max_tokens, second.seed, second.stop) == (0.9, 7, 2, (".",))


def test_arguments_survive_the_way_there_and_back() -> None:
    args = {"file_path": "/ü.txt", "content": 'a "b"\n\\n <|im_end|> 😀'}
    reply = json.dumps({"tool": "write_file", **args})
    answer = with_tools(ScriptedEngine(reply)).invoke("Go")

    assert answer.tool_calls[0]["args"] == args

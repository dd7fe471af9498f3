"""Long arguments of old file writes are clipped in batches, and point to the file that was written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from deepagents.errors import ConfigError
from deepagents.middleware.summarization.clipping import Clipping
from deepagents.middleware.summarization.counting import ContextCounter
from deepagents.middleware.summarization.policy import Load, TruncateArgsSettings
from deepagents.tools import specs_by_name

LONG = "x" * 4000
SPECS = specs_by_name()
POINTER = "...(argument truncated; see the file /a.py)"
LOAD = Load(600, 4, 1000)
CLIPPING = Clipping.of({"trigger": ("fraction", 0.5), "keep": ("messages", 2)})


def write(name: str = "w", content: str = LONG, tool: str = "write_file", **args: Any) -> ToolCall:
    return ToolCall(
        name=tool, args={"file_path": "/a.py", "content": content, **args}, id=name, type="tool_call"
    )


def wrote(*calls: ToolCall, content: Any = "", error: bool = False, **more: Any) -> list[AnyMessage]:
    """A message of the model that writes files, and what the tool said."""
    name = calls[0]["id"] or ""
    status: Any = "error" if error else "success"
    asked = AIMessage(content, tool_calls=list(calls), id=f"ai-{name}", **more)
    said = [
        ToolMessage("Done", tool_call_id=each["id"] or "", status=status, id=f"t-{name}") for each in calls
    ]
    return [asked, *said]


def tail() -> list[AnyMessage]:
    return [HumanMessage("Go on.", id="h1"), HumanMessage("Go on!", id="h2")]


def sizes(messages: Sequence[AnyMessage]) -> list[int]:
    return [ContextCounter().estimate([each]) for each in messages]


def batch(
    messages: Sequence[AnyMessage],
    clipping: Clipping = CLIPPING,
    load: Load = LOAD,
    already: Sequence[str] = (),
) -> set[str]:
    return set(clipping.next_batch(messages, lambda: sizes(messages), load, SPECS, already))


def clipped(messages: list[AnyMessage], *ids: str, clipping: Clipping = CLIPPING) -> AIMessage:
    return cast(AIMessage, clipping.show(messages, dict.fromkeys(ids or ["ai-w"]), SPECS)[0])


# Settings.


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"max_lenght": 5}, "'max_lenght'"),
        ({"trigger": ("words", 5)}, "'words'"),
        ({"trigger": ("tokens", 0)}, "0"),
        ({"keep": ("messages", -1)}, "-1"),
        ({"max_length": 0}, "0"),
        ({"max_length": "2000"}, "'2000'"),
        ({"max_length": True}, "True"),
        ({"truncation_text": 5}, "5"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: Any, named: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(named)):
        Clipping.of(settings)


@pytest.mark.parametrize("settings", ["tokens", {"trigger": {"tokens": 5}}, {"keep": ["messages", 5]}])
def test_settings_without_the_right_form_are_a_type_error(settings: Any) -> None:
    with pytest.raises(TypeError):
        Clipping.of(settings)


def test_without_a_trigger_nothing_is_clipped() -> None:
    messages = [*wrote(write()), *tail()]

    for settings in (None, TruncateArgsSettings(max_length=5), TruncateArgsSettings(trigger=None)):
        assert batch(messages, Clipping.of(settings), Load(10**9, 10**9, 1000)) == set()


# Batches.


def test_old_long_arguments_are_taken_once_the_trigger_is_met() -> None:
    messages = [*wrote(write()), *tail()]

    assert batch(messages, load=Load(499, 4, 1000)) == set()
    assert batch(messages, load=Load(500, 4, 1000)) == {"ai-w"}


def test_what_the_keep_window_holds_is_not_taken() -> None:
    messages = [*wrote(write()), *tail()]

    assert batch(messages, Clipping.of({"trigger": ("tokens", 1), "keep": ("messages", 3)})) == {"ai-w"}
    assert batch(messages, Clipping.of({"trigger": ("tokens", 1), "keep": ("messages", 4)})) == set()
    assert batch(messages, Clipping.of({"trigger": ("tokens", 1), "keep": ("messages", 9)})) == set()
    assert batch(messages, Clipping.of({"trigger": ("tokens", 1), "keep": ("tokens", 50)})) == {"ai-w"}
    assert batch(messages, Clipping.of({"trigger": ("tokens", 1), "keep": ("tokens", 5000)})) == set()
    assert batch(messages, Clipping.of({"trigger": ("tokens", 1), "keep": ("fraction", 0.05)})) == {"ai-w"}


def test_a_fraction_of_an_unknown_window_triggers_nothing_and_keeps_the_last_messages() -> None:
    messages = [*wrote(write(content="x" * 40_000)), *tail()]
    many = [*messages, *(HumanMessage("so") for _ in range(18))]
    unknown = Load(10**6, 4, None)

    assert batch(messages, load=unknown) == set()
    keeps = Clipping.of({"trigger": ("tokens", 1), "keep": ("fraction", 0.1)})
    assert batch(messages, keeps, unknown) == set()
    assert batch(many, keeps, unknown) == {"ai-w"}


def test_a_batch_is_taken_only_where_it_frees_enough() -> None:
    messages = [*wrote(write("one")), *wrote(write("two")), *tail()]

    assert batch(messages, load=Load(30_000, 6, 19_000)) == {"ai-one", "ai-two"}
    assert batch(messages, load=Load(30_000, 6, 19_000), already=["ai-one"]) == set()
    assert batch(messages, load=Load(30_000, 6, 20_500)) == set()


def test_without_a_window_the_tokens_of_the_trigger_say_what_is_enough() -> None:
    def taken(tokens: int, content: str) -> set[str]:
        clipping = Clipping.of({"trigger": ("tokens", tokens), "keep": ("messages", 2)})
        return batch([*wrote(write(content=content)), *tail()], clipping, Load(10**6, 6, None))

    assert taken(100_000, "x" * 31_000) == set()
    assert taken(100_000, "x" * 33_000) == {"ai-w"}
    assert taken(17_000, "x" * 6700) == set()
    assert taken(17_000, "x" * 7000) == {"ai-w"}


def test_a_number_of_messages_triggers_a_small_batch_once() -> None:
    clipping = Clipping.of({"trigger": ("messages", 5), "keep": ("messages", 2), "max_length": 100})
    messages = [*wrote(write("one", "x" * 200)), *wrote(write("two", "x" * 200)), *tail()]

    assert batch(messages, clipping, Load(0, 6, None)) == {"ai-one", "ai-two"}
    assert batch(messages, clipping, Load(0, 6, None), already=["ai-one"]) == set()
    assert batch(messages, clipping, Load(0, 6, 200_000), already=["ai-one"]) == set()


def test_what_failed_is_nowhere_else_and_stays() -> None:
    assert batch([*wrote(write(), error=True), *tail()]) == set()
    assert batch([wrote(write())[0], *tail()]) == set()


def test_other_tools_and_short_arguments_stay() -> None:
    assert batch([*wrote(write(tool="execute")), *tail()]) == set()
    assert batch([*wrote(write(content="x" * 2000)), *tail()]) == set()
    assert batch([*wrote(write(content="x" * 2001)), *tail()]) == {"ai-w"}
    nested: list[AnyMessage] = [*wrote(write(content="short", edits=[{"new": LONG}])), *tail()]
    assert batch(nested) == set()


def test_messages_without_an_id_stay() -> None:
    messages = [*wrote(write()), *tail()]
    messages[0] = messages[0].model_copy(update={"id": None})

    assert batch(messages) == set()


# Copies.


def test_an_argument_shows_how_it_begins_and_where_it_went() -> None:
    messages = wrote(write(old_string="short"))

    shown = clipped(messages)

    assert shown.tool_calls[0]["args"] == {
        "file_path": "/a.py",
        "content": "x" * 20 + POINTER,
        "old_string": "short",
    }
    assert shown.model_copy(update={"tool_calls": cast(AIMessage, messages[0]).tool_calls}) == messages[0]


def test_the_original_is_left_as_it_was() -> None:
    block = {"type": "tool_use", "id": "w", "name": "write_file", "input": write()["args"]}
    messages = wrote(write(), content=[block])
    before = messages[0].model_dump_json()

    clipped(messages)

    assert messages[0].model_dump_json() == before


def test_a_caller_may_word_the_note() -> None:
    short = Clipping.of({"trigger": ("tokens", 1), "max_length": 100, "truncation_text": " [cut]"})

    assert clipped(wrote(write()), clipping=short).tool_calls[0]["args"]["content"] == "x" * 20 + " [cut]"


def test_without_a_path_nothing_is_pointed_at() -> None:
    messages = wrote(ToolCall(name="edit_file", args={"new_string": LONG}, id="w", type="tool_call"))

    assert clipped(messages).tool_calls[0]["args"] == {"new_string": "x" * 20 + "...(argument truncated)"}


@pytest.mark.parametrize(
    ("content", "of"),
    [
        (
            {"type": "tool_use", "id": "w", "name": "write_file", "input": write()["args"]},
            lambda block: block["input"],
        ),
        (
            {"type": "function_call", "id": "fc", "call_id": "w", "arguments": json.dumps(write()["args"])},
            lambda block: json.loads(block["arguments"]),
        ),
        (
            {"type": "tool_call", "id": "w", "name": "write_file", "args": write()["args"]},
            lambda block: block["args"],
        ),
        (
            {"type": "tool_use", "id": "w", "input": {}, "partial_json": json.dumps(write()["args"])},
            lambda block: json.loads(block["partial_json"]),
        ),
    ],
)
def test_calls_in_the_content_are_clipped_alike(content: dict[str, Any], of: Any) -> None:
    others: list[Any] = [
        {"type": "text", "text": LONG},
        "words",
        {"type": "tool_use", "id": "other", "input": {}},
    ]

    shown = clipped(wrote(write(), content=[*others, content]))

    assert shown.content[:3] == others
    assert of(shown.content[3]) == shown.tool_calls[0]["args"]
    assert {**cast("dict[str, Any]", shown.content[3]), **content} == content


def test_calls_in_a_providers_raw_form_are_clipped_alike() -> None:
    raw = {
        "id": "w",
        "type": "function",
        "function": {"name": "write_file", "arguments": json.dumps(write()["args"])},
    }

    shown = clipped(wrote(write(), additional_kwargs={"tool_calls": [raw], "refusal": None}))

    kept: Any = shown.additional_kwargs
    assert json.loads(kept["tool_calls"][0]["function"]["arguments"]) == shown.tool_calls[0]["args"]
    assert kept["refusal"] is None


def test_a_list_of_edits_is_clipped_to_the_beginning_of_the_first() -> None:
    listed = [{"old_string": LONG, "new_string": "y"}, {"old_string": "z", "new_string": LONG}]
    edit = ToolCall(name="edit_file", args={"file_path": "/a.py", "edits": listed}, id="e", type="tool_call")
    message = clipped([*wrote(edit), *tail()], "ai-e")

    assert message.tool_calls[0]["args"]["edits"] == [{"old_string": LONG[:20] + POINTER, "new_string": "y"}]


def test_of_parallel_calls_only_those_that_succeeded_are_clipped() -> None:
    messages = wrote(write("w"), write("v"))
    messages[1] = messages[1].model_copy(update={"status": "error"})

    first, second = (call["args"]["content"] for call in clipped(messages).tool_calls)

    assert first == LONG
    assert second == "x" * 20 + POINTER


def test_only_what_is_recorded_is_clipped() -> None:
    messages = [*wrote(write("one")), *wrote(write("two"))]

    shown = CLIPPING.show(messages, {"ai-two": None}, SPECS)

    assert [new is old for new, old in zip(shown, messages, strict=True)] == [True, True, False, True]
    assert CLIPPING.show(messages, {}, SPECS) is messages


def test_a_recorded_message_with_nothing_long_in_it_is_shown_as_it_is() -> None:
    messages = wrote(write(content="short"))

    assert clipped(messages) is messages[0]


def test_a_result_that_was_moved_shows_how_it_begins_and_where_it_is() -> None:
    text = "\n".join(f"line {number}" for number in range(5000))
    picture = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    content: list[Any] = [{"type": "text", "text": text}, picture]
    messages: list[AnyMessage] = [
        ToolMessage(content, tool_call_id="a", name="execute", id="t1"),
        ToolMessage(text, tool_call_id="b", name="read_file", id="t2"),
        ToolMessage(text, tool_call_id="c", name="execute", id="t3"),
    ]

    first, second, third = CLIPPING.show(messages, {"t1": "/large/a", "t2": "/b.txt", "t3": None}, SPECS)

    assert "/large/a" in first.text
    assert "line 0\n" in first.text
    assert first.content[1] == picture
    assert len(first.text) < 1000
    assert second.text.startswith("line 0\n")
    assert "/b.txt" in second.text
    assert "offset" in second.text
    assert third is messages[2]


def test_a_result_shows_the_place_that_the_record_names_now() -> None:
    messages: list[AnyMessage] = [ToolMessage("text", tool_call_id="a", name="execute", id="t1")]

    assert "/first" in CLIPPING.show(messages, {"t1": "/first"}, SPECS)[0].text
    assert "/second" in CLIPPING.show(messages, {"t1": "/second"}, SPECS)[0].text


@pytest.mark.parametrize("tokens", [1, 8, 16, 17, 400])
def test_any_number_of_tokens_can_be_a_trigger(tokens: int) -> None:
    clipping = Clipping.of({"trigger": ("tokens", tokens), "keep": ("messages", 2)})

    assert batch([*wrote(write()), *tail()], clipping, Load(tokens, 4, None)) == {"ai-w"}


def test_texts_within_lists_are_clipped_and_a_patch_points_to_all_its_files() -> None:
    lines = write("l", tool="edit_lines", edits=[{"op": "insert", "anchor": "0", "text": LONG}], content="")
    text = f"*** Begin Patch\n*** Add File: /a.py\n+{LONG}\n*** Delete File: /b.py\n*** End Patch"
    patch = write("p", tool="apply_patch", patch=text, content="")
    edits, patched = (each["args"] for each in clipped(wrote(lines, patch), "ai-l").tool_calls)

    assert edits["edits"] == [{"op": "insert", "anchor": "0", "text": LONG[:20] + POINTER}]
    assert patched["patch"] == text[:20] + POINTER.replace("/a.py", "/a.py, /b.py")

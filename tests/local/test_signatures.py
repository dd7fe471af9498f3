from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field

from deepagents_local.prompt import guide
from deepagents_local.signatures import (
    Call,
    call_form,
    read_reply,
    signature,
    write_answer,
    write_call,
)
from tests.local.engines import FILE_TOOLS

names = st.text(st.characters(codec="ascii", categories=["L"]), min_size=1).filter(
    lambda n: n != "final_answer"
)
values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=4)


def test_a_signature_is_one_line_with_types_defaults_and_the_first_sentence() -> None:
    def search(text: str, mode: Literal["all", "one"] = "all", limit: int | None = None) -> str:
        """Look for
        text. Then show it."""
        return ""

    assert signature(convert_to_openai_tool(search)) == (
        'search(text: str, mode: "all"|"one" = "all", limit: int = null) - Look for text'
    )


def test_the_file_tools_take_few_tokens() -> None:
    assert len(guide([convert_to_openai_tool(tool) for tool in FILE_TOOLS])) < 1_400


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    title: str = Field(description="A title.")
    colours: list[Colour]


def test_nested_arguments_keep_their_shape_and_lose_their_words() -> None:
    def paint(inner: Inner) -> str:
        """Paint."""
        return ""

    form = call_form(convert_to_openai_tool(paint))

    assert form["properties"]["tool"] == {"const": "paint"}
    inner: dict[str, Any] = form["properties"]["inner"]
    assert inner["properties"]["title"] == {"type": "string"}
    assert inner["properties"]["colours"]["items"]["enum"] == ["red", "blue"]
    assert "$ref" not in str(form)


def test_whole_numbers_have_an_end() -> None:
    def read(limit: Annotated[int, Field(ge=1)], offset: int | None = None) -> str:
        """Read."""
        return ""

    properties = call_form(convert_to_openai_tool(read))["properties"]

    assert properties["limit"] == {"type": "integer", "minimum": 1, "maximum": 10**9}
    assert properties["offset"]["anyOf"][0] == {"type": "integer", "minimum": -(10**9), "maximum": 10**9}


@given(names, st.dictionaries(names, values))
def test_a_call_reads_as_it_was_written_even_with_an_argument_called_tool(
    name: str, args: dict[str, Any]
) -> None:
    assert read_reply(write_call(Call(name, args))) == Call(name, args)
    assert read_reply(write_call(Call(name, {**args, "tool": 1}))) == Call(name, {**args, "tool": 1})


def test_a_file_that_is_written_anew_stands_below_its_call_as_it_is() -> None:
    call = Call("edit_file", {"file_path": "/a.py", "old_string": "a\nb", "new_string": 'say "a"\n\nb'})
    written = write_call(call)

    assert written == '{"tool": "edit_file", "file_path": "/a.py"}\n```\nsay "a"\n\nb\n```'
    assert read_reply(written) == Call("edit_file", {"file_path": "/a.py", "new_string": 'say "a"\n\nb'})
    assert read_reply(written.removesuffix("\n```")) is None


@given(st.text())
def test_an_answer_reads_as_it_was_written(text: str) -> None:
    assert read_reply(write_answer(text)) == text


def test_anything_else_is_neither() -> None:
    assert [read_reply(text) for text in ("", "[]", "{}", '{"tool": "ls"', "hello")] == [None] * 5

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from deepagents_local.reader import Ending, ObjectReader, PlainReader
from deepagents_local.signatures import Call

texts = st.text(st.characters(codec="utf-8"))


@given(texts, st.integers(1, 7), st.booleans())
def test_an_answer_is_shown_as_it_comes_however_it_is_cut_into_pieces(
    text: str, size: int, ascii_only: bool
) -> None:
    written = json.dumps({"final_answer": text}, ensure_ascii=ascii_only)
    reader = ObjectReader()
    shown = "".join(reader.feed(written[at : at + size]) for at in range(0, len(written), size))

    assert shown + reader.end(cut=False).text == text


@given(st.dictionaries(st.sampled_from(["path", "tool_x", "n"]), st.one_of(texts, st.integers())))
def test_a_call_is_nothing_to_show(args: dict[str, str | int]) -> None:
    reader = ObjectReader()

    assert reader.feed(json.dumps({"tool": "ls", **args})) == ""
    assert reader.end(cut=False) == Ending(call=Call("ls", args))


def test_what_is_no_object_is_quoted() -> None:
    reader = ObjectReader()
    reader.feed("I think that")

    assert "'I think that'" in reader.end(cut=False).text


def test_plain_text_says_when_it_was_cut() -> None:
    assert PlainReader().feed("so") == "so"
    assert "cut off" in PlainReader().end(cut=True).text
    assert PlainReader().end(cut=False) == Ending()

"""What was worked out about the beginning of a list is taken up again, where it still is the beginning."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, HumanMessage

from deepagents.middleware._incremental import IncrementalCache


class Reader:
    """Joins texts, and counts the messages that it looked at."""

    def __init__(self) -> None:
        self.known = IncrementalCache[str]()
        self.looked = 0

    def read(self, messages: Sequence[AnyMessage], *about: object) -> str:
        return self.known.of(messages, str, self._go_on, about)

    def _go_on(self, before: str, new: Sequence[AnyMessage]) -> str:
        self.looked += len(new)
        return before + "".join(each.text for each in new)


def said(*texts: str) -> list[AnyMessage]:
    return [HumanMessage(text) for text in texts]


def test_only_what_is_new_is_looked_at() -> None:
    reader, messages = Reader(), said("a", "b")

    assert reader.read(messages) == "ab"
    assert reader.read([*messages, *said("c")]) == "abc"
    assert reader.looked == 3


def test_a_result_holds_for_what_it_is_about() -> None:
    reader, messages, first, second = Reader(), said("a", "b"), {"hidden": 1}, {"hidden": 1}
    reader.read(messages, first)
    reader.read(messages, first)
    assert reader.looked == 2

    reader.read(messages, second)
    assert reader.looked == 4


def test_the_oldest_of_many_conversations_is_forgotten() -> None:
    reader = Reader()
    conversations = [said(str(n)) for n in range(9)]
    for each in conversations:
        reader.read(each)

    reader.read(conversations[8])
    assert reader.looked == 9
    reader.read(conversations[0])
    assert reader.looked == 10


@given(st.lists(st.tuples(st.integers(0, 6), st.lists(st.sampled_from("abc"), max_size=3)), max_size=12))
def test_any_history_is_read_as_if_nothing_were_known(changes: list[tuple[int, list[str]]]) -> None:
    reader = Reader()
    messages: list[AnyMessage] = []
    for cut, texts in changes:
        messages = [*messages[:cut], *said(*texts)]
        assert reader.read(messages) == "".join(each.text for each in messages)

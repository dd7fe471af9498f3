"""The files of an archive: how they are named, and how it goes on when one is large."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.backends.handle import open_backend
from deepagents.middleware.summarization.archive import (
    PART_BYTES,
    Archive,
    Archived,
    archive_path,
    describe_parts,
    part_number,
    part_path,
)
from deepagents.testing import WindowedModel, call
from tests.middleware.archives import Place, in_order, parse

THREAD: Any = {"configurable": {"thread_id": "one"}}
FOLDER = "/conversation_history"
PATH = f"{FOLDER}/one.md"
SMALL = 2_000


@pytest.fixture
def disk(tmp_path: Path) -> Place:
    """A directory in which files of more than 4,000 bytes are not searched."""
    place = Place("disk", tmp_path)
    place.files = open_backend(FilesystemBackend(tmp_path, max_file_size_mb=4_000 / 1024 / 1024)).files(None)
    return place


def said(*numbers: int) -> list[AnyMessage]:
    return [HumanMessage(f"needle {number}. " + "word " * 100, id=str(number)) for number in numbers]


def add(place: Place, messages: list[AnyMessage], since: str | None = None) -> Archived:
    archive = Archive(place.files, PATH, part_bytes=SMALL)
    return place.do(lambda: archive.add(messages, made_at="now", since=since))


def parts(place: Place) -> list[str]:
    return in_order([f"{FOLDER}/{name}" for name in place.names(FOLDER)], PATH)


def read(place: Place) -> list[BaseMessage]:
    return parse("".join(place.bytes(path).decode() for path in parts(place)))


def found(place: Place, text: str) -> list[str]:
    matches = place.do(lambda: place.files.grep(text, FOLDER)).matches
    return [each["path"] for each in matches]


def test_a_large_archive_goes_on_in_further_files(place: Place) -> None:
    done = [add(place, said(number)).path for number in range(8)]

    assert done == [part_path(PATH, 1 + number // 2) for number in range(8)]
    assert parts(place) == [PATH, f"{FOLDER}/one.2.md", f"{FOLDER}/one.3.md", f"{FOLDER}/one.4.md"]
    assert all(len(place.bytes(path)) <= SMALL for path in parts(place))
    assert read(place) == said(*range(8))


def test_each_message_is_found_by_grep_however_long_the_conversation(disk: Place) -> None:
    for number in range(10):
        add(disk, said(number))
    assert [len(found(disk, f"needle {number}.")) for number in range(10)] == [1] * 10


def test_what_is_there_is_known_again_however_long_the_conversation(disk: Place) -> None:
    for number in range(10):
        add(disk, said(number))
    before = parts(disk)

    assert add(disk, said(8, 9)) == Archived(before[-1])

    assert parts(disk) == before
    assert read(disk) == said(*range(10))


def test_a_section_that_is_larger_than_a_part_is_parted_between_messages(disk: Place) -> None:
    add(disk, said(0))

    done = add(disk, said(*range(1, 8)))

    assert done == Archived(parts(disk)[-1])
    assert len(parts(disk)) == 4
    assert read(disk) == said(*range(8))


def test_a_message_larger_than_a_part_has_one_of_its_own(place: Place) -> None:
    huge = HumanMessage("w " * SMALL, id="huge")
    for message in (*said(0), huge, *said(1)):
        add(place, [message])
    assert [len(parse(place.bytes(path).decode())) for path in parts(place)] == [1, 1, 1]
    assert read(place) == [*said(0), huge, *said(1)]


def test_a_message_that_is_too_large_to_search_is_known_again(disk: Place) -> None:
    huge = HumanMessage("w " * 5 * SMALL, id="huge")
    compactions: list[list[AnyMessage]] = [said(0), [huge], [huge], [huge, *said(1)]]
    for messages in compactions:
        add(disk, messages)

    assert [len(parse(disk.bytes(path).decode())) for path in parts(disk)] == [1, 1, 1]


def test_what_was_archived_before_a_crash_is_known_though_another_part_began(disk: Place) -> None:
    lost = add(disk, said(*range(5)))
    assert lost.path != PATH

    add(disk, said(*range(3)), since=PATH)
    add(disk, said(3, 4, 5, 6), since=PATH)

    assert [each.id for each in read(disk)] == [str(number) for number in range(7)]


def test_files_of_others_are_no_parts(place: Place) -> None:
    for number in range(3):
        add(place, said(number))
    other = Archive(place.files, f"{FOLDER}/one.0123abcd.md", part_bytes=SMALL)
    for message in said(*range(3)):
        place.do(partial(other.add, [message], made_at="now"))

    assert place.names(FOLDER) == ["one.0123abcd.2.md", "one.0123abcd.md", "one.2.md", "one.md"]
    assert parts(place) == [PATH, f"{FOLDER}/one.2.md"]


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, PATH),
        (2, f"{FOLDER}/one.2.md, what is older to {PATH}"),
        (3, f"{FOLDER}/one.3.md, what is older to {PATH} and {FOLDER}/one.2.md"),
        (9, f"{FOLDER}/one.9.md, what is older to {PATH} and {FOLDER}/one.2.md to {FOLDER}/one.8.md"),
    ],
)
def test_a_part_is_named_with_those_before_it(number: int, said: str) -> None:
    assert describe_parts(part_path(PATH, number)) == said


def test_a_run_with_a_large_archive_says_where_each_part_is(tmp_path: Path) -> None:
    asked = [call("look_up", topic=f"whale {number}") for number in range(75)]
    model = WindowedModel(*asked, "They are mammals.", window=200_000)
    agent = create_deep_agent(
        model, tools=[look_up], backend=FilesystemBackend(tmp_path), checkpointer=InMemorySaver()
    )

    result = agent.invoke({"messages": "Find out all about whales."}, THREAD)

    folder = tmp_path / FOLDER[1:]
    first, second = folder / "one.md", folder / "one.2.md"
    state = agent.get_state(THREAD).values
    evicted = [each for each in result["messages"] if each.id in state["_summarized_ids"]]
    assert sorted(folder.iterdir()) == [second, first]
    assert first.stat().st_size <= PART_BYTES
    assert parse(first.read_text() + second.read_text()) == evicted
    assert state["_summarization_event"]["file_path"] == f"{FOLDER}/one.2.md"
    summary = model.asked[-1].messages[1].text
    assert f"saved to {FOLDER}/one.2.md, what is older to {PATH}, each message whole" in summary


def look_up(topic: str) -> str:
    """Look something up."""
    return f"{topic}: " + "one more fact. " * 4_600


def test_a_thread_has_one_file_and_each_subagent_one_of_its_own() -> None:
    main = archive_path("/", "one", "session_1", "model:5f0c")
    child = archive_path("/", "one", "session_1", "tools:a1|model:5f0d")
    again = archive_path("/", "one", "session_1", "tools:a1|model:77")
    other = archive_path("/", "one", "session_1", "tools:b2|model:5f0d")

    assert main == archive_path("", "one", "session_2", "") == "/conversation_history/one.md"
    assert re.fullmatch(r"/conversation_history/one\.[0-9a-f]{8}\.md", child)
    assert child == again != other
    assert archive_path("/files/", None, "session_1", "") == "/files/conversation_history/session_1.md"


NASTY = [
    "../../etc/passwd", "a/b", "a b", "a_b", "a-b", "ü", "\ud800", ".", "..", "", "x" * 200, "x" * 201,
    "a\nb", "one.0123abcd", "one", "one.2", "one-0123456789abcdef", "one.2.3",
    "one.0123abcd.2", "one.12345678", "a\0b",
]  # fmt: skip


@settings(max_examples=20)
@given(st.lists(st.one_of(st.text(max_size=12), st.sampled_from(NASTY)), unique=True, max_size=6))
def test_no_two_threads_share_a_file_and_every_name_is_plain(threads: list[str]) -> None:
    known = {*threads, *NASTY} - {""}
    names = [archive_path("/", thread, "session_0", "") for thread in known]
    children = [archive_path("/", thread, "session_0", "tools:1|model:2") for thread in known]
    firsts = [*names, *children]
    files = [part_path(first, number) for first in firsts for number in (1, 2, 10)]

    assert len(set(files)) == len(files) == 6 * len(known)
    for name in names:
        assert re.fullmatch(r"/conversation_history/(?!\.+\.md)[A-Za-z0-9._-]{1,104}", name)
    for file, first in zip(files, [first for first in firsts for _ in range(3)], strict=True):
        assert [each for each in firsts if part_number(file, each)] == [first]


def test_a_uuid_is_its_own_name() -> None:
    thread = "0b9f6a1c-7d1e-4b53-9c55-3f0a8f1f2d6e"
    assert archive_path("/", thread, "", "") == f"/conversation_history/{thread}.md"

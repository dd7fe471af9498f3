"""The archive of what was evicted: whole, once, only ever added to."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import BackendProtocol
from deepagents.middleware.summarization.archive import Archive, Archived
from tests.backends.processes import again_after_each_kill, ask, finish, listen, start, wait_until_ready
from tests.middleware.archives import Place, parse


class Counting(BackendProtocol):
    """A backend that counts what searches of another one find."""

    def __init__(self, inner: BackendProtocol) -> None:
        self.inner = inner
        self.found: list[int] = []
        self.characters = 0

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None, **options: Any) -> Any:
        answer = self.inner.grep(pattern, path, glob, **options)
        self.found.append(len(answer.matches or ()))
        self.characters += sum(len(each["text"]) for each in answer.matches or ())
        return answer

    def ls(self, path: str, **options: Any) -> Any:
        return self.inner.ls(path, **options)

    def append(self, file_path: str, content: str | bytes, **options: Any) -> Any:
        return self.inner.append(file_path, content, **options)


PATH = "/conversation_history/one.md"
KILLS = int(os.environ.get("CRASHES", "6"))
ARCHIVE_FOR_EVER = again_after_each_kill(
    """
from langchain_core.messages import AIMessage, HumanMessage
from deepagents._async import run
from deepagents.backends import FilesystemBackend
from deepagents.backends.handle import open_backend
from deepagents.middleware.summarization.archive import Archive
""",
    """
archive = Archive(open_backend(FilesystemBackend(sys.argv[1])).files(None), "/conversation_history/one.md")
for number in range(1000):
    asked = HumanMessage(f"{number} " + "ask " * 40_000, id=f"h{number}")
    messages = [asked, AIMessage("x", id=f"a{number}")]
    assert run(archive.add(messages, made_at="now")).error is None
""",
)


@pytest.fixture
def disk(tmp_path: Path) -> Place:
    return Place("disk", tmp_path)


def turn(number: int, text: str = "line one\r\nline two\n") -> list[AnyMessage]:
    """Make a turn with a call and its result."""
    call: Any = {"name": "write_file", "args": {"file_path": "/a", "content": text}, "id": f"c{number}"}
    return [
        HumanMessage(f"Request {number}: {text}", id=f"h{number}"),
        AIMessage("", tool_calls=[call], id=f"a{number}"),
        ToolMessage("done", tool_call_id=f"c{number}", name="write_file", status="error", id=f"t{number}"),
    ]


def add(place: Place, messages: list[AnyMessage], made_at: str = "2026-01-02T03:04:05Z") -> Archived:
    return place.do(lambda: Archive(place.files, PATH).add(messages, made_at=made_at))


def text_of(place: Place) -> str:
    return place.bytes(PATH).decode()


def test_a_section_holds_the_messages_whole(place: Place) -> None:
    done = add(place, turn(1, "half \ud800 and `` ``` ticks\r\n" * 50))

    assert done == Archived(PATH)
    text = text_of(place)
    assert text.count("## Summarized at 2026-01-02T03:04:05Z\n") == 1
    assert parse(text) == turn(1, "half \ud800 and `` ``` ticks\r\n" * 50)


def test_sections_follow_each_other_and_earlier_ones_are_never_touched(place: Place) -> None:
    seen = b""
    for number in range(4):
        assert add(place, turn(number)).error is None
        now = place.bytes(PATH)
        assert now.startswith(seen)
        assert len(now) > len(seen)
        seen = now

    assert parse(text_of(place)) == [*turn(0), *turn(1), *turn(2), *turn(3)]


def test_a_run_that_was_resumed_and_cut_elsewhere_adds_only_what_is_new(place: Place) -> None:
    add(place, [*turn(1), *turn(2)])
    before = place.bytes(PATH)

    assert add(place, turn(2)) == Archived(PATH)
    assert place.bytes(PATH) == before
    assert add(place, [*turn(2), *turn(3)]) == Archived(PATH)

    assert parse(text_of(place)) == [*turn(1), *turn(2), *turn(3)]


def test_a_message_that_was_edited_is_new(disk: Place) -> None:
    add(disk, turn(1))

    add(disk, [turn(1)[0], *turn(1, "other words")[1:]])

    assert parse(text_of(disk)) == [*turn(1), turn(1, "other words")[1]]


def test_messages_without_ids_are_told_apart_by_what_stands_before_them(disk: Place) -> None:
    first: list[AnyMessage] = [HumanMessage("Begin"), HumanMessage("Go on")]
    second: list[AnyMessage] = [AIMessage("Done"), HumanMessage("Go on")]
    for messages in (first, second, first, second):
        add(disk, messages)

    assert parse(text_of(disk)) == [*first, *second]


def test_a_message_that_is_quoted_from_another_archive_is_not_taken_for_archived(disk: Place) -> None:
    other = Archive(disk.files, "/conversation_history/two.md")
    disk.do(lambda: other.add(turn(1), made_at="now"))
    add(disk, [HumanMessage(disk.bytes(other.path).decode(), id="quote")])

    add(disk, turn(1))

    assert [each.id for each in parse(text_of(disk))] == ["quote", "h1", "a1", "t1"]


def test_looking_for_what_is_there_costs_one_short_search(disk: Place) -> None:
    for number in range(20):
        add(disk, turn(number, "long " * 2_000))
    watched = Counting(cast(Any, disk.files.backend))
    disk.files = open_backend(watched).files(None)

    add(disk, turn(20))

    assert watched.found == [20]
    assert watched.characters < 20 * 100


def test_equal_words_said_again_are_another_section(disk: Place) -> None:
    add(disk, [HumanMessage("Go on", id="1")])
    add(disk, [HumanMessage("Go on", id="2")])
    assert [each.id for each in parse(text_of(disk))] == ["1", "2"]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_section_that_was_cut_off_is_left_and_added_whole(
    disk: Place, tmp_path: Path, share: float
) -> None:
    add(disk, turn(1))
    first = disk.bytes(PATH)
    add(disk, turn(2))
    file = tmp_path / PATH[1:]
    cut = first + disk.bytes(PATH)[len(first) :][: int(share * (len(disk.bytes(PATH)) - len(first) - 1))]
    file.write_bytes(cut)

    add(disk, turn(2))
    add(disk, turn(3))

    assert disk.bytes(PATH).startswith(cut)
    assert parse(text_of(disk)) == [*turn(1), *turn(2), *turn(3)]


def test_an_archive_that_quotes_itself_is_not_misread(disk: Place) -> None:
    add(disk, turn(1))
    add(disk, [HumanMessage(text_of(disk), id="quote")])
    quoted = parse(text_of(disk))

    assert [each.id for each in quoted] == ["h1", "a1", "t1", "quote"]
    assert add(disk, turn(1)) == Archived(PATH)
    assert parse(text_of(disk)) == quoted


def test_nothing_is_written_for_nothing(place: Place) -> None:
    assert add(place, []) == Archived(None)


def test_words_are_found_by_grep_as_they_were_said(disk: Place) -> None:
    add(disk, [HumanMessage('The <b>"needle"</b> & the haystack', id="1")])
    found = disk.do(lambda: disk.files.grep('<b>"needle"</b> &', PATH))
    assert [each["text"] for each in found.matches] == ['The <b>"needle"</b> & the haystack']


def test_a_backend_that_fails_gives_a_reason_and_no_path(tmp_path: Path) -> None:
    (tmp_path / "conversation_history").write_text("in the way")
    failed = add(Place("disk", tmp_path), turn(1))
    assert failed.path is None
    assert failed.error
    assert str(tmp_path) not in failed.error

    nothing = Place("disk", tmp_path)
    nothing.files = open_backend(BackendProtocol()).files(None)
    assert add(nothing, turn(1)).path is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if sys.platform == "win32" or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_keeps_what_was_archived_before(small_disk: Path) -> None:
    place = Place("disk", small_disk)
    add(place, turn(1))
    before = place.bytes(PATH)

    failed = add(place, turn(2, "x" * 100_000))

    assert (failed.path, "No space left" in (failed.error or "")) == (None, True)
    assert place.bytes(PATH) == before
    assert add(place, turn(3)).path == PATH
    assert parse(text_of(place)) == [*turn(1), *turn(3)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process is not killed like that there")
def test_a_process_killed_at_any_moment_loses_and_doubles_nothing(tmp_path: Path) -> None:
    moment = random.Random(11)
    writers = start(ARCHIVE_FOR_EVER, tmp_path)
    wait_until_ready(writers)
    file = tmp_path / PATH[1:]
    before = b""
    killed = 0
    # On a busy machine most of the first are killed before they write anything.
    while killed < KILLS or (killed < 10 * KILLS and before.count(b"<!-- end of section") < 2):
        killed += 1
        pid = int(ask(writers))
        time.sleep(moment.uniform(0, 0.1))
        os.kill(pid, signal.SIGKILL)
        assert listen(writers) == "gone"
        now = file.read_bytes() if file.exists() else b""
        assert now.startswith(before)
        before = now
        ids = [each.id for each in parse(now.decode())]
        assert ids == [f"{kind}{number}" for number in range(len(ids) // 2) for kind in "ha"]
    finish(writers)
    assert before.count(b"<!-- end of section") >= 2

"""Media of archived messages: in files of their own, named in the archive and in what a summariser reads."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from deepagents import create_deep_agent
from deepagents._async import run
from deepagents.backends import FilesystemBackend
from deepagents.backends.handle import open_backend
from deepagents.backends.protocol import FileUploadResponse
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.summarization.archive import Archive, Archived
from deepagents.middleware.summarization.media import MediaFiles
from deepagents.testing import WindowedModel, call
from tests.middleware.archives import Place, Uploads, parse

PATH = "/conversation_history/one.md"
FOLDER = "/conversation_history/media"
DATA = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
CODED = base64.b64encode(DATA).decode()
NAME = hashlib.sha256(DATA).hexdigest()[:32]
WHEN = "2026-01-02T03:04:05Z"

INLINE: dict[str, Any] = {
    "standard": {"type": "image", "base64": CODED, "mime_type": "image/png"},
    "without a type": {"type": "file", "base64": CODED},
    "data url": {"type": "image", "url": f"data:image/png;base64,{CODED}"},
    "openai": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{CODED}", "detail": "low"}},
    "openai, short": {"type": "image_url", "image_url": f"data:image/png;base64,{CODED}"},
    "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{CODED}"},
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": CODED}},
    "older standard": {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": CODED},
    "google": {"type": "media", "mime_type": "video/mp4", "data": CODED},
    "audio": {"type": "input_audio", "input_audio": {"data": CODED, "format": "wav"}},
    "file": {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{CODED}"},
    },
    "bytes": {"type": "media", "mime_type": "image/png", "data": DATA},
    "inside a result": {"type": "tool_result", "content": [{"type": "image", "base64": CODED}]},
}


class Disk(FilesystemBackend):
    """Files on disk that count uploads, and may take none."""

    takes = True
    uploads = 0

    def upload_files(self, files: list[tuple[str, bytes]], **options: Any) -> list[FileUploadResponse]:
        self.uploads += 1
        if not self.takes:
            return [FileUploadResponse(path, "permission_denied") for path, _ in files]
        return super().upload_files(files, **options)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(root_dir=tmp_path)


@pytest.fixture
def on_disk(disk: Disk, tmp_path: Path) -> Place:
    place = Place("disk", tmp_path)
    place.files = open_backend(disk).files(None)
    return place


def add(place: Place, *messages: AnyMessage) -> Archived:
    return place.do(lambda: Archive(place.files, PATH).add(messages, made_at=WHEN))


def described(messages: Sequence[AnyMessage], path: str = PATH) -> list[AnyMessage]:
    root = path.rpartition("/conversation_history/")[0]
    media = MediaFiles(f"{root}/conversation_history/media", root)
    return list(run(media.name(messages, cast(Any, Uploads()))))


def read_back(place: Place) -> list[Any]:
    return parse(place.bytes(PATH).decode(), place.bytes)


def test_bytes_go_to_a_file_and_come_back(place: Place) -> None:
    messages = [HumanMessage(["Look", block], id=kind) for kind, block in INLINE.items()]

    assert add(place, *messages) == Archived(PATH)

    text = place.bytes(PATH).decode()
    names = place.names(FOLDER)
    assert CODED not in text
    assert {name.partition(".")[0] for name in names} == {NAME}
    assert {name: place.bytes(f"{FOLDER}/{name}") for name in names} == dict.fromkeys(names, DATA)
    assert [name for name in names if f"{FOLDER}/{name}" not in text] == []
    assert read_back(place) == messages


@pytest.mark.parametrize("kind", INLINE)
def test_a_summariser_reads_names_instead_of_bytes(kind: str) -> None:
    message = HumanMessage([{"type": "text", "text": "Look"}, INLINE[kind]], id="1")

    (shown,) = described([message])

    said = json.dumps(shown.model_dump(), default=repr)
    assert CODED not in said
    assert repr(DATA)[2:40] not in said
    assert f"{FOLDER}/{NAME}." in said
    assert shown.content[0] == {"type": "text", "text": "Look"}


def test_a_name_is_a_tag_that_any_model_can_read() -> None:
    messages = [HumanMessage([INLINE["openai"]]), HumanMessage([INLINE["file"]])]
    shown = described(messages)
    assert [each.content for each in shown] == [
        [{"type": "text", "text": f'<image url="{FOLDER}/{NAME}.png" />'}],
        [{"type": "text", "text": f'<file url="{FOLDER}/{NAME}.pdf" />'}],
    ]


def test_results_and_answers_may_hold_media_too(on_disk: Place) -> None:
    tool = ToolMessage([INLINE["standard"]], tool_call_id="1", artifact={"base64": CODED, "list": [b"raw"]})
    spoken = AIMessage("", additional_kwargs={"audio": {"id": "a", "data": CODED, "transcript": "Hi"}})

    add(on_disk, tool, spoken)

    assert CODED not in on_disk.bytes(PATH).decode()
    assert read_back(on_disk) == [tool, spoken]


@pytest.mark.parametrize(
    "content",
    [
        "data:image/png;base64,aGVsbG8=",
        ["plain", {"type": "text", "text": "data:image/png;base64,aGVsbG8="}],
        [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
        [{"type": "image", "url": "http://example.com/a.png"}],
        [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hello"}}],
        [{"type": "image", "file_id": "file-1"}],
    ],
)
def test_without_inline_media_nothing_is_moved_and_the_list_is_the_same(on_disk: Place, content: Any) -> None:
    messages = [HumanMessage(content, id="1")]

    assert described(messages) == messages
    add(on_disk, *messages)

    assert read_back(on_disk) == messages
    assert on_disk.do(lambda: on_disk.files.glob("media/**", "/conversation_history")).matches == []


def test_each_payload_is_sent_once_and_all_together(on_disk: Place, disk: Disk) -> None:
    other = {"type": "image", "base64": base64.b64encode(DATA * 2).decode(), "mime_type": "image/jpeg"}
    first = [HumanMessage([INLINE["standard"], other]), HumanMessage([INLINE["openai"]])]

    add(on_disk, *first)
    assert disk.uploads == 1
    assert len(on_disk.names(FOLDER)) == 2
    add(on_disk, HumanMessage([INLINE["anthropic"]], id="later"))

    assert disk.uploads == 1
    assert read_back(on_disk) == [*first, HumanMessage([INLINE["anthropic"]], id="later")]


def test_half_a_file_that_a_crash_left_is_sent_again(on_disk: Place, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER[1:]
    folder.mkdir(parents=True)
    (folder / f"{NAME}.png").write_bytes(DATA[:10])

    add(on_disk, HumanMessage([INLINE["standard"]]))

    assert read_back(on_disk) == [HumanMessage([INLINE["standard"]])]


@pytest.mark.parametrize("kind", INLINE)
def test_what_cannot_be_saved_stays_in_the_archive_whole(on_disk: Place, disk: Disk, kind: str) -> None:
    disk.takes = False
    message = HumanMessage([INLINE[kind]], id="1")

    archive = Archive(on_disk.files, PATH)
    assert on_disk.do(lambda: archive.add([message], made_at=WHEN)) == Archived(PATH)
    assert len(archive.media.unsaved) == 1
    assert parse(on_disk.bytes(PATH).decode()) == [message]
    (shown,) = on_disk.do(lambda: archive.media.name([message], on_disk.files))
    assert 'error="failed_to_offload"' in str(shown.content)
    assert CODED not in str(shown.content)


def test_a_section_is_known_again_though_its_media_could_not_be_saved(on_disk: Place, disk: Disk) -> None:
    message = HumanMessage([INLINE["standard"]], id="1")
    disk.takes = False
    add(on_disk, message)
    before = on_disk.bytes(PATH)

    disk.takes = True
    add(on_disk, message)

    assert on_disk.bytes(PATH) == before


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": "aGVs\nbG8=", "mime_type": "image/png"},
        {"type": "image", "base64": "_-_-", "mime_type": "image/png"},
        {"type": "image", "base64": "aGVsbG9=", "mime_type": "image/png"},
        {"type": "image", "base64": "no base64 at all \ud800", "mime_type": "image/png"},
        {"type": "image", "url": "data:image/svg+xml,%3Csvg%20%2F%3e"},
        {"type": "image", "url": "data:image/svg+xml;charset=utf-8,<svg xmlns='ü'/>"},
        {"type": "image", "url": "DATA:;base64,aGVsbG8="},
    ],
)
def test_an_unusual_spelling_comes_back_as_it_was(on_disk: Place, block: dict[str, Any]) -> None:
    message = HumanMessage([block], id="1")
    assert add(on_disk, message).error is None
    assert read_back(on_disk) == [message]


def test_a_picture_that_moved_out_of_its_message_earlier_is_named_too() -> None:
    digest = hashlib.sha256(DATA).hexdigest()
    messages = [
        HumanMessage([{"type": "image", "mime_type": "image/png", "deepagents_blob": digest}]),
        ToolMessage([{"type": "file", "deepagents_blob": digest}], tool_call_id="1", name="read_file"),
    ]
    shown = described(messages, "/kept/conversation_history/one.md")

    assert [each.content for each in shown] == [
        [{"type": "text", "text": f'<image url="/kept/blobs/{digest}" />'}],
        [{"type": "text", "text": f'<file url="/kept/blobs/{digest}" />'}],
    ]


def test_the_summarizer_of_an_agent_is_told_where_a_picture_lies(disk: Disk) -> None:
    (disk.cwd / "a.png").write_bytes(DATA)
    (disk.cwd / "log.txt").write_text("one more fact\n" * 300)
    steps = [call("read_file", file_path="/log.txt") for _ in range(15)]
    model = WindowedModel(call("read_file", file_path="/a.png"), *steps, "Done.", window=12_000)
    files = FilesystemMiddleware(backend=disk, offload_binary_content=True)

    create_deep_agent(model, backend=disk, middleware=[files]).invoke({"messages": "Look"})

    said = model.summaries[0].last
    assert f'<image url="/blobs/{hashlib.sha256(DATA).hexdigest()}" />' in said
    assert CODED not in said


@pytest.mark.parametrize("digest", ['" /><script', "../../etc/passwd", 7, None, "a" * 63])
def test_what_only_looks_like_a_picture_that_moved_out_is_not_named(digest: Any) -> None:
    messages = [HumanMessage([{"type": "image", "deepagents_blob": digest}])]
    assert described(messages) == messages

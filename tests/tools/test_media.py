"""read_file shows media as content blocks of the type that they are, whatever their name is."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.backends.protocol import FileData, ReadResult
from deepagents.backends.utils import create_file_data
from deepagents.testing import ScriptedModel, call
from deepagents.tools._media import MAX_INLINE_MEDIA_BYTES
from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 12
MP4 = b"\0\0\0\x18ftypmp42\0\0\0\0"
OFFICE = "application/vnd.openxmlformats-officedocument"


NAMED = [
    ("/a.png", PNG, "image", "image/png"),
    ("/a.jpg", JPEG, "image", "image/jpeg"),
    ("/a.gif", b"GIF89a\0\xff", "image", "image/gif"),
    ("/a.webp", b"RIFF\0\0\0\0WEBPVP8 ", "image", "image/webp"),
    ("/a.bmp", b"BM\0\xff\0\0", "image", "image/bmp"),
    ("/a.pdf", b"%PDF-1.7\n", "file", "application/pdf"),
    ("/a.mp3", b"ID3\x04\0", "audio", "audio/mpeg"),
    ("/a.wav", b"RIFF\0\0\0\0WAVEfmt ", "audio", "audio/wav"),
    ("/a.m4a", MP4, "audio", "audio/mp4"),
    ("/a.docx", b"PK\x03\x04\0", "file", f"{OFFICE}.wordprocessingml.document"),
]


def test_the_name_says_the_type(bench: Bench) -> None:
    for name, content, _, _ in NAMED:
        bench.place_bytes(name, content)
    shown = bench.run(*(call("read_file", file_path=name) for name, *_ in NAMED))

    assert [(read.content, read.additional_kwargs["read_file_media_type"]) for read in shown] == [
        ([{"type": kind, "base64": base64.b64encode(content).decode(), "mime_type": media_type}], media_type)
        for _, content, kind, media_type in NAMED
    ]


MISNAMED = [
    ("/photo", JPEG, "image/jpeg"),
    ("/paper.download", b"%PDF-1.7\n\xff", "application/pdf"),
    ("/data.docx.bak", b"PK\x03\x04\0\xff", "application/zip"),
    ("/photo.png", JPEG, "image/jpeg"),
    ("/song.mp3", PNG, "image/png"),
]


def test_the_content_says_it_where_the_name_says_nothing_or_lies(bench: Bench) -> None:
    for name, content, _ in MISNAMED:
        bench.place_bytes(name, content)
    shown = bench.run(*(call("read_file", file_path=name) for name, *_ in MISNAMED))

    assert [read.additional_kwargs["read_file_media_type"] for read in shown] == [
        media_type for *_, media_type in MISNAMED
    ]


def test_text_that_only_its_name_calls_media_is_shown_as_text(bench: Bench) -> None:
    bench.place("/logo.png", "<html>\n404\n</html>\n")

    assert (
        bench.use("read_file", file_path="/logo.png").text == "     1\t<html>\n     2\t404\n     3\t</html>"
    )
    assert "Lines 2-2 of 3" in bench.use("read_file", file_path="/logo.png", offset=1, limit=1).text
    assert code_of(bench.use("read_file", file_path="/logo.png", offset=9)) == "invalid_argument"


def test_an_empty_picture_is_said_to_be_empty(bench: Bench) -> None:
    bench.place_bytes("/a.png", b"")

    assert "empty contents" in bench.use("read_file", file_path="/a.png").text


def test_media_too_large_to_show_are_an_error_that_says_the_limit(bench: Bench) -> None:
    bench.place_bytes("/a.png", PNG + b"\0" * MAX_INLINE_MEDIA_BYTES)
    refused = bench.use("read_file", file_path="/a.png")

    assert code_of(refused) == "too_large"
    assert "10.5 MB" in refused.text
    bench.place_bytes("/a.png", PNG + b"\0" * (MAX_INLINE_MEDIA_BYTES - len(PNG)))
    assert bench.use("read_file", file_path="/a.png").status == "success"


OLD_PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(100)).decode()
OLD_PDF = base64.b64encode(b"%PDF-1.7\n" + bytes(range(200))).decode()


def shown(call_mode: CallMode, path: str, **options: Any) -> Any:
    files = options.pop("files", None)
    with ScriptedModel(call("read_file", file_path=path), "Done.") as model:
        agent = create_deep_agent(model, **options)
        result = call_mode.invoke(agent, {"messages": "Go", **({"files": files} if files else {})})
    return next(message for message in result["messages"] if message.type == "tool").content


@pytest.mark.parametrize(
    ("path", "record", "content"),
    [
        ("/p.png", create_file_data(OLD_PNG), OLD_PNG),
        ("/d.pdf", create_file_data(OLD_PDF), OLD_PDF),
        ("/p.png", {"content": [OLD_PNG]}, OLD_PNG),
    ],
    ids=["a picture", "a document", "a picture in lines"],
)
def test_an_older_record_is_shown_as_what_it_is(
    call_mode: CallMode, path: str, record: Any, content: str
) -> None:
    (block,) = shown(call_mode, path, files={path: record})

    assert block["base64"] == content


def test_a_backend_that_answers_base64_as_text_is_understood(call_mode: CallMode) -> None:
    class Plain(StateBackend):
        def read(self, file_path: str, offset: int = 0, limit: int = 2000, **options: Any) -> ReadResult:
            return ReadResult(file_data=FileData(content=OLD_PNG, encoding="utf-8"))

    (block,) = shown(call_mode, "/p.png", backend=Plain())
    assert block["base64"] == OLD_PNG


def test_text_that_only_looks_a_little_like_base64_stays_text(call_mode: CallMode) -> None:
    assert "QUJD" in shown(call_mode, "/p.png", files={"/p.png": create_file_data("QUJD")})

"""Names and bytes tell text from media."""

from __future__ import annotations

import base64

import pytest

from deepagents.backends.kinds import BINARY_HEAD, as_content, file_kind, looks_binary


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a.png", "image"),
        ("/a.JPG", "image"),
        ("/a.mkv", "video"),
        ("/a.mp3", "audio"),
        ("/a.pdf", "file"),
        ("/a.py", "text"),
        ("/a.tar.gz", "text"),
        ("/Makefile", "text"),
        ("/png", "text"),
        ("/.png", "image"),
        ("/a.png/b", "text"),
    ],
)
def test_the_ending_of_a_name_says_the_kind(path: str, kind: str) -> None:
    assert file_kind(path) == kind


@pytest.mark.parametrize(
    ("data", "binary"),
    [(b"", False), ("ü\r\n\u2028".encode(), False), (b"a\0b", True), (b"\xff\xfe", True), (b"\xc3", True)],
)
def test_bytes_that_are_no_text_are_seen(data: bytes, binary: bool) -> None:
    assert looks_binary(data) is binary


def test_a_zero_byte_deep_in_a_text_does_not_matter() -> None:
    assert not looks_binary(b"a" * BINARY_HEAD + b"\0")


def test_text_stays_text_and_the_rest_becomes_base64() -> None:
    assert as_content("/a.txt", "ü".encode()) == ("ü", "utf-8")
    assert as_content("/a.bin", b"\0") == (base64.b64encode(b"\0").decode(), "base64")
    assert as_content("/a.png", b"text") == (base64.b64encode(b"text").decode(), "base64")

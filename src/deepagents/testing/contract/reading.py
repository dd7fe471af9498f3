"""Check what reading and listing promise."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import pytest

from deepagents.testing.contract.base import Called, ContractBase

TEXTS = {
    "one line": "one\n",
    "no newline at the end": "one\ntwo",
    "crlf": "one\r\ntwo\r\n",
    "cr": "one\rtwo\r",
    "all endings": "one\r\ntwo\rthree\nfour",
    "form feed and others": "one\x0ctwo\u2028three\x85four\x0bfive\n",
    "blank lines": "\n\none\n\n",
    "unicode": "naïve 日本語 🙂\n",
    "byte order mark": "\ufeffone\n",
    "long line": "x" * 20_000 + "\n",
    "tabs and trailing blanks": "\tone  \n  two\t\n",
}
BLANK = {"empty": "", "newlines": "\n\n", "blanks": "  \t ", "blank lines": " \r\n\t\n"}
WINDOWS = [
    # offset, limit, text, start, end, next offset
    (0, 2, "1\n2\n", 1, 2, 2),
    (0, 5, "1\n2\n3\n4\n5", 1, 5, None),
    (0, 99, "1\n2\n3\n4\n5", 1, 5, None),
    (4, 1, "5", 5, 5, None),
    (3, 1, "4\n", 4, 4, 4),
    (2, 99, "3\n4\n5", 3, 5, None),
    (-3, 1, "1\n", 1, 1, 1),
]
PNG = b"\x89PNG\r\n\x1a\n\x00\x00"


def lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def whole_lines(page: Any) -> str:
    """Return a page with the newline of its last line, which a backend may leave out where more follows."""
    text = page.file_data["content"]
    lines = page.end_line - page.start_line + 1
    return f"{text}\n" if page.next_offset is not None and text.count("\n") < lines else text


class ReadingContract(ContractBase):
    """`read` and `ls`."""

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    def test_a_text_reads_back_with_plain_newlines_and_its_bytes_are_kept(
        self, files: Called, text: str
    ) -> None:
        files.wrote("/a.txt", text)

        found = files.read("/a.txt")

        assert found.error is None
        assert found.code is None
        assert found.file_data["content"] == lf(text)
        assert found.file_data.get("encoding", "utf-8") == "utf-8"
        assert files.bytes("/a.txt") == text.encode()

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
    def test_lines_are_counted_by_newlines_alone(self, files: Called, text: str) -> None:
        files.wrote("/a.txt", text)
        lines = lf(text).removesuffix("\n").count("\n") + 1

        found = files.read("/a.txt")

        assert (found.start_line, found.end_line, found.next_offset) == (1, lines, None)
        assert found.total_lines in (lines, None)

    @pytest.mark.parametrize("text", BLANK.values(), ids=BLANK.keys())
    @pytest.mark.parametrize("limit", [0, 10])
    def test_a_blank_file_reads_as_it_is(self, files: Called, text: str, limit: int) -> None:
        files.wrote("/a.txt", text)

        found = files.read("/a.txt", 5, limit)

        assert found.error is None
        assert found.file_data["content"] == text
        assert found.start_line is None
        assert not found.no_lines_requested

    @pytest.mark.parametrize(("offset", "limit", "text", "start", "end", "next_offset"), WINDOWS)
    def test_a_window_says_where_it_is(
        self, files: Called, offset: int, limit: int, text: str, start: int, end: int, next_offset: int | None
    ) -> None:
        files.wrote("/a.txt", "1\r\n2\n3\r4\n5")

        found = files.read("/a.txt", offset, limit)

        assert found.error is None
        assert whole_lines(found) == text
        assert (found.start_line, found.end_line, found.next_offset) == (start, end, next_offset)
        assert found.total_lines in (5, None)

    def test_pages_put_together_are_the_file(self, files: Called) -> None:
        text = "".join(f"line {number}\n" for number in range(25))
        files.wrote("/a.txt", text)

        pages: list[str] = []
        offset = 0
        while offset is not None:
            page = files.read("/a.txt", offset, 10)
            pages.append(whole_lines(page))
            offset = page.next_offset

        assert "".join(pages) == text
        assert len(pages) == 3

    @pytest.mark.parametrize(("offset", "limit"), [(0, 0), (0, -1), (99, 0), (-1, 0), (-5, -5)])
    def test_no_lines_asked_no_lines_given(self, files: Called, offset: int, limit: int) -> None:
        files.wrote("/a.txt", "one\n")

        found = files.read("/a.txt", offset, limit)

        assert found.error is None
        assert found.no_lines_requested
        assert found.file_data["content"] == ""

    def test_a_window_past_the_end_is_an_error(self, files: Called) -> None:
        files.wrote("/a.txt", "1\n2\n3\n")

        found = files.read("/a.txt", 3, 1)

        assert found.code == "invalid_argument"
        assert "Line offset 3 exceeds file length (3 lines)" in found.error

    def test_a_missing_file_is_an_error(self, files: Called) -> None:
        found = files.read("/nowhere/a.txt")

        assert found.code == "file_not_found"
        assert "'/nowhere/a.txt' not found" in found.error
        assert found.file_data is None

    def test_a_directory_cannot_be_read(self, files: Called) -> None:
        files.wrote("/a/b.txt", "b")
        assert files.read("/a").code in ("is_directory", "file_not_found")
        assert files.read("/").code in ("is_directory", "file_not_found")

    @pytest.mark.parametrize("path", ["/a.png", "/a.PNG", "/a.pdf", "/a.mp4", "/a.wav"])
    @pytest.mark.parametrize("content", [PNG, b"looks like text\n"])
    def test_media_come_whole_as_base64(self, files: Called, path: str, content: bytes) -> None:
        assert files.upload((path, content))[0].error is None

        found = files.read(path, 7, 1)

        assert found.error is None
        assert found.file_data["encoding"] == "base64"
        assert base64.b64decode(found.file_data["content"]) == content
        assert found.start_line is None

    @pytest.mark.parametrize("path", ["/a.dat", "/a.txt", "/a"])
    @pytest.mark.parametrize("content", [b"\x00\x01", b"text\x00more", b"caf\xe9", b"\xff\xfea\x00"])
    def test_bytes_that_are_no_text_come_whole_as_base64(
        self, files: Called, path: str, content: bytes
    ) -> None:
        assert files.upload((path, content))[0].error is None

        found = files.read(path)

        assert found.error is None
        assert found.file_data["encoding"] == "base64"
        assert base64.b64decode(found.file_data["content"]) == content

    def test_text_that_is_no_text_reads_as_bytes(self, files: Called) -> None:
        files.wrote("/a.txt", "one\x00two\n")

        found = files.read("/a.txt")

        assert found.file_data["encoding"] == "base64"
        assert base64.b64decode(found.file_data["content"]) == files.bytes("/a.txt") == b"one\x00two\n"

    def test_a_directory_lists_what_is_directly_in_it(self, files: Called) -> None:
        for path in ("/b.txt", "/a/x.txt", "/a/y/z.txt", "/a.txt", "/.hidden", "/ab/q"):
            files.wrote(path, "text")

        assert files.listed("/") == [
            "/.hidden",
            "/a.txt",
            "/a/",
            "/ab/",
            "/b.txt",
        ]
        assert files.listed("/a") == ["/a/x.txt", "/a/y/"]
        assert files.listed("/a/") == ["/a/x.txt", "/a/y/"]

    def test_an_entry_has_a_kind_a_size_in_bytes_and_a_time(self, files: Called) -> None:
        files.wrote("/a/ü.txt", "ü🙂\n")
        assert files.upload(("/a/b.bin", b"\x00\xff\xfe"))[0].error is None

        binary, text = files.ls("/a").entries
        (directory,) = files.ls("/").entries

        assert (text["is_dir"], text["size"]) == (False, 7)
        assert (binary["is_dir"], binary["size"]) == (False, 3)
        assert datetime.fromisoformat(text["modified_at"]).tzinfo is not None
        assert directory["is_dir"] is True

    def test_nothing_lists_as_nothing(self, files: Called) -> None:
        assert files.ls("/").entries == []
        nowhere = files.ls("/nowhere")
        assert nowhere.entries == [] or nowhere.code == "file_not_found"

    def test_a_file_is_no_directory(self, files: Called) -> None:
        files.wrote("/a.txt", "a")
        assert files.ls("/a.txt").code == "not_a_directory"

"""Check what reading and listing promise."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

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
WINDOWS = {
    # offset, limit: text, start, end, next offset
    (0, 2): ("1\n2\n", 1, 2, 2),
    (0, 5): ("1\n2\n3\n4\n5", 1, 5, None),
    (0, 99): ("1\n2\n3\n4\n5", 1, 5, None),
    (4, 1): ("5", 5, 5, None),
    (3, 1): ("4\n", 4, 4, 4),
    (2, 99): ("3\n4\n5", 3, 5, None),
    (-3, 1): ("1\n", 1, 1, 1),
}
MEDIA = {"real": b"\x89PNG\r\n\x1a\n\x00\x00", "text": b"looks like text\n"}
NO_TEXT = [b"\x00\x01", b"text\x00more", b"caf\xe9", b"\xff\xfea\x00"]


def lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_encoded(page: Any) -> tuple[str | None, bytes | None]:
    """Return how a file was encoded, and its bytes."""
    if page.error is not None or page.file_data.get("encoding") != "base64":
        return page.error, None
    return "base64", base64.b64decode(page.file_data["content"])


def whole_lines(page: Any) -> str:
    """Return a page with the newline of its last line, which a backend may leave out where more follows."""
    text = page.file_data["content"]
    lines = page.end_line - page.start_line + 1
    return f"{text}\n" if page.next_offset is not None and text.count("\n") < lines else text


class ReadingContract(ContractBase):
    """`read` and `ls`."""

    def test_a_text_reads_back_with_plain_newlines_and_its_bytes_are_kept(self, files: Called) -> None:
        for name, text in TEXTS.items():
            files.write_text(f"/{name}.txt", text)

        found = {name: files.read(f"/{name}.txt") for name in TEXTS}

        assert {name: (page.error, page.code) for name, page in found.items()} == dict.fromkeys(
            TEXTS, (None, None)
        )
        assert {name: page.file_data["content"] for name, page in found.items()} == {
            name: lf(text) for name, text in TEXTS.items()
        }
        assert {page.file_data.get("encoding", "utf-8") for page in found.values()} == {"utf-8"}
        assert files.download_all(*(f"/{name}.txt" for name in TEXTS)) == {
            f"/{name}.txt": text.encode() for name, text in TEXTS.items()
        }

    def test_lines_are_counted_by_newlines_alone(self, files: Called) -> None:
        files.upload_all({f"/{name}.txt": text.encode() for name, text in TEXTS.items()})
        lines = {name: lf(text).removesuffix("\n").count("\n") + 1 for name, text in TEXTS.items()}

        found = {name: files.read(f"/{name}.txt") for name in TEXTS}

        assert {name: (page.start_line, page.end_line, page.next_offset) for name, page in found.items()} == {
            name: (1, count, None) for name, count in lines.items()
        }
        assert {name: found[name].total_lines or count for name, count in lines.items()} == lines

    def test_a_blank_file_reads_as_it_is(self, files: Called) -> None:
        for name, text in BLANK.items():
            files.write_text(f"/{name}", text)

        found = {(name, limit): files.read(f"/{name}", 5, limit) for name in BLANK for limit in (0, 10)}

        assert {case: page.error for case, page in found.items()} == dict.fromkeys(found)
        assert {
            case: (page.file_data["content"], page.start_line, page.no_lines_requested)
            for case, page in found.items()
        } == {(name, limit): (BLANK[name], None, False) for name, limit in found}

    def test_a_window_says_where_it_is(self, files: Called) -> None:
        files.write_text("/a.txt", "1\r\n2\n3\r4\n5")

        found = {window: files.read("/a.txt", *window) for window in WINDOWS}

        assert {window: page.error for window, page in found.items()} == dict.fromkeys(WINDOWS)
        assert {
            window: (whole_lines(page), page.start_line, page.end_line, page.next_offset)
            for window, page in found.items()
        } == WINDOWS
        assert {page.total_lines for page in found.values()} <= {5, None}

    def test_pages_put_together_are_the_file(self, files: Called) -> None:
        text = "".join(f"line {number}\n" for number in range(25))
        files.write_text("/a.txt", text)

        pages: list[str] = []
        offset = 0
        while offset is not None:
            page = files.read("/a.txt", offset, 10)
            pages.append(whole_lines(page))
            offset = page.next_offset

        assert "".join(pages) == text
        assert len(pages) == 3

    def test_no_lines_asked_no_lines_given(self, files: Called) -> None:
        files.write_text("/a.txt", "one\n")
        windows = [(0, 0), (0, -1), (99, 0), (-1, 0), (-5, -5)]

        found = {window: files.read("/a.txt", *window) for window in windows}

        assert {window: page.error for window, page in found.items()} == dict.fromkeys(windows)
        assert {
            window: (page.no_lines_requested, page.file_data["content"]) for window, page in found.items()
        } == dict.fromkeys(windows, (True, ""))

    def test_a_window_past_the_end_is_an_error(self, files: Called) -> None:
        files.write_text("/a.txt", "1\n2\n3\n")

        found = files.read("/a.txt", 3, 1)

        assert found.code == "invalid_argument"
        assert "Line offset 3 exceeds file length (3 lines)" in found.error

    def test_a_missing_file_is_an_error(self, files: Called) -> None:
        found = files.read("/nowhere/a.txt")

        assert found.code == "file_not_found"
        assert "'/nowhere/a.txt' not found" in found.error
        assert found.file_data is None

    def test_a_directory_cannot_be_read(self, files: Called) -> None:
        files.write_text("/a/b.txt", "b")
        assert files.read("/a").code in ("is_directory", "file_not_found")
        assert files.read("/").code in ("is_directory", "file_not_found")

    def test_media_come_whole_as_base64(self, files: Called) -> None:
        names = ("a.png", "a.PNG", "a.pdf", "a.mp4", "a.wav")
        media = {f"/{kind}/{name}": content for kind, content in MEDIA.items() for name in names}
        files.upload_all(media)

        found = {path: files.read(path, 7, 1) for path in media}

        assert {path: read_encoded(page) for path, page in found.items()} == {
            path: ("base64", content) for path, content in media.items()
        }
        assert {page.start_line for page in found.values()} == {None}

    def test_bytes_that_are_no_text_come_whole_as_base64(self, files: Called) -> None:
        binary = {
            f"/{number}{suffix}": content
            for number, content in enumerate(NO_TEXT)
            for suffix in (".dat", ".txt", "")
        }
        files.upload_all(binary)

        found = {path: read_encoded(files.read(path)) for path in binary}

        assert found == {path: ("base64", content) for path, content in binary.items()}

    def test_text_that_is_no_text_reads_as_bytes(self, files: Called) -> None:
        files.write_text("/a.txt", "one\x00two\n")

        found = files.read("/a.txt")

        assert found.file_data["encoding"] == "base64"
        assert base64.b64decode(found.file_data["content"]) == files.read_bytes("/a.txt") == b"one\x00two\n"

    def test_a_directory_lists_what_is_directly_in_it(self, files: Called) -> None:
        for path in ("/b.txt", "/a/x.txt", "/a/y/z.txt", "/a.txt", "/.hidden", "/ab/q"):
            files.write_text(path, "text")

        assert files.list_paths("/") == [
            "/.hidden",
            "/a.txt",
            "/a/",
            "/ab/",
            "/b.txt",
        ]
        assert files.list_paths("/a") == ["/a/x.txt", "/a/y/"]
        assert files.list_paths("/a/") == ["/a/x.txt", "/a/y/"]

    def test_an_entry_has_a_kind_a_size_in_bytes_and_a_time(self, files: Called) -> None:
        files.write_text("/a/ü.txt", "ü🙂\n")
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
        files.write_text("/a.txt", "a")
        assert files.ls("/a.txt").code == "not_a_directory"

"""Check what adding to the end of a file promises, where a backend has `append`."""

from __future__ import annotations

import pytest

from deepagents.testing.contract.allowing import RULE
from deepagents.testing.contract.base import Called, ContractBase


class AppendingContract(ContractBase):
    """`append`."""

    def test_a_file_that_is_not_there_is_made(self, files: Called) -> None:
        files.has("append")

        done = files.append("/a/b/c.txt", "one\n")

        assert (done.error, done.code, done.path) == (None, None, "/a/b/c.txt")
        assert files.text("/a/b/c.txt") == "one\n"

    @pytest.mark.parametrize(
        "kept", [b"a\r\nb\r\n", b"a\n", b"no end", b"", "ü🙂".encode(), b"a\0b", b"\xff\xfe"]
    )
    @pytest.mark.parametrize(
        "added", ["x\ny\n", "\r\n", "x\ry", "ü🙂\u2028", "a\0b", "", b"\xff\0\xfe", b"text\n"]
    )
    @pytest.mark.parametrize("path", ["/a.txt", "/a.png"])
    def test_what_is_added_stands_after_what_was_there(
        self, files: Called, path: str, kept: bytes, added: str | bytes
    ) -> None:
        files.has("append")
        files.upload((path, kept))

        assert files.append(path, added).error is None

        assert files.bytes(path) == kept + (added.encode() if isinstance(added, str) else added)

    def test_additions_add_up(self, files: Called) -> None:
        files.has("append")
        for number in range(5):
            assert files.append("/a.txt", f"{number}\n").error is None
        assert files.text("/a.txt") == "0\n1\n2\n3\n4\n"
        assert [each["line"] for each in files.grep("3", "/a.txt").matches] == [4]

    def test_a_long_addition_lands_whole(self, files: Called) -> None:
        files.has("append")
        long = "ü line of text that is long enough\n" * 20_000
        files.wrote("/a/log.txt", "begin\n")

        assert files.append("/a/log.txt", long).error is None

        assert files.bytes("/a/log.txt").decode() == f"begin\n{long}"

    def test_an_addition_makes_a_new_version(self, files: Called) -> None:
        files.has("append")
        files.needs("versions")
        stale = files.wrote("/a.txt", "one\n").version

        version = files.append("/a.txt", "two\n").version

        assert version not in (None, stale)
        assert files.read("/a.txt").version == version
        assert files.write("/a.txt", "mine\n", expected_version=stale).code == "stale_version"

    def test_half_characters_are_refused(self, files: Called) -> None:
        files.has("append")
        files.wrote("/a.txt", "one\n")
        assert files.append("/a.txt", "\ud800").code == "invalid_encoding"
        assert files.bytes("/a.txt") == b"one\n"

    @pytest.mark.parametrize("path", ["/", "/d", "/../x", "~/x"])
    def test_only_a_file_inside_can_be_added_to(self, files: Called, path: str) -> None:
        files.has("append")
        files.wrote("/d/x.txt", "x")
        done = files.append(path, "y")
        if path != "/d" or done.error:
            assert done.code in ("is_directory", "invalid_path")

    def test_a_file_that_is_not_allowed_is_not_added_to(self, files: Called) -> None:
        files.has("append")
        files.takes("append", "allowed")
        files.upload(("/d/secret/x.txt", b"word\n"))

        for path in ("/d/secret/x.txt", "/d/secret/new.txt"):
            assert files.append(path, "more", allowed=RULE).code == "permission_denied"
        assert files.append("/d/open.txt", "more", allowed=RULE).error is None

        assert files.bytes("/d/secret/x.txt") == b"word\n"
        assert files.read("/d/secret/new.txt").code == "file_not_found"

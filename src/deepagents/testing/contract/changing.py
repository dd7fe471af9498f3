"""Check what writing, appending, deleting, uploading and downloading promise."""

from __future__ import annotations

from deepagents.testing.contract.allowing import RULE
from deepagents.testing.contract.base import Called, ContractBase

BEFORE = [b"a\r\nb\r\n", "no end ü🙂".encode(), b"", b"a\0b", b"\xff\xfe\r"]
ADDED = ["x\ny\n", "\r\nx\rü🙂\u2028", "a\0b", "", b"\xff\0\xfe", b"text\n"]


class ChangingContract(ContractBase):
    """`write`, `delete`, `upload_files`, `download_files` and versions."""

    def test_a_file_is_created_with_its_directories(self, files: Called) -> None:
        done = files.write("/a/b/c.txt", "one\n")

        assert done.error is None
        assert done.code is None
        assert done.path == "/a/b/c.txt"
        assert files.read_text("/a/b/c.txt") == "one\n"

    def test_a_file_is_replaced_whole(self, files: Called) -> None:
        files.write_text("/a.txt", "one\ntwo\nthree\n")
        files.write_text("/a.txt", "x")
        assert files.read_bytes("/a.txt") == b"x"

    def test_a_replaced_file_keeps_consistent_crlf(self, files: Called) -> None:
        cases = {
            "/crlf": (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
            "/mixed": (b"a\r\nb\n", "x\ny\n", b"x\ny\n"),
            "/lf": (b"a\n", "x\r\n", b"x\r\n"),
            "/crlf and then cr": (b"a\r\n", "x\ry\n", b"x\ry\n"),
            "/empty": (b"", "x\n", b"x\n"),
        }
        files.upload_all({path: old for path, (old, _, _) in cases.items()})

        for path, (_, new, _) in cases.items():
            files.write_text(path, new)

        assert files.download_all(*cases) == {path: kept for path, (_, _, kept) in cases.items()}

    def test_a_binary_file_may_be_replaced_by_text(self, files: Called) -> None:
        assert files.upload(("/a.dat", b"\x00\xff"))[0].error is None
        files.write_text("/a.dat", "text\n")
        assert files.read_text("/a.dat") == "text\n"

    def test_the_root_is_no_file(self, files: Called) -> None:
        done = files.write("/", "x")
        assert done.error
        assert done.code in ("invalid_path", "is_directory")

    def test_a_version_names_what_is_there(self, files: Called) -> None:
        files.needs("versions")
        first = files.write_text("/a.txt", "one\n").version
        assert first
        assert files.read("/a.txt").version == first

        second = files.edit("/a.txt", "one", "two").version
        assert second not in (None, first)
        assert files.read("/a.txt").version == second

    def test_a_change_to_the_version_expected_lands(self, files: Called) -> None:
        files.needs("versions")
        version = files.write_text("/a.txt", "one\n").version

        version = files.write("/a.txt", "two\n", expected_version=version).version
        done = files.edit("/a.txt", "two", "three", expected_version=version)

        assert done.error is None
        assert files.read_text("/a.txt") == "three\n"

    def test_a_change_to_a_stale_version_is_refused(self, files: Called) -> None:
        files.needs("versions")
        stale = files.write_text("/a.txt", "one\n").version
        files.write_text("/a.txt", "somebody else's\n")

        written = files.write("/a.txt", "mine\n", expected_version=stale)
        edited = files.edit("/a.txt", "else", "x", expected_version=stale)

        assert written.code == edited.code == "stale_version"
        assert "changed since" in written.error
        assert files.read_text("/a.txt") == "somebody else's\n"

    def test_an_upload_makes_a_version_stale(self, files: Called) -> None:
        files.needs("versions")
        files.write_text("/a.txt", "one\n")
        read = files.read("/a.txt").version
        files.upload(("/a.txt", b"somebody else's\n"))

        assert files.write("/a.txt", "mine\n", expected_version=read).code == "stale_version"

        assert files.read_text("/a.txt") == "somebody else's\n"

    def test_a_version_of_bytes_guards_them(self, files: Called) -> None:
        files.needs("versions")
        files.upload(("/a.bin", b"\x00\x01"))
        read = files.read("/a.bin").version
        assert read
        assert files.write("/a.bin", "one\n", expected_version=read).error is None
        assert files.write("/a.bin", "two\n", expected_version=read).code == "stale_version"

    def test_a_refused_change_leaves_no_directories(self, files: Called) -> None:
        files.needs("versions")
        files.needs("delete")
        stale = files.write_text("/a/b/c.txt", "one\n").version
        assert files.delete("/a").error is None

        assert files.write("/a/b/c.txt", "mine\n", expected_version=stale).code == "stale_version"

        assert "/a/" not in files.list_paths("/")

    def test_a_change_to_a_file_that_is_gone_is_refused(self, files: Called) -> None:
        files.needs("versions")
        files.needs("delete")
        stale = files.write_text("/a.txt", "one\n").version
        assert files.delete("/a.txt").error is None

        assert files.write("/a.txt", "mine\n", expected_version=stale).code == "stale_version"
        assert files.edit("/a.txt", "one", "x", expected_version=stale).code in (
            "stale_version",
            "file_not_found",
        )
        assert files.read("/a.txt").code == "file_not_found"

    def test_a_directory_is_deleted_with_all_in_it(self, files: Called) -> None:
        files.needs("delete")
        outside = ["/a.txt", "/ab.txt", "/b/a/x.txt"]
        spellings = ["/a", "/a/", "a", "//a/."]

        left: dict[str, list[str]] = {}
        for spelling in spellings:
            files.upload_all(dict.fromkeys(["/a/x.txt", "/a/b/y.txt", "/a/.hidden", *outside], b"text"))
            assert files.delete(spelling).error is None
            left[spelling] = sorted(found["path"] for found in files.glob("{*,.*}").matches)

        assert left == dict.fromkeys(spellings, outside)
        assert files.read("/a/.hidden").code == "file_not_found"

    def test_a_file_is_deleted_alone(self, files: Called) -> None:
        files.needs("delete")
        files.write_text("/a/x.txt", "x")
        files.write_text("/a/y.txt", "y")

        assert files.delete("/a/x.txt").path == "/a/x.txt"

        assert files.read("/a/x.txt").code == "file_not_found"
        assert files.read_text("/a/y.txt") == "y"

    def test_what_is_not_there_cannot_be_deleted(self, files: Called) -> None:
        files.needs("delete")
        files.write_text("/a.txt", "a")
        assert files.delete("/b.txt").code == "file_not_found"
        assert files.delete("/a").code == "file_not_found"

    def test_the_root_cannot_be_deleted(self, files: Called) -> None:
        files.needs("delete")
        files.write_text("/a.txt", "a")
        spellings = ["/", "", ".", "//", "/."]

        codes = {spelling: files.delete(spelling).code for spelling in spellings}

        assert codes == dict.fromkeys(spellings, "invalid_path")
        assert files.read_text("/a.txt") == "a"

    def test_a_deleted_file_may_come_back(self, files: Called) -> None:
        files.needs("delete")
        files.write_text("/a.txt", "one")
        assert files.delete("/a.txt").error is None
        files.write_text("/a.txt", "two")
        assert files.read_text("/a.txt") == "two"

    def test_uploaded_bytes_come_back(self, files: Called) -> None:
        contents = [
            b"", b"text\n", b"a\r\nb\r\n", "ü🙂".encode(), bytes(range(256)), b"\x00" * 10, b"\xff",
        ]  # fmt: skip
        sent = {
            f"/{number}/{name}": content
            for number, content in enumerate(contents)
            for name in ("a.txt", "a.png", "d/a")
        }

        files.upload_all(sent)

        assert files.download_all(*sent) == sent

    def test_uploaded_text_is_text(self, files: Called) -> None:
        assert files.upload(("/a.txt", b"one\ntwo\n"))[0].error is None
        assert files.edit("/a.txt", "two", "2").occurrences == 1
        assert files.read_text("/a.txt") == "one\n2\n"

    def test_a_replaced_file_keeps_its_time_of_creation_where_it_has_one(self, files: Called) -> None:
        files.write_text("/a.txt", "one\n")
        created = files.read("/a.txt").file_data.get("created_at")

        files.upload(("/a.txt", b"two\n"))
        assert files.read("/a.txt").file_data.get("created_at") == created
        files.write_text("/a.txt", "three\n")
        assert files.read("/a.txt").file_data.get("created_at") == created

    def test_binary_content_has_no_line_endings_to_keep(self, files: Called) -> None:
        files.upload(("/a.bin", b"\xff\r\n"), ("/a.pdf", b"a\r\n"))
        files.write_text("/a.bin", "text\n")
        files.write_text("/a.pdf", "text\n")
        assert files.read_bytes("/a.bin") == files.read_bytes("/a.pdf") == b"text\n"

    def test_an_upload_replaces(self, files: Called) -> None:
        files.write_text("/a.txt", "one\r\n")
        assert files.upload(("/a.txt", b"two\n"))[0].error is None
        assert files.read_bytes("/a.txt") == b"two\n"

    def test_uploads_answer_in_order_and_each_for_itself(self, files: Called) -> None:
        answers = files.upload(("/b.txt", b"b"), ("/../x", b"x"), ("/a/c.txt", b"c"))

        assert [answer.path for answer in answers] == ["/b.txt", "/../x", "/a/c.txt"]
        assert [answer.error for answer in answers] == [None, "invalid_path", None]
        assert files.read_text("/a/c.txt") == "c"

    def test_downloads_answer_in_order_and_each_for_itself(self, files: Called) -> None:
        files.write_text("/b.txt", "b")
        files.write_text("/d/a.txt", "a")

        answers = files.download("/b.txt", "/nowhere", "/d/a.txt", "/d", "~/x")

        assert [answer.path for answer in answers] == ["/b.txt", "/nowhere", "/d/a.txt", "/d", "~/x"]
        assert [answer.content for answer in answers] == [b"b", None, b"a", None, None]
        assert [answer.error for answer in answers] == [
            None, "file_not_found", None, "is_directory", "invalid_path",
        ]  # fmt: skip

    def test_nothing_may_be_asked_for(self, files: Called) -> None:
        assert files.upload() == []
        assert files.download() == []


class AppendingContract(ContractBase):
    """`append`, where a backend has it."""

    def test_a_file_that_is_not_there_is_made(self, files: Called) -> None:
        files.has("append")

        done = files.append("/a/b/c.txt", "one\n")

        assert (done.error, done.code, done.path) == (None, None, "/a/b/c.txt")
        assert files.read_text("/a/b/c.txt") == "one\n"

    def test_what_is_added_stands_after_what_was_there(self, files: Called) -> None:
        files.has("append")
        pairs = {
            # Each is added to each, by turns to a text and to a picture.
            f"/{at}-{number}.{('txt', 'png')[(at + number) % 2]}": (before, added)
            for at, before in enumerate(BEFORE)
            for number, added in enumerate(ADDED)
        }
        files.upload_all({path: before for path, (before, _) in pairs.items()})

        errors = {path: files.append(path, added).error for path, (_, added) in pairs.items()}

        assert errors == dict.fromkeys(pairs)
        assert files.download_all(*pairs) == {
            path: before + (added.encode() if isinstance(added, str) else added)
            for path, (before, added) in pairs.items()
        }

    def test_additions_add_up(self, files: Called) -> None:
        files.has("append")
        for number in range(3):
            assert files.append("/a.txt", f"{number}\n").error is None
        assert files.read_text("/a.txt") == "0\n1\n2\n"
        assert [each["line"] for each in files.grep("2", "/a.txt").matches] == [3]

    def test_a_long_addition_lands_whole(self, files: Called) -> None:
        files.has("append")
        long = "ü line of text that is long enough\n" * 20_000
        files.write_text("/a/log.txt", "begin\n")

        assert files.append("/a/log.txt", long).error is None

        assert files.read_bytes("/a/log.txt").decode() == f"begin\n{long}"

    def test_an_addition_makes_a_new_version(self, files: Called) -> None:
        files.has("append")
        files.needs("versions")
        stale = files.write_text("/a.txt", "one\n").version

        version = files.append("/a.txt", "two\n").version

        assert version not in (None, stale)
        assert files.read("/a.txt").version == version
        assert files.write("/a.txt", "mine\n", expected_version=stale).code == "stale_version"

    def test_half_characters_are_refused(self, files: Called) -> None:
        files.has("append")
        files.write_text("/a.txt", "one\n")
        assert files.append("/a.txt", "\ud800").code == "invalid_encoding"
        assert files.read_bytes("/a.txt") == b"one\n"

    def test_only_a_file_inside_can_be_added_to(self, files: Called) -> None:
        files.has("append")
        files.write_text("/d/x.txt", "x")

        done = {path: files.append(path, "y") for path in ("/", "/d", "/../x", "~/x")}

        # Where directories are only the beginnings of names, a file may have the name of one.
        codes = {path: each.code for path, each in done.items() if path != "/d" or each.error}
        assert set(codes.values()) <= {"is_directory", "invalid_path"}, codes

    def test_a_file_that_is_not_allowed_is_not_added_to(self, files: Called) -> None:
        files.has("append")
        files.takes("append", "allowed")
        files.upload(("/d/secret/x.txt", b"word\n"))

        for path in ("/d/secret/x.txt", "/d/secret/new.txt"):
            assert files.append(path, "more", allowed=RULE).code == "permission_denied"
        assert files.append("/d/open.txt", "more", allowed=RULE).error is None

        assert files.read_bytes("/d/secret/x.txt") == b"word\n"
        assert files.read("/d/secret/new.txt").code == "file_not_found"

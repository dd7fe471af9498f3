"""Check what exact replacement promises."""

from __future__ import annotations

from deepagents.testing.contract.base import Called, ContractBase

REPLACED = [
    # before, old, new, after
    ("a b c\n", "b", "x", "a x c\n"),
    ("a b c\n", "a b c\n", "", ""),
    ("one\ntwo\nthree\n", "one\ntwo", "1\n2", "1\n2\nthree\n"),
    ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
    ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
    ("a\r\nb\nc\n", "b", "x", "a\r\nx\nc\n"),
    ("a\r\nb\nc\n", "a\nb", "x\ny", "x\r\ny\nc\n"),
    ("a\rb\r", "a\nb", "x\ny", "x\ry\r"),
    ("no newline", "no", "still no", "still no newline"),
    ("naïve 日本語\n", "日本", "🙂", "naïve 🙂語\n"),
    ("a.*b [x] $1 \\1\n", ".*b [x] $1 \\1", r"\g<0>", "a\\g<0>\n"),
    ("\ttabbed\n", "\t", "    ", "    tabbed\n"),
    ("a\x0cb\u2028c\n", "\x0cb\u2028", "-", "a-c\n"),
    ("same\n", "same", "same", "same\n"),
    ("  \n", "\n", "x\n", "  x\n"),
]


class EditingContract(ContractBase):
    """`edit`."""

    def test_text_is_replaced_and_all_else_is_kept(self, files: Called) -> None:
        cases = {f"/{number}.txt": case for number, case in enumerate(REPLACED)}
        files.upload_all({path: before.encode() for path, (before, _, _, _) in cases.items()})

        done = {path: files.edit(path, old, new) for path, (_, old, new, _) in cases.items()}

        assert {path: (each.error, each.path, each.occurrences) for path, each in done.items()} == {
            path: (None, path, 1) for path in cases
        }
        assert files.download_all(*cases) == {path: after.encode() for path, (*_, after) in cases.items()}

    def test_all_places_are_replaced_when_asked(self, files: Called) -> None:
        files.write_text("/a.txt", "a b a\na\n")

        done = files.edit("/a.txt", "a", "x", True)

        assert done.occurrences == 3
        assert files.read_text("/a.txt") == "x b x\nx\n"

    def test_several_places_need_more_context(self, files: Called) -> None:
        files.write_text("/a.txt", "a b a\n")

        done = files.edit("/a.txt", "a", "x")

        assert done.code == "ambiguous_match"
        assert "appears 2 times" in done.error
        assert files.read_text("/a.txt") == "a b a\n"

    def test_a_miss_shows_the_nearest_place(self, files: Called) -> None:
        files.write_text("/a.txt", "def f():\n\treturn 1\n")

        done = files.edit("/a.txt", "def f():\n    return 1\n", "x")

        assert done.code == "no_match"
        assert "String not found in file" in done.error
        assert "lines 1-2" in done.error
        assert "whitespace" in done.error
        assert files.read_text("/a.txt") == "def f():\n\treturn 1\n"

    def test_a_missing_last_newline_is_pointed_out(self, files: Called) -> None:
        files.write_text("/a.txt", "one\ntwo")

        done = files.edit("/a.txt", "two\n", "2\n")

        assert done.code == "no_match"
        assert "old_string ends with a newline" in done.error
        assert "Retry with the trailing newline removed" in done.error

    def test_an_empty_old_string_is_refused(self, files: Called) -> None:
        files.write_text("/a.txt", "one\n")

        done = files.edit("/a.txt", "", "x")

        assert done.code == "invalid_argument"
        assert "old_string cannot be empty" in done.error

    def test_an_empty_file_holds_nothing_to_replace(self, files: Called) -> None:
        files.write_text("/a.txt", "")
        assert files.edit("/a.txt", "a", "b").code == "no_match"

    def test_a_missing_file_cannot_be_edited(self, files: Called) -> None:
        done = files.edit("/nowhere.txt", "a", "b")

        assert done.code == "file_not_found"
        assert "'/nowhere.txt' not found" in done.error
        assert files.read("/nowhere.txt").code == "file_not_found"

    def test_a_directory_cannot_be_edited(self, files: Called) -> None:
        files.write_text("/d/a.txt", "a")
        assert files.edit("/d", "a", "b").code in ("is_directory", "file_not_found")

    def test_a_binary_file_cannot_be_edited(self, files: Called) -> None:
        content = b"abc\x00\xff"
        assert files.upload(("/a.dat", content))[0].error is None

        done = files.edit("/a.dat", "abc", "x")

        assert done.code == "invalid_encoding"
        assert files.read_bytes("/a.dat") == content

    def test_what_reads_as_base64_cannot_be_edited(self, files: Called) -> None:
        files.write_text("/a.pdf", "text all the same\n")
        files.write_text("/a.txt", "text\x00\n")

        done = [files.edit(path, "text", "x") for path in ("/a.pdf", "/a.txt")]

        assert [each.code for each in done] == ["invalid_encoding"] * 2
        assert files.read_bytes("/a.txt") == b"text\x00\n"

    def test_half_a_character_is_refused(self, files: Called) -> None:
        files.write_text("/a.txt", "one\n")

        done = [files.edit("/a.txt", "one", "\ud800"), files.write("/a.txt", "\udfff")]

        assert [each.code for each in done] == ["invalid_encoding"] * 2
        assert files.read_text("/a.txt") == "one\n"

    def test_edits_build_on_each_other(self, files: Called) -> None:
        files.write_text("/a.txt", "0\n")
        for number in range(3):
            assert files.edit("/a.txt", f"{number}\n", f"{number}\n{number + 1}\n").error is None
        assert files.read_text("/a.txt") == "".join(f"{number}\n" for number in range(4))

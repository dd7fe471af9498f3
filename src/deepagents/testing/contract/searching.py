"""Check what finding files and lines promises."""

from __future__ import annotations

from typing import Any

from deepagents.testing.contract.base import Called, ContractBase, list_matching_files

TREE = [
    "/README.md", "/a.py", "/b.txt", "/.env", "/.github/workflows/ci.yml", "/src/a.py", "/src/b.md",
    "/src/.x.py", "/src/deep/a.py", "/src/deep/er/c.py", "/src/.h/q.py", "/lib/[id].ts", "/lib/x y.py",
    "/lib/!n.py", "/A.PY",
]  # fmt: skip
GLOBS: list[tuple[str, str | None, list[str]]] = [
    # pattern, path, what is found
    ("*.yml", None, ["/.github/workflows/ci.yml"]),
    ("**/*.yml", None, []),
    ("*.md", None, ["/README.md", "/src/b.md"]),
    ("a.py", None, ["/a.py", "/src/a.py", "/src/deep/a.py"]),
    ("/*.py", None, ["/a.py"]),
    ("/a.py", "/src", ["/src/a.py"]),
    ("./*.py", None, ["/a.py"]),
    ("src/*.py", None, ["/src/a.py"]),
    ("src/**/*.py", None, ["/src/a.py", "/src/deep/a.py", "/src/deep/er/c.py"]),
    ("/src/**", None, ["/src/a.py", "/src/b.md", "/src/deep/a.py", "/src/deep/er/c.py"]),
    ("**/deep/**", None, ["/src/deep/a.py", "/src/deep/er/c.py"]),
    ("**/.h/*", None, ["/src/.h/q.py"]),
    ("*", "/src/deep", ["/src/deep/a.py", "/src/deep/er/c.py"]),
    ("*.py", "/src", ["/src/.h/q.py", "/src/a.py", "/src/deep/a.py", "/src/deep/er/c.py"]),
    ("er/*.py", "/src/deep", ["/src/deep/er/c.py"]),
    (".*", None, ["/.env", "/src/.x.py"]),
    ("?.md", None, ["/src/b.md"]),
    ("*.{md,txt}", None, ["/README.md", "/b.txt", "/src/b.md"]),
    ("{src,lib}/*.py", None, ["/lib/!n.py", "/lib/x y.py", "/src/a.py"]),
    ("[bc].*", None, ["/b.txt", "/src/b.md", "/src/deep/er/c.py"]),
    ("[!a-z]*", None, ["/A.PY", "/README.md", "/lib/!n.py", "/lib/[id].ts"]),
    ("[^a-z]*.py", None, ["/lib/!n.py"]),
    (r"\[id\].ts", None, ["/lib/[id].ts"]),
    ("!n.py", None, ["/lib/!n.py"]),
    ("*.PY", None, ["/A.PY"]),
    ("src/", None, []),
    ("src", None, []),
    ("a.py/**", None, []),
    ("src//a.py", None, ["/src/a.py"]),
    ("[", None, []),
    ("*.py", "/nowhere", []),
    ("*.py", "/a.py", []),
]  # fmt: skip


LITERAL = [
    "self.x()", "a.*b", "[0]", "^start", "end$", "C:\\dir", "((", "--help", "-e", "日本", "a b", "'\"`$",
]  # fmt: skip


def lines(found: Any) -> list[tuple[str, int, str]]:
    assert found.error is None, found.error
    return [(match["path"], match["line"], match["text"]) for match in found.matches]


class SearchingContract(ContractBase):
    """`glob` and `grep`."""

    def test_patterns_find_files(self, files: Called) -> None:
        files.upload_all(dict.fromkeys(TREE, b"x"))

        found = {
            (pattern, path): list_matching_files(files.glob(pattern, path)) for pattern, path, _ in GLOBS
        }

        assert found == {(pattern, path): expected for pattern, path, expected in GLOBS}

    def test_a_search_takes_the_same_patterns(self, files: Called) -> None:
        files.upload_all(dict.fromkeys(TREE, b"x"))
        below = [(pattern, path, expected) for pattern, path, expected in GLOBS if path not in TREE]

        found = {
            (pattern, path): [match[0] for match in lines(files.grep("x", path, pattern))]
            for pattern, path, _ in below
        }

        assert found == {(pattern, path): expected for pattern, path, expected in below}

    def test_a_found_file_is_described(self, files: Called) -> None:
        files.write_text("/d/ü.txt", "ü")

        (found,) = files.glob("*").matches

        assert found["path"] == "/d/ü.txt"
        assert not found.get("is_dir")
        assert found.get("size", 2) == 2

    def test_a_refused_pattern_is_a_result(self, files: Called) -> None:
        files.write_text("/a.py", "x")
        patterns = ["../*.py", "src/../*.py", "..", "a\\..\\b", "{a,b}" * 18]

        found = {pattern: files.glob(pattern) for pattern in patterns}
        searched = {pattern: files.grep("x", None, pattern) for pattern in patterns}

        for results in (found, searched):
            assert {pattern: each.code for pattern, each in results.items()} == dict.fromkeys(
                patterns, "invalid_pattern"
            )
            assert not any(each.matches for each in results.values())
        refusals = ("Path traversal not allowed", "Invalid glob pattern")
        assert all(each.error.startswith(refusals) for each in found.values())

    def test_matches_come_by_path_and_line(self, files: Called) -> None:
        files.write_text("/b.txt", "needle 1\nhay\nneedle 2\n")
        files.write_text("/a/z.txt", "hay\n  needle in\thay  \n")
        files.write_text("/.hidden", "needle")

        assert lines(files.grep("needle")) == [
            ("/.hidden", 1, "needle"),
            ("/a/z.txt", 2, "  needle in\thay  "),
            ("/b.txt", 1, "needle 1"),
            ("/b.txt", 3, "needle 2"),
        ]

    def test_text_is_searched_literally(self, files: Called) -> None:
        texts = {f"/{number}.txt": text for number, text in enumerate(LITERAL)}
        files.upload_all(
            {path: f"before\nx{text}y\nself_x() aXXb 0 start end\n".encode() for path, text in texts.items()}
        )

        found = {text: lines(files.grep(text)) for text in LITERAL}

        assert found == {text: [(path, 2, f"x{text}y")] for path, text in texts.items()}

    def test_case_counts(self, files: Called) -> None:
        files.write_text("/a.txt", "Needle\n")
        assert lines(files.grep("needle")) == []

    def test_lines_are_numbered_as_reading_numbers_them(self, files: Called) -> None:
        files.write_text("/a.txt", "1\r\n2\r3\n\x0c4\u20284\x854\n5 needle\r\n")
        assert lines(files.grep("needle")) == [("/a.txt", 5, "5 needle")]

    def test_a_search_stays_below_its_path(self, files: Called) -> None:
        files.upload_all(dict.fromkeys(["/a/x.txt", "/a/b/x.txt", "/ab/x.txt", "/a.txt"], b"needle"))

        assert [found[0] for found in lines(files.grep("needle", "/a"))] == ["/a/b/x.txt", "/a/x.txt"]
        assert [found[0] for found in lines(files.grep("needle", "/a/"))] == ["/a/b/x.txt", "/a/x.txt"]
        assert [found[0] for found in lines(files.grep("needle", "/a/x.txt"))] == ["/a/x.txt"]
        assert lines(files.grep("needle", "/a/b", "a/*")) == []

    def test_nothing_found_is_no_error(self, files: Called) -> None:
        files.write_text("/a.txt", "hay")

        found = files.grep("needle")

        assert (found.error, found.code, found.matches, found.truncated) == (None, None, [], False)
        assert lines(files.grep("needle", "/nowhere")) == []

    def test_a_cap_counts_all_matches(self, files: Called) -> None:
        files.write_text("/a.txt", "x\nx\n")
        files.write_text("/b.txt", "x\n")

        exact, cut = files.grep("x", max_count=3), files.grep("x", max_count=2)

        assert (len(exact.matches), exact.truncated) == (3, False)
        assert (lines(cut), cut.truncated) == ([("/a.txt", 1, "x"), ("/a.txt", 2, "x")], True)

    def test_binary_files_are_passed_over(self, files: Called) -> None:
        files.upload(("/a.dat", b"needle\x00\xff"), ("/b.txt", b"needle"))
        assert [found[0] for found in lines(files.grep("needle"))] == ["/b.txt"]

    def test_stray_bytes_and_odd_names_do_not_hide_a_line(self, files: Called) -> None:
        files.upload_all(dict.fromkeys(["/a.pdf", "/a.txt"], b"caf\xe9 needle\nhay\n"))
        assert lines(files.grep("needle")) == [
            ("/a.pdf", 1, "caf\ufffd needle"),
            ("/a.txt", 1, "caf\ufffd needle"),
        ]

    def test_a_bad_expression_is_a_result(self, files: Called) -> None:
        files.takes("grep", "regex")
        files.write_text("/a.txt", "x")
        assert files.grep("(", regex=True).code == "invalid_pattern"

    def test_an_expression_is_searched_line_by_line(self, files: Called) -> None:
        files.takes("grep", "regex")
        files.write_text("/a.txt", "one\r\ntwo\rone two\n")
        assert lines(files.grep("^(one|two)$", regex=True)) == [("/a.txt", 1, "one"), ("/a.txt", 2, "two")]

    def test_blank_files_are_searched_without_harm(self, files: Called) -> None:
        files.write_text("/a.txt", "")
        files.write_text("/b.txt", "\n \n")
        assert lines(files.grep("needle")) == []

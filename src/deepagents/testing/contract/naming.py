"""Which names are files, and which are refused."""

from __future__ import annotations

import pytest

from deepagents.testing.contract.base import Called, ContractBase

NAMES = [
    "with space.txt", " leading", "trailing ", "it's.txt", 'say "hi".txt', "foo..bar.txt", "...", ".env",
    "-rf", "--", "ünïcödé.md", "e\u0301.txt", "日本語.txt", "🙂.txt", "a\u2028b", "a[1]*?.txt", "{a,b}.txt",
    "$HOME", "`id`", "a;b&c|d", "%41.txt", "#1", "a:b", "name~", "n" * 200,
]  # fmt: skip
SPELLINGS = ["/a/b.txt", "a/b.txt", "//a//b.txt", "/./a/./b.txt", "./a/b.txt", "\\a\\b.txt", "/a/b.txt/"]
REFUSED = [
    "../x", "/../x", "/a/../../x", "/a/..", "..", "a\\..\\..\\x", "~", "~/x", "~root/x", "C:\\x", "c:/x",
    "/a\x00b", "/a\nb", "/a\x1bb",
]  # fmt: skip


class NamingContract(ContractBase):
    """Paths, the same for every method."""

    @pytest.mark.parametrize("name", NAMES)
    def test_an_odd_name_is_a_name(self, files: Called, name: str) -> None:
        path = f"/d {name}/{name}"
        files.wrote(path, "one needle\n")

        assert files.edit(path, "one", "two").path == path
        assert files.text(path) == "two needle\n"
        assert files.listed(f"/d {name}") == [path]
        assert f"/d {name}/" in files.listed("/")
        assert [match["path"] for match in files.grep("needle").matches] == [path]
        assert [match["path"] for match in files.grep("needle", path).matches] == [path]
        assert path in [match["path"] for match in files.glob("**/{*,.*}").matches]
        assert files.bytes(path) == b"two needle\n"

    @pytest.mark.parametrize("spelling", SPELLINGS)
    def test_a_path_has_many_spellings_and_one_meaning(self, files: Called, spelling: str) -> None:
        assert files.write(spelling, "one\n").path == "/a/b.txt"

        assert files.text("/a/b.txt") == "one\n"
        assert files.text(spelling) == "one\n"
        assert files.edit(spelling, "one", "two").path == "/a/b.txt"
        assert files.bytes(spelling) == b"two\n"
        assert [match["path"] for match in files.grep("two", spelling).matches] == ["/a/b.txt"]
        assert files.listed("a/") == ["/a/b.txt"]

    @pytest.mark.parametrize("spelling", ["", ".", "/", "//", "/."])
    def test_the_root_has_many_spellings(self, files: Called, spelling: str) -> None:
        files.wrote("/a.txt", "x")

        assert "/a.txt" in files.listed(spelling)
        assert [match["path"] for match in files.glob("*", spelling).matches] == ["/a.txt"]
        assert [match["path"] for match in files.grep("x", spelling).matches] == ["/a.txt"]

    def test_the_root_is_a_directory(self, files: Called) -> None:
        files.wrote("/a.txt", "x")

        codes = [files.read("/").code, files.write("/", "x").code, files.edit("/", "x", "y").code]

        assert codes == ["is_directory"] * 3
        assert files.upload(("/", b"x"))[0].error == files.download("/")[0].error == "is_directory"

    @pytest.mark.parametrize("path", ["/a/b.txt", "/a/nowhere/b.txt", "/a", "/"])
    def test_without_links_a_path_leads_to_itself(self, files: Called, path: str) -> None:
        files.wrote("/a/b.txt", "x")
        assert files.call("real_path", path) == path

    @pytest.mark.parametrize("path", REFUSED)
    def test_a_dangerous_path_is_refused_in_a_result(self, files: Called, path: str) -> None:
        files.wrote("/a/x", "x")

        refused = [
            files.ls(path),
            files.read(path),
            files.write(path, "y"),
            files.edit(path, "x", "y"),
            files.glob("*", path),
            files.grep("x", path),
        ]

        assert [found.code for found in refused] == ["invalid_path"] * len(refused)
        assert all(found.error for found in refused)
        assert [answer.error for answer in files.upload((path, b"y"))] == ["invalid_path"]
        assert [answer.error for answer in files.download(path)] == ["invalid_path"]
        assert files.text("/a/x") == "x"

    @pytest.mark.parametrize("path", REFUSED)
    def test_a_dangerous_path_deletes_nothing(self, files: Called, path: str) -> None:
        files.needs("delete")
        files.wrote("/a/x", "x")

        assert files.delete(path).code == "invalid_path"

        assert files.text("/a/x") == "x"

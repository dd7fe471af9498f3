"""Check which names are files, and which are refused."""

from __future__ import annotations

from deepagents.testing.contract.base import Called, ContractBase, list_matching_files

NAMES = [
    " leading", "trailing ", "it's \"hi\".txt", "foo..bar.txt", "...", ".env", "-rf", "--", "日本語 🙂 ü.md",
    "\u00e9.txt", "e\u0301.txt", "a\u2028b", "a[1]*?{a,b}.txt", "$HOME `id`;b&c|d", "%41#1", "a:b~",
    "n" * 200,
]  # fmt: skip
SPELLINGS = [
    "/{}/b.txt", "{}/b.txt", "//{}//b.txt", "/./{}/./b.txt", "./{}/b.txt", "\\{}\\b.txt", "/{}/b.txt/",
]  # fmt: skip
REFUSED = [
    "../x", "/../x", "/a/../../x", "/a/..", "..", "a\\..\\..\\x", "~", "~/x", "~root/x", "C:\\x", "c:/x",
    "/a\x00b", "/a\nb", "/a\x1bb",
]  # fmt: skip


class NamingContract(ContractBase):
    """Paths, the same for every method."""

    def test_an_odd_name_is_a_name(self, files: Called) -> None:
        paths = {name: f"/d {name}/{name}" for name in NAMES}
        for path in paths.values():
            files.write_text(path, "one needle\n")

        assert {path: files.edit(path, "one", "two").path for path in paths.values()} == {
            path: path for path in paths.values()
        }
        assert {path: files.read_text(path) for path in paths.values()} == dict.fromkeys(
            paths.values(), "two needle\n"
        )
        assert {name: files.list_paths(f"/d {name}") for name in NAMES} == {
            name: [path] for name, path in paths.items()
        }
        assert {f"/d {name}/" for name in NAMES} <= set(files.list_paths("/"))
        assert {path: list_matching_files(files.grep("needle", path)) for path in paths.values()} == {
            path: [path] for path in paths.values()
        }
        assert list_matching_files(files.grep("needle")) == sorted(paths.values())
        assert list_matching_files(files.glob("**/{*,.*}")) == sorted(paths.values())
        assert files.download_all(*paths.values()) == dict.fromkeys(paths.values(), b"two needle\n")

    def test_a_path_has_many_spellings_and_one_meaning(self, files: Called) -> None:
        places = {spelling.format(f"a{n}"): f"/a{n}/b.txt" for n, spelling in enumerate(SPELLINGS)}

        written = {spelling: files.write(spelling, "one\n").path for spelling in places}
        edited = {spelling: files.edit(spelling, "one", "two").path for spelling in places}
        searched = {spelling: list_matching_files(files.grep("two", spelling)) for spelling in places}

        assert written == edited == places
        assert searched == {spelling: [path] for spelling, path in places.items()}
        assert {spelling: files.read_text(spelling) for spelling in places} == dict.fromkeys(places, "two\n")
        assert files.download_all(*places, *places.values()) == dict.fromkeys(
            [*places, *places.values()], b"two\n"
        )
        assert files.list_paths("a0/") == ["/a0/b.txt"]

    def test_the_root_has_many_spellings(self, files: Called) -> None:
        files.write_text("/a.txt", "x")
        spellings = ["", ".", "/", "//", "/."]

        found = {
            spelling: (
                "/a.txt" in files.list_paths(spelling),
                list_matching_files(files.glob("*", spelling)),
                list_matching_files(files.grep("x", spelling)),
            )
            for spelling in spellings
        }

        assert found == dict.fromkeys(spellings, (True, ["/a.txt"], ["/a.txt"]))

    def test_the_root_is_a_directory(self, files: Called) -> None:
        files.write_text("/a.txt", "x")

        codes = [files.read("/").code, files.write("/", "x").code, files.edit("/", "x", "y").code]

        assert codes == ["is_directory"] * 3
        assert files.upload(("/", b"x"))[0].error == files.download("/")[0].error == "is_directory"

    def test_without_links_a_path_leads_to_itself(self, files: Called) -> None:
        files.write_text("/a/b.txt", "x")
        paths = ["/a/b.txt", "/a/nowhere/b.txt", "/a", "/"]
        assert [files.call("real_path", path) for path in paths] == paths

    def test_a_dangerous_path_is_refused_in_a_result(self, files: Called) -> None:
        files.write_text("/a/x", "x")

        refused = {
            path: [
                files.ls(path),
                files.read(path),
                files.write(path, "y"),
                files.edit(path, "x", "y"),
                files.glob("*", path),
                files.grep("x", path),
            ]
            for path in REFUSED
        }
        moved = {path: (files.upload((path, b"y")), files.download(path)) for path in REFUSED}

        assert {path: [each.code for each in found] for path, found in refused.items()} == dict.fromkeys(
            REFUSED, ["invalid_path"] * 6
        )
        assert all(each.error for found in refused.values() for each in found)
        assert {path: [up.error, down.error] for path, ((up,), (down,)) in moved.items()} == dict.fromkeys(
            REFUSED, ["invalid_path"] * 2
        )
        assert files.read_text("/a/x") == "x"

    def test_a_dangerous_path_deletes_nothing(self, files: Called) -> None:
        files.needs("delete")
        files.write_text("/a/x", "x")

        assert {path: files.delete(path).code for path in REFUSED} == dict.fromkeys(REFUSED, "invalid_path")

        assert files.read_text("/a/x") == "x"

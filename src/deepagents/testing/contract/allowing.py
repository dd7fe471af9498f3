"""Check what a method that takes `allowed` promises."""

from __future__ import annotations

from deepagents._paths import is_within, overlap
from deepagents._values import valueclass
from deepagents.testing.contract.base import Called, ContractBase


@valueclass
class AllBut:
    """Allows everything outside one directory."""

    hidden: str

    def __call__(self, path: str) -> bool:
        return not is_within(path, self.hidden)

    def all_below(self, directory: str) -> bool:
        return not overlap(directory, self.hidden)


RULE = AllBut("/d/secret")
OPEN = ["/a.txt", "/d/b.txt", "/d/secrets/c.txt"]
SEEN = {None: OPEN, "/": OPEN, "/d": OPEN[1:]}
"""Where one may look, and what is there."""
HIDDEN = ["/d/secret/x.txt", "/d/secret/.env", "/d/secret/deep/er/y.txt"]


class AllowingContract(ContractBase):
    """The option `allowed`, wherever a method names it."""

    def _fill(self, files: Called, method: str) -> None:
        files.takes(method, "allowed")
        files.upload_all(dict.fromkeys(OPEN + HIDDEN, b"word\n"))

    def test_a_walk_passes_over_what_is_not_allowed(self, files: Called) -> None:
        self._fill(files, "glob")

        found = {path: files.call("glob", "{*,.*}", path, allowed=RULE) for path in SEEN}

        assert {path: sorted(match["path"] for match in each.matches) for path, each in found.items()} == SEEN

    def test_a_search_passes_over_what_is_not_allowed(self, files: Called) -> None:
        self._fill(files, "grep")

        found = {path: files.grep("word", path, allowed=RULE) for path in SEEN}
        capped = {
            path: files.grep("word", path, max_count=len(seen), allowed=RULE) for path, seen in SEEN.items()
        }

        for results in (found, capped):
            assert {path: [match["path"] for match in each.matches] for path, each in results.items()} == SEEN
        assert not any(each.truncated for each in capped.values())

    def test_nothing_is_found_below_what_is_not_allowed(self, files: Called) -> None:
        self._fill(files, "glob")
        files.takes("grep", "allowed")

        for path in ("/d/secret", "/d/secret/deep", "/d/secret/x.txt"):
            assert not files.call("glob", "{*,.*}", path, allowed=RULE).matches
            assert not files.grep("word", path, allowed=RULE).matches

    def test_a_listing_passes_over_what_is_not_allowed(self, files: Called) -> None:
        self._fill(files, "ls")

        listed = files.list_paths("/d", allowed=RULE)
        inside = files.call("ls", "/d/secret", allowed=RULE)

        assert listed == ["/d/b.txt", "/d/secrets/"]
        assert not inside.entries

    def test_a_file_that_is_not_allowed_is_refused(self, files: Called) -> None:
        self._fill(files, "read")
        for method in ("write", "edit"):
            files.takes(method, "allowed")

        refused = {
            path: [
                files.call("read", path, allowed=RULE),
                files.write(path, "changed", allowed=RULE),
                files.edit(path, "word", "changed", allowed=RULE),
            ]
            for path in HIDDEN
        }

        assert {path: [each.code for each in done] for path, done in refused.items()} == dict.fromkeys(
            HIDDEN, ["permission_denied"] * 3
        )
        assert not [each for done in refused.values() for each in done if "word" in str(each.error)]
        assert files.download_all(*HIDDEN) == dict.fromkeys(HIDDEN, b"word\n")

    def test_a_new_file_that_is_not_allowed_is_not_made(self, files: Called) -> None:
        self._fill(files, "write")

        assert files.write("/d/secret/new/z.txt", "x", allowed=RULE).code == "permission_denied"

        assert files.list_paths("/d/secret") == [
            "/d/secret/.env",
            "/d/secret/deep/",
            "/d/secret/x.txt",
        ]

    def test_what_holds_a_file_that_is_not_allowed_cannot_be_deleted(self, files: Called) -> None:
        files.needs("delete")
        self._fill(files, "delete")
        paths = ["/d/secret/x.txt", "/d/secret/deep", "/d/secret", "/d"]

        codes = {path: files.call("delete", path, allowed=RULE).code for path in paths}

        assert codes == dict.fromkeys(paths, "permission_denied")
        assert files.download_all(*OPEN, *HIDDEN) == dict.fromkeys(OPEN + HIDDEN, b"word\n")

    def test_transfers_refuse_each_for_itself(self, files: Called) -> None:
        self._fill(files, "upload_files")
        files.takes("download_files", "allowed")

        sent = files.call("upload_files", [("/new.txt", b"n"), (HIDDEN[0], b"n")], allowed=RULE)
        got = files.call("download_files", ["/new.txt", HIDDEN[0]], allowed=RULE)

        assert [done.error for done in sent] == [None, "permission_denied"]
        assert [(done.content, done.error) for done in got] == [(b"n", None), (None, "permission_denied")]
        assert files.read_bytes(HIDDEN[0]) == b"word\n"

    def test_all_else_is_as_without_a_rule(self, files: Called) -> None:
        self._fill(files, "read")
        for method in ("write", "edit"):
            files.takes(method, "allowed")

        assert files.write("/d/secrets/c.txt", "one word\n", allowed=RULE).error is None
        assert files.edit("/d/secrets/c.txt", "one", "two", allowed=RULE).error is None
        assert files.call("read", "/d/secrets/c.txt", allowed=RULE).file_data["content"] == "two word\n"

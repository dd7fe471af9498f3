"""Search below a directory: the same answer with ripgrep and without, for any tree."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepagents._globs import compile_glob
from deepagents._programs import find_ripgrep
from deepagents.backends import FilesystemBackend
from deepagents.backends._bytes import temporary_name
from deepagents.backends._directory import BY_HANDLE, HandleDirectory, open_directory
from deepagents.backends._query import Query
from deepagents.backends.filesystem.search import Found, Search, search
from deepagents.backends.filesystem.walk import walk
from tests.backends.sandboxes import rooted

NAMES = [
    "a.txt",
    "b.py",
    ".hidden",
    ".gitignore",
    ".ignore",
    "ü b.txt",
    "[x].txt",
    "!y.py",
    "-n",
    "UPPER.TXT",
]
PIECES = [
    b"needle",
    b"Needle",
    b"x" * 70_000,
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"\xff\xfe",
    "ü".encode(),
    b"*",
    b" ",
]
PATTERNS = ["needle", "ü", "needle needle", "*", "x" * 9, "", "\r", "nee\ndle", "-n", "\0", "\ufeff"]
GLOBS = [None, "*.txt", "!*.py", "!y.py", ".*", "**/*.py", "src/**", "**", "[[]x].txt", "*.{py,txt}"]

content = st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join)
path = st.tuples(st.sampled_from(["", "src/", ".git/", "a b/", "ß/src/"]), st.sampled_from(NAMES)).map(
    "".join
)
trees = st.dictionaries(path, content, max_size=12)


needs_ripgrep = pytest.mark.skipif(find_ripgrep() is None, reason="ripgrep is not installed")


def plant(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def find(root: Path, wanted: Search, ripgrep: str | None = None, by_handle: bool = BY_HANDLE) -> Found:
    with open_directory(root, by_handle=by_handle) as base:
        return search(base, replace(wanted, ripgrep=ripgrep), root)


def lines(found: Found) -> list[tuple[str, int, str]]:
    return [(match["path"], match["line"], match["text"]) for match in found.matches]


def grep(root: Path, pattern: str, ripgrep: str | None = None) -> list[tuple[str, int, str]]:
    return lines(find(root, Search(Query.of(pattern)), ripgrep))


def paths(root: Path, pattern: str) -> list[str]:
    with open_directory(root) as base:
        return walk(base, 60, compile_glob(pattern)).files


@needs_ripgrep
@settings(max_examples=30)
@given(
    files=trees,
    pattern=st.sampled_from(PATTERNS),
    glob=st.sampled_from(GLOBS),
    cap=st.sampled_from([None, 1, 3]),
    around=st.integers(0, 2),
)
def test_ripgrep_and_python_find_the_same_in_any_tree(
    files: dict[str, bytes], pattern: str, glob: str | None, cap: int | None, around: int
) -> None:
    query = Query.of(pattern, context=around)
    wanted = Search(query, compile_glob(glob) if glob else None, cap, largest=200_000)
    with tempfile.TemporaryDirectory() as directory:
        root = plant(Path(directory), files)

        assert find(root, wanted, find_ripgrep()) == find(root, wanted)


@given(files=trees, pattern=st.sampled_from(PATTERNS[:5]))
@settings(max_examples=30)
def test_what_is_found_is_what_a_plain_loop_finds(files: dict[str, bytes], pattern: str) -> None:
    expected = [
        (name, number, line)
        for name, data in sorted(files.items())
        if b"\0" not in data[:8192]
        for number, line in enumerate(re.split("\r\n|\r|\n", data.decode("utf-8", "replace")), 1)
        if pattern in line
    ]
    with tempfile.TemporaryDirectory() as directory:
        assert grep(plant(Path(directory), files), pattern) == expected


@needs_ripgrep
def test_ripgrep_heeds_no_ignore_file_and_no_settings_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ripgreprc").write_text("--ignore-case\n--max-count=1\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "ripgreprc"))
    ignored = {".gitignore": b"*.log\n", "a.log": b"word\nword\n", ".hidden": b"word\n", "b": b"WORD\n"}
    root = plant(tmp_path / "root", ignored)
    (root / ".git").mkdir()

    found = grep(root, "word", find_ripgrep())

    assert found == [(".hidden", 1, "word"), ("a.log", 1, "word"), ("a.log", 2, "word")]


@pytest.mark.parametrize("script", ["exit 2", "echo nonsense; exit 101", "kill -9 $$", None])
def test_a_ripgrep_that_fails_is_done_without(tmp_path: Path, script: str | None) -> None:
    root = plant(tmp_path / "root", {"a": b"word\n"})
    program = tmp_path / "rg"
    if script:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    assert grep(root, "word", str(program)) == [("a", 1, "word")]


def test_a_ripgrep_that_hangs_leaves_what_it_found(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"a": b"word\n", "b": b"word\n"})
    slow = tmp_path / "slow-rg"
    slow.write_text("#!/bin/sh\nprintf './a\\0./b'\nexec sleep 60\n")
    slow.chmod(0o755)

    found = find(root, Search(Query.of("word"), seconds=2), str(slow))

    assert lines(found) == [("a", 1, "word")]
    assert found.truncated


def test_context_stops_at_the_ends_and_leaves_out_lines_that_match_themselves(tmp_path: Path) -> None:
    root = plant(tmp_path, {"a": b"1\nw2\nw3\n4\n5\n"})

    found = find(root, Search(Query.of("w", context=2)))

    one, four, five = ({"line": number, "text": str(number)} for number in (1, 4, 5))
    assert [(match.get("context_before"), match.get("context_after")) for match in found.matches] == [
        ([one], [four]),
        ([one], [four, five]),
    ]


def test_a_file_over_the_limit_is_named_only_when_it_holds_the_text(tmp_path: Path) -> None:
    filler = b"x" * (1 << 20)
    big = {"in": filler[:-3] + b"needle" + filler, "out": filler * 2, "binary": b"\0" + filler + b"needle"}
    root = plant(tmp_path, big)

    for program in (None, find_ripgrep()):
        found = find(root, Search(Query.of("needle"), largest=1000), program)

        assert lines(found) == []
        assert [each.path for each in found.unread] == ["in"]
        assert "over the limit of 1,000" in found.unread[0].reason


@needs_ripgrep
def test_a_ripgrep_that_does_not_count_passes_over_no_large_file(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"in": b"needle" * 1000, "small": b"needle\n"})
    uncounted = tmp_path / "rg"
    without = 'for each; do shift; [ "$each" = --stats ] || set -- "$@" "$each"; done'
    uncounted.write_text(f'#!/bin/sh\n{without}\nexec {find_ripgrep()} "$@"\n')
    uncounted.chmod(0o755)

    found = find(root, Search(Query.of("needle"), largest=1000), str(uncounted))

    assert lines(found) == [("small", 1, "needle")]
    assert [each.path for each in found.unread] == ["in"]


def test_a_search_out_of_time_says_that_more_may_be_there(tmp_path: Path) -> None:
    root = plant(tmp_path, {"a": b"w\n"})

    assert find(root, Search(Query.of("w"), seconds=0)).truncated


def test_links_pipes_and_unfinished_files_are_not_searched(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"a": b"w\n", temporary_name(): b"w\n", f"d/{temporary_name()}": b"w\n"})
    plant(tmp_path / "outside", {"b": b"w\n"})
    (root / "link").symlink_to("a")
    (root / "dir-link").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "pipe")

    assert grep(root, "w") == grep(root, "w", find_ripgrep()) == [("a", 1, "w")]
    assert paths(root, "*") == ["a"]


def test_directories_that_cannot_match_are_not_entered(tmp_path: Path) -> None:
    root = plant(tmp_path, {"src/a.py": b"", "other/deep/a.py": b""})
    entered: list[str] = []

    class Watched(HandleDirectory):
        def child(self, name: str) -> HandleDirectory:
            entered.append(name)
            return super().child(name)

    base = Watched(os.open(root, os.O_RDONLY))
    found = walk(base, 60, compile_glob("src/*.py"))
    base.close()

    assert (found.files, entered) == (["src/a.py"], ["src"])


def test_a_walk_out_of_time_hands_over_what_it_has(tmp_path: Path) -> None:
    root = plant(tmp_path, {"a": b"", "d/b": b""})
    with open_directory(root) as base:
        found = walk(base, 0)

    assert found.timed_out
    assert found.files == ["a"]


def test_a_deep_tree_is_walked_and_what_is_too_deep_is_reported(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(50):
        deep = deep / "d"
    plant(deep, {"a": b"w\n"})

    assert [path for path, _, _ in grep(tmp_path, "w")] == ["d/" * 50 + "a"]


def test_files_that_vanish_during_a_search_are_passed_over(tmp_path: Path) -> None:
    root = plant(tmp_path, {f"d{n % 20}/f{n}": b"w\n" for n in range(400)})
    gone = threading.Thread(target=lambda: [path.unlink() for path in sorted(root.glob("*/*"))])
    gone.start()
    results = [find(root, Search(Query.of("w")), program) for program in (None, find_ripgrep())]
    gone.join()

    assert [found.unread for found in results] == [[], []]


def test_names_that_are_not_utf8_do_not_stop_a_search(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).write_bytes(b"w\n")

    assert grep(tmp_path, "w") == grep(tmp_path, "w", find_ripgrep()) == [(os.fsdecode(b"caf\xe9"), 1, "w")]


@pytest.mark.parametrize("by_handle", [True, False])
def test_both_ways_to_reach_directories_find_the_same(tmp_path: Path, by_handle: bool) -> None:
    root = plant(tmp_path, {"a": b"w\n", "d/e/f": b"w\n"})
    (root / "link").symlink_to("d")

    found = find(root, Search(Query.of("w")), by_handle=by_handle)

    assert lines(found) == [("a", 1, "w"), ("d/e/f", 1, "w")]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("call{e}", ["call{e}"]),
        ("(?:call){e<=1}", ["call{e<=1}"]),
        (r"\\{e}", [r"\{e}"]),
        (r"l{2}\{\w", ["call{e}", "call{e<=1}"]),
        (r"\N{LATIN SMALL LETTER B}al", ["ball"]),
        ("[{]e", ["call{e}", "call{e<=1}", r"\{e}"]),
        ("{,", ["{,"]),
    ],
)
@pytest.mark.parametrize("make_backend", [FilesystemBackend, rooted])
def test_a_brace_that_counts_nothing_is_text(
    make_backend: Callable[[Path], Any], expression: str, found: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("call\nball\ncall{e}\ncall{e<=1}\n\\{e}\n{,\n")

    answer = make_backend(tmp_path).grep(expression, regex=True)

    assert [match["text"] for match in answer.matches or ()] == found, answer

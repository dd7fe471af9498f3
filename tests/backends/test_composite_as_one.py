"""Many backends as one tree answer as one backend that holds the same files."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from deepagents._paths import is_within
from deepagents.backends import CompositeBackend
from tests.backends.flat_backend import FlatBackend

NAMES = st.sampled_from(["a", "b", "ab", "a.py", ".h", "m", "é", "a b"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
TREES = st.dictionaries(PATHS, st.sampled_from(["x", "x\nx", "y\nx\n", "y"]), max_size=12).map(
    lambda files: {
        path: text
        for path, text in files.items()
        if not any(other != path and is_within(other, path) for other in files)
    }
)
ROUTES = st.lists(
    st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names)), max_size=4
)
SEGMENTS = st.one_of(
    st.just("**"),
    st.sampled_from(
        ["*", "a", "b", "m", ".h", ".*", "a*", "?", "{a,b}", "{a,m/b}", "{**,a}", "[!b]", "*.py"]
    ),
)
PATTERNS = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join) | st.lists(
    SEGMENTS, min_size=1, max_size=3
).map(lambda names: "/" + "/".join(names))


def divided(files: dict[str, str], prefixes: list[str]) -> tuple[CompositeBackend, FlatBackend]:
    """Put each file where its longest route says; one backend has them all."""
    routes = {
        prefix: FlatBackend()
        for prefix in dict.fromkeys(prefixes)
        if not any(is_within(prefix, path) for path in files if path != prefix) and prefix not in files
    }
    default = FlatBackend()
    together = CompositeBackend(default, routes)
    for path, text in files.items():
        assert together.write(path, text).error is None
    for prefix in routes:
        default.files[f"{prefix}/hidden"] = "x\nx"
    return together, FlatBackend(files)


def lines(found: Any) -> list[tuple[str, int, str]]:
    return [(match["path"], match["line"], match["text"]) for match in found.matches]


def paths(found: Any) -> list[str]:
    return [match["path"] for match in found.matches]


@given(TREES, ROUTES, PATTERNS, st.sampled_from(["/", "/a", "/a/b", "/m", "/.h"]))
@example({"/m/a/b": "x"}, ["/m"], "**/a/b", "/")
@example({"/m/a": "x", "/m/m/a": "x"}, ["/m"], "**/m/a", "/")
@example({"/a/b/a": "x"}, ["/a/b"], "{a,m/b}/**", "/")
@example({"/.h/a": "x", "/.h/.h": "x"}, ["/.h"], "*", "/")
def test_files_are_found_alike(files: dict[str, str], routes: list[str], pattern: str, path: str) -> None:
    together, one = divided(files, routes)
    expected = sorted(paths(one.glob(pattern, path)))

    assert paths(together.glob(pattern, path)) == expected
    assert paths(asyncio.run(together.aglob(pattern, path))) == expected


@given(
    TREES,
    ROUTES,
    st.none() | PATTERNS,
    st.sampled_from([None, "/", "/a", "/m"]),
    st.none() | st.integers(0, 4),
)
@example({"/m/a": "x", "/z": "x"}, ["/m"], None, None, 1)
@example({"/a": "x\nx", "/b": "x"}, ["/a.py"], None, None, 3)
@example({}, ["/a"], None, None, 0)
@example({"/a.py": "x"}, ["/a"], None, None, 1)
def test_lines_are_found_alike(
    files: dict[str, str], routes: list[str], glob: str | None, path: str | None, cap: int | None
) -> None:
    together, one = divided(files, routes)

    found, expected = together.grep("x", path, glob, max_count=cap), one.grep("x", path, glob, max_count=cap)

    assert (lines(found), found.truncated) == (lines(expected), expected.truncated)


@given(TREES, ROUTES, st.sampled_from(["/", "/a", "/a/b", "/m", "/.h", "/nowhere"]))
def test_directories_list_alike_and_show_the_way_to_every_route(
    files: dict[str, str], routes: list[str], path: str
) -> None:
    together, one = divided(files, routes)
    marked = FlatBackend(files)
    for prefix in together.routes:
        marked.files[f"{prefix}/mark"] = ""

    found, expected = together.ls(path), marked.ls(path)

    assert found.code == expected.code
    kinds = {entry["path"]: entry.get("is_dir") for entry in expected.entries or ()}
    if path in {prefix.rstrip("/") for prefix in together.routes}:
        kinds.pop(f"{path}/mark")
    assert {entry["path"]: entry.get("is_dir") for entry in found.entries or ()} == kinds
    listed = [entry["path"] for entry in found.entries or ()]
    assert listed == sorted(listed)
    assert {entry["path"] for entry in one.ls(path).entries or ()} <= {*listed}


@given(TREES, ROUTES)
def test_every_file_reads_where_it_was_written(files: dict[str, str], routes: list[str]) -> None:
    together, _ = divided(files, routes)

    for path, text in files.items():
        found = together.read(path)
        assert found.file_data
        assert found.file_data["content"] == text

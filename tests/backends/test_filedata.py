"""Files at rest, and the reducer that makes one state of concurrent changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents.backends.filedata import (
    BINARY_HEAD,
    create_file_data,
    file_data_to_string,
    file_kind,
    file_version,
    looks_binary,
    update_file_data,
)
from deepagents.backends.state import reduce_files

P = "/a.txt"


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"content": content, "encoding": "utf-8", **more}


def on_base(content: str, base: str | None) -> dict[str, Any]:
    return text(content, base=base)


def edit(old: str, new: str, replace_all: bool = False) -> dict[str, Any]:
    return {"edit": [old, new, replace_all], "modified_at": "later"}


def test_a_file_knows_when_it_was_made_and_changed() -> None:
    made = create_file_data("a")
    changed = update_file_data(made, "b")

    assert made.get("created_at") == made.get("modified_at") == changed.get("created_at")
    assert changed.get("modified_at", "") >= made.get("modified_at", "")
    assert create_file_data("a", "then", "base64") | {"modified_at": ""} == {
        "content": "a",
        "encoding": "base64",
        "created_at": "then",
        "modified_at": "",
    }


@pytest.mark.parametrize(
    ("data", "kind"), [({"content": 1}, "int"), ({"content": ["a", 1]}, "list"), ({}, "NoneType")]
)
def test_other_content_is_refused_by_type(data: dict[str, Any], kind: str) -> None:
    with pytest.raises(TypeError, match=f"got {kind}"):
        file_data_to_string(data)


def test_the_version_names_the_content() -> None:
    assert (
        file_version({"content": "a"})
        == file_version(create_file_data("a"))
        == file_version({"content": ["a"]})
    )
    assert file_version({"content": "a"}) != file_version({"content": "b"})
    assert file_version({"content": "a"}) != file_version({"content": "a", "encoding": "base64"})
    assert file_version({"content": "\udc80"})


def test_the_files_given_are_not_changed() -> None:
    before = {P: text("a")}
    reduce_files(before, [{P: edit("a", "b")}, {P: None}])
    assert before == {P: text("a")}


def test_an_edit_that_no_longer_fits_leaves_the_file() -> None:
    files = {P: text("a"), "/list": {"content": [1]}}
    assert (
        reduce_files(files, [{P: edit("x", "y"), "/gone": edit("a", "b"), "/list": edit("a", "b")}]) == files
    )


def test_two_new_files_of_one_name_clash() -> None:
    same, other = text("b\n", base=None), text("c\n", base=None)

    assert reduce_files(None, [{P: same}, {P: same}]) == {P: text("b\n")}
    assert "=======" in reduce_files(None, [{P: same}, {P: other}])[P]["content"]


def test_a_clash_of_binary_files_leaves_both() -> None:
    current = {"content": "AAAA", "encoding": "base64"}
    files = reduce_files({P: current}, [{P: text("c", base="BBBB")}])

    assert files.pop(P) == text("c")
    ((path, kept),) = files.items()
    assert path.startswith(f"{P}.conflict-")
    assert len(path) == len(f"{P}.conflict-") + 8
    assert kept == current


CONTENTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n"]), max_size=4).map("".join)
CHANGES = st.one_of(
    st.none(),
    CONTENTS.map(text),
    st.builds(on_base, CONTENTS, st.none() | CONTENTS),
    st.builds(edit, CONTENTS, CONTENTS, st.booleans()),
    CONTENTS.map(lambda content: {"delete": file_version(text(content))}),
    st.just({"content": "AAAA", "encoding": "base64", "base": "BBBB"}),
    CONTENTS.map(lambda content: {"append": content, "modified_at": "t"}),
    st.just({"append": "AAAA", "encoding": "base64", "modified_at": "t"}),
)
WRITES = st.lists(st.dictionaries(st.sampled_from([P, "/b"]), CHANGES), max_size=6)


@given(WRITES, WRITES)
def test_the_batches_do_not_matter(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    given_first, given_second = copy.deepcopy((first, second))

    apart = reduce_files(reduce_files(None, first), second)

    assert apart == reduce_files(None, first + second) == reduce_files({}, [*first, *second])
    assert (first, second) == (given_first, given_second)
    assert all("base" not in data for data in apart.values())


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a.png", "image"),
        ("/a.JPG", "image"),
        ("/a.mkv", "video"),
        ("/a.mp3", "audio"),
        ("/a.pdf", "file"),
        ("/a.py", "text"),
        ("/a.tar.gz", "text"),
        ("/Makefile", "text"),
        ("/png", "text"),
        ("/.png", "image"),
        ("/a.png/b", "text"),
    ],
)
def test_the_ending_of_a_name_says_the_kind(path: str, kind: str) -> None:
    assert file_kind(path) == kind


def test_a_zero_byte_deep_in_a_text_does_not_matter() -> None:
    assert not looks_binary(b"a" * BINARY_HEAD + b"\0")

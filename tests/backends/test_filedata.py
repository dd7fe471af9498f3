"""Files at rest, and the reducer that makes one state of concurrent changes."""

from __future__ import annotations

import base64
import copy
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents.backends.file_changes import reduce_files
from deepagents.backends.filedata import (
    BINARY_HEAD,
    as_content,
    create_file_data,
    file_data_to_bytes,
    file_data_to_string,
    file_kind,
    file_size,
    file_version,
    looks_binary,
    update_file_data,
)
from deepagents.backends.results import FileData

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
    ("content", "string"), [("a", "a"), ([], ""), (["a", "b"], "a\nb"), (["a", ""], "a\n")]
)
def test_both_forms_of_content_are_read(content: Any, string: str) -> None:
    assert file_data_to_string({"content": content}) == string


@pytest.mark.parametrize(
    ("data", "kind"), [({"content": 1}, "int"), ({"content": ["a", 1]}, "list"), ({}, "NoneType")]
)
def test_other_content_is_refused_by_type(data: dict[str, Any], kind: str) -> None:
    with pytest.raises(TypeError, match=f"got {kind}"):
        file_data_to_string(data)


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", b"\xff" * 100])
def test_sizes_and_bytes_of_binary_files(data: bytes) -> None:
    binary = create_file_data(base64.b64encode(data).decode(), encoding="base64")
    assert file_size(binary) == len(data)
    assert file_data_to_bytes(binary) == data


def test_sizes_and_bytes_of_text_files() -> None:
    assert file_size({"content": "aü"}) == 3
    assert file_data_to_bytes({"content": ["a", "ü"]}) == "a\nü".encode()
    assert file_size({"content": "a"}) == 1
    assert file_size(cast("FileData", {})) == 0


def test_the_version_names_the_content() -> None:
    assert (
        file_version({"content": "a"})
        == file_version(create_file_data("a"))
        == file_version({"content": ["a"]})
    )
    assert file_version({"content": "a"}) != file_version({"content": "b"})
    assert file_version({"content": "a"}) != file_version({"content": "a", "encoding": "base64"})
    assert file_version({"content": "\udc80"})


def test_files_come_and_go() -> None:
    files = reduce_files(None, [{P: text("a"), "/b": text("b")}, {"/b": None, "/c": None}])
    assert files == {P: text("a")}


def test_a_replaced_file_keeps_its_time_of_creation() -> None:
    files = reduce_files({P: text("a", created_at="once")}, [{P: text("b", created_at="now")}])
    assert files == {P: text("b", created_at="once")}


def test_the_files_given_are_not_changed() -> None:
    before = {P: text("a")}
    reduce_files(before, [{P: edit("a", "b")}, {P: None}])
    assert before == {P: text("a")}


def test_an_edit_changes_what_is_there_now() -> None:
    files = reduce_files({P: text("one\ntwo\n")}, [{P: edit("one", "1")}, {P: edit("two", "2")}])
    assert files == {P: text("1\n2\n", modified_at="later")}


def test_an_edit_that_no_longer_fits_leaves_the_file() -> None:
    files = {P: text("a"), "/list": {"content": [1]}}
    assert (
        reduce_files(files, [{P: edit("x", "y"), "/gone": edit("a", "b"), "/list": edit("a", "b")}]) == files
    )


def test_text_alone_is_a_file() -> None:
    assert reduce_files(None, [{P: "a"}]) == {P: text("a")}


def test_content_of_a_wrong_type_gives_way_to_a_good_one() -> None:
    bad = {P: {"content": 1}}

    assert reduce_files(bad, [{P: text("a", base="b")}]) == {P: text("a")}
    assert reduce_files(bad, [{P: {"delete": "x"}}]) == bad
    assert reduce_files(bad, [{P: None}]) == {}


def test_a_new_text_on_an_unchanged_base_replaces_it() -> None:
    files = reduce_files({P: text("a\n", created_at="once")}, [{P: text("b\n", base="a\n")}])
    assert files == {P: text("b\n", created_at="once")}


def test_changes_of_one_base_land_together() -> None:
    base = "a\nb\nc\n"
    files = reduce_files(
        {P: text(base)}, [{P: text("A\nb\nc\n", base=base)}, {P: text("a\nb\nC\n", base=base)}]
    )
    assert files == {P: text("A\nb\nC\n")}


def test_a_clash_keeps_both_texts() -> None:
    files = reduce_files({P: text("a\n")}, [{P: text("b\n", base="a\n")}, {P: text("c\n", base="a\n")}])
    assert files == {P: text("<<<<<<< current\nb\n=======\nc\n>>>>>>> incoming\n")}


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


def test_a_change_outlives_a_deletion() -> None:
    changed = reduce_files({P: text("a")}, [{P: None}, {P: text("b", base="a")}])
    assert changed == {P: text("b")}

    guarded = {"delete": file_version(text("a"))}
    assert reduce_files({P: text("a")}, [{P: text("b", base="a")}, {P: guarded}]) == {P: text("b")}
    assert reduce_files({P: text("a")}, [{P: guarded}, {P: guarded}]) == {}


CONTENTS = st.lists(st.sampled_from(["a\n", "b\n", "c\n"]), max_size=4).map("".join)
CHANGES = st.one_of(
    st.none(),
    CONTENTS.map(text),
    st.builds(on_base, CONTENTS, st.none() | CONTENTS),
    st.builds(edit, CONTENTS, CONTENTS, st.booleans()),
    CONTENTS.map(lambda content: {"delete": file_version(text(content))}),
    st.just({"content": "AAAA", "encoding": "base64", "base": "BBBB"}),
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


@pytest.mark.parametrize(
    ("data", "binary"),
    [(b"", False), ("ü\r\n\u2028".encode(), False), (b"a\0b", True), (b"\xff\xfe", True), (b"\xc3", True)],
)
def test_bytes_that_are_no_text_are_seen(data: bytes, binary: bool) -> None:
    assert looks_binary(data) is binary


def test_a_zero_byte_deep_in_a_text_does_not_matter() -> None:
    assert not looks_binary(b"a" * BINARY_HEAD + b"\0")


def test_text_stays_text_and_the_rest_becomes_base64() -> None:
    assert as_content("/a.txt", "ü".encode()) == ("ü", "utf-8")
    assert as_content("/a.bin", b"\0") == (base64.b64encode(b"\0").decode(), "base64")
    assert as_content("/a.png", b"text") == (base64.b64encode(b"text").decode(), "base64")

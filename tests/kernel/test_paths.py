"""Virtual paths: one spelling, no way out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepagents._paths import is_within, name, normalise, overlap, parent
from deepagents.errors import BackendError

SPELLINGS = [
    ("", "/"),
    (".", "/"),
    ("/", "/"),
    ("//", "/"),
    ("/.", "/"),
    ("a", "/a"),
    ("./a", "/a"),
    ("//a", "/a"),
    ("/./a//b/", "/a/b"),
    ("a\\b", "/a/b"),
    ("\\\\a\\.\\b", "/a/b"),
    ("foo..bar.txt", "/foo..bar.txt"),
    ("/...", "/..."),
    ("/.env", "/.env"),
    ("/a/~", "/a/~"),
    ("/a b/ü.txt", "/a b/ü.txt"),
    ("/ab:c", "/ab:c"),
]


def test_a_path_has_one_spelling() -> None:
    assert [(path, normalise(path)) for path, _ in SPELLINGS] == SPELLINGS


@pytest.mark.parametrize(
    ("path", "fragment"),
    [
        ("..", "Path traversal not allowed: '..'"),
        ("/../etc/passwd", "Path traversal not allowed"),
        ("a/../b", "Path traversal not allowed"),
        ("a\\..\\b", "Path traversal not allowed"),
        ("~", "Path traversal not allowed"),
        ("~root/.ssh", "Path traversal not allowed"),
        ("C:\\Users", "Windows absolute paths are not supported"),
        ("d:/x", "Windows absolute paths are not supported"),
        ("/a\0b", "Control characters"),
        ("/a\nb", "Control characters"),
        ("/a\x85b", "Control characters"),
        ("/\ud800", "half a character"),
    ],
)
def test_a_dangerous_path_is_refused_by_name(path: str, fragment: str) -> None:
    with pytest.raises(BackendError) as caught:
        normalise(path)

    assert caught.value.code == "invalid_path"
    assert fragment in caught.value.text
    assert repr(path) in caught.value.text


@pytest.mark.parametrize("path", ["/" + "a" * 5000, "/a" * 300, "../" * 5000])
def test_a_path_that_no_system_could_hold_is_refused_in_few_words(path: str) -> None:
    with pytest.raises(BackendError) as caught:
        normalise(path)

    assert caught.value.code == "invalid_path"
    assert len(caught.value.text) < 200


@given(st.text())
def test_a_normalised_path_stays_as_it_is(path: str) -> None:
    try:
        once = normalise(path)
    except BackendError:
        return
    assert normalise(once) == once
    assert once.startswith("/")
    assert ".." not in once.split("/")


def test_a_path_has_a_parent_and_a_name() -> None:
    assert (parent("/a/b"), name("/a/b")) == ("/a", "b")
    assert (parent("/a"), name("/a")) == ("/", "a")
    assert (parent("/"), name("/")) == ("/", "")


WITHIN = [
    ("/a", "/", True),
    ("/", "/", True),
    ("/a", "/a", True),
    ("/a/b", "/a", True),
    ("/a/b", "/a/", True),
    ("/a", "/a/", True),
    ("/abc", "/ab", False),
    ("/", "/a", False),
    ("/b/a", "/a", False),
]


def test_being_within_goes_by_components() -> None:
    assert [(path, root, is_within(path, root)) for path, root, _ in WITHIN] == WITHIN


def test_overlap_looks_both_ways() -> None:
    assert overlap("/a", "/a/b")
    assert overlap("/a/b", "/a")
    assert not overlap("/a", "/ab")

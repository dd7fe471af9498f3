"""What git ignores is told without git."""

from __future__ import annotations

import time

import pytest

from deepagents.undo.ignores import Ignores

RULES = rb"""
# a remark
*.pyc
!keep.pyc
build/
/x
docs/**/y
foo/*.c
[a-c]z
\#h
logs/**
**/deep/q
"""


@pytest.mark.parametrize(
    ("path", "is_directory", "ignored"),
    [
        ("a.pyc", False, True),
        ("s/keep.pyc", False, False),
        ("build", True, True),
        ("build", False, False),
        ("s/build", True, True),
        ("x", False, True),
        ("z/x", False, False),
        ("docs/a/b/y", False, True),
        ("docs/y", False, True),
        ("foo/a.c", False, True),
        ("foo/b/a.c", False, False),
        ("bz", False, True),
        ("dz", False, False),
        ("#h", False, True),
        ("logs", True, False),
        ("logs/q", False, True),
        ("a/deep/q", False, True),
    ],
)
def test_a_path_is_ignored_as_git_ignores_it(path: str, is_directory: bool, ignored: bool) -> None:
    assert Ignores({"/r": RULES}, {"/r"}).ignores(f"/r/{path}", is_directory) is ignored


@pytest.mark.parametrize(
    ("rule", "path", "ignored"),
    [
        ("*a*a*a*a*a*a*a*a*b", "a" * 200, False),
        ("*a*a*a*a*a*a*a*a*b", "a" * 200 + "b", True),
        ("**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b", "a/" * 200 + "c", False),
        ("**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b", "a/" * 200 + "b", True),
        ("x*ab*abc", "xababc", True),
        ("x*ab*abc", "xabc", False),
        ("**/a*b/c/**/d", "a/ab/ab/c/d", True),
        ("/s/**/a*/**", "s/t/ab/c", True),
        ("/s/**/a*/**", "s/t/ab", False),
    ],
)
def test_many_stars_are_told_at_once(rule: str, path: str, ignored: bool) -> None:
    start = time.process_time()
    assert Ignores({"/r": rule.encode()}, {"/r"}).ignores(f"/r/{path}", False) is ignored
    assert time.process_time() - start < 1


def test_brackets_that_nothing_closes_are_told_at_once() -> None:
    rules, start = b"[" * 20_000 + b"\n\\[a[\n", time.process_time()
    ignored = [Ignores({"/r": rules}, {"/r"}).ignores(f"/r/{path}", False) for path in ("[a[", "a")]
    assert ignored == [True, False]
    assert time.process_time() - start < 1


def test_rules_do_not_reach_into_another_repository() -> None:
    rules = Ignores({"/r": b"*.log\n", "/r/inner": b""}, {"/r", "/r/inner"})
    assert rules.ignores("/r/a.log", False)
    assert not rules.ignores("/r/inner/a.log", False)

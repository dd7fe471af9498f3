"""Rules about paths: which one decides, what they cover, what a deletion would take away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deepagents.errors import ConfigError
from deepagents.permissions import Access, DeleteAccess, FilesystemPermission, Mode, Rules


def rule(*paths: str, mode: Mode = "deny", operations: Any = ("read", "write")) -> FilesystemPermission:
    return FilesystemPermission(operations=list(operations), paths=list(paths), mode=mode)


COVERED = [
    ("/secrets/**", "/secrets/key", True),
    ("/secrets/**", "/secrets/a/b/key", True),
    ("/secrets/**", "/secrets/.env", True),
    ("/secrets/**", "/secrets/.d/key", True),
    ("/secrets/**", "/secrets", False),
    ("/secrets/**", "/secrets2/key", False),
    ("/secrets/", "/secrets", True),
    ("/secrets/", "/secrets/.d/key", True),
    ("/secrets/.", "/secrets/key", True),
    ("/secrets", "/secrets", True),
    ("/secrets", "/secrets/key", False),
    ("/secrets//key", "/secrets/key", True),
    ("/**", "/.env", True),
    ("/**", "/.git/config", True),
    ("/**", "/", True),
    ("/", "/", True),
    ("/", "/a/.b", True),
    ("/*", "/.env", True),
    ("/*", "/a/b", False),
    ("/**/.env", "/.env", True),
    ("/**/.env", "/.a/b/.env", True),
    ("/**/*.pem", "/a/.pem", True),
    ("/**/*.pem", "/a/x.pem.txt", False),
    ("/{a,b}/**", "/b/.c", True),
    ("/{a,b}/**", "/c/.c", False),
    ("/a{,/**}", "/a", True),
    ("/a{,/**}", "/a/.b", True),
    ("/?/x", "/b/x", True),
    ("/a/*/c", "/a/.b/c", True),
    ("/a/*/c", "/a/b/d/c", False),
    (r"/a\*b", "/a*b", True),
    (r"/a\*b", "/axb", False),
    ("/.env", "/x/.env", False),
]


def test_a_pattern_covers_what_it_visibly_names() -> None:
    found = [
        (pattern, path, Rules([rule(pattern)], fold=False).decide("read", path) == "deny")
        for pattern, path, _ in COVERED
    ]

    assert found == COVERED


def test_the_first_rule_that_matches_decides_and_without_one_all_is_allowed() -> None:
    rules = Rules([rule("/a/open.txt", mode="allow"), rule("/a/**"), rule("/**", mode="interrupt")])

    assert rules.decide("read", "/a/open.txt") == "allow"
    assert rules.decide("read", "/a/x") == "deny"
    assert rules.decide("read", "/b") == "interrupt"
    assert Rules().decide("write", "/anything") == "allow"


def test_a_rule_holds_for_its_operations_only() -> None:
    rules = Rules([rule("/a/**", operations=["write"])])

    assert rules.decide("read", "/a/x") == "allow"
    assert rules.decide("write", "/a/x") == "deny"


def test_where_names_differ_by_more_than_case_only_so_do_patterns() -> None:
    assert Rules([rule("/Secrets/**")], fold=True).decide("read", "/sEcReTs/x") == "deny"
    assert Rules([rule("/caf\u00e9/**")], fold=True).decide("read", "/CAFE\u0301/x") == "deny"
    assert Rules([rule("/Secrets/**")], fold=False).decide("read", "/secrets/x") == "allow"


@pytest.mark.parametrize(
    ("wrong", "error", "complaint"),
    [
        ({"paths": ["a"]}, ValueError, "must start with '/', got 'a'"),
        ({"paths": ["/a", "b"]}, ValueError, "must start with '/', got 'b'"),
        ({"paths": ["/a/../b"]}, ValueError, "must not contain '..'"),
        ({"paths": ["/a\\..\\b"]}, ValueError, "must not contain '..'"),
        ({"paths": ["/{a,.}./b"]}, ValueError, "'..' segment"),
        ({"paths": ["/~/a"]}, NotImplementedError, "'~'"),
        ({"paths": ["/a\\b"]}, ConfigError, "write '/a/b'"),
        ({"paths": ["/a/x\\.env"]}, ConfigError, "write '/a/x/.env'"),
        ({"paths": ["/a\\"]}, ConfigError, "write '/a/'"),
        ({"paths": "/a"}, ConfigError, "must be a list"),
        ({"paths": [Path("/a")]}, ConfigError, r"must be text such as '/secrets/\*\*', got .*Path\('/a'\)"),
        ({"paths": []}, ConfigError, "names something"),
        ({"operations": ["execute"]}, ConfigError, "known are"),
        ({"operations": "read"}, ConfigError, "must be a list"),
        ({"mode": "ask"}, ConfigError, "known are"),
        ({"paths": ["/" + "{a,b}" * 12]}, ConfigError, "expansions"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused(wrong: Any, error: type[Exception], complaint: str) -> None:
    right: dict[str, Any] = {"operations": ["read"], "paths": ["/a"]}
    with pytest.raises(error, match=complaint):
        FilesystemPermission(**{**right, **wrong})


def test_two_dots_inside_a_name_are_a_name() -> None:
    assert Rules([rule("/a..b/*.txt")]).decide("read", "/a..b/x.txt") == "deny"


def test_only_rules_make_rules() -> None:
    wrong: Any = [{"paths": ["/a"]}]
    with pytest.raises(ConfigError, match="FilesystemPermission"):
        Rules(wrong)


DELETIONS = [
    # A literal pattern: whole components, either way.
    ("/a/b", "/a/b", True),
    ("/a/b", "/a", True),
    ("/a/b", "/a/b/c", True),
    ("/a/b", "/a/bc", False),
    ("/a/b", "/a/c", False),
    ("/a/b", "/", True),
    # A wildcard at the top could match anywhere.
    ("/**", "/x", True),
    ("/**/.env", "/x", True),
    ("/*.txt", "/x", True),
    # A directory and all below.
    ("/a/**", "/a", True),
    ("/a/**", "/a/b", True),
    ("/a/**", "/a/b/c", True),
    ("/a/**", "/b", False),
    ("/a/**", "/ab", False),
    ("/a/b/**", "/a", True),
    ("/a/b/**", "/a/c", False),
    ("/a/", "/a", True),
    ("/a/", "/a/b", True),
    # One name below the anchor: only what matches, and what is inside of it.
    ("/a/*.txt", "/a", True),
    ("/a/*.txt", "/a/x.txt", True),
    ("/a/*.txt", "/a/x.txt/y", True),
    ("/a/*.txt", "/a/sub", False),
    ("/a/*.txt", "/a/sub/deep", False),
    ("/a/*", "/a/sub", True),
    ("/a/*", "/a/sub/deep", True),
    ("/a/*", "/a/.sub", True),
    # More than one name below the anchor: in doubt, blocked.
    ("/a/*/c", "/a/x", True),
    ("/a/*/c", "/a/x/c", True),
    ("/a/**/c", "/a/x/y", True),
    ("/a/*/c", "/b", False),
    # Braces: each alternative has an anchor of its own.
    ("/{a,b}/c", "/b", True),
    ("/{a,b}/c", "/d", False),
    ("/x/{a,b/**}", "/x/b/c", True),
    ("/x/{a,b/**}", "/x/c", False),
]


def test_deleting_a_directory_is_blocked_when_it_could_take_away_what_is_denied() -> None:
    found = [
        (pattern, target, Rules([rule(pattern)]).deletion_blockers(target))
        for pattern, target, _ in DELETIONS
    ]

    assert found == [(pattern, target, [pattern] * blocked) for pattern, target, blocked in DELETIONS]


def test_no_rule_that_allows_lifts_a_block_and_each_pattern_is_named_once() -> None:
    rules = Rules([rule("/a/**", mode="allow"), rule("/a/b", "/a/c"), rule("/a/b"), rule("/z/**")])

    assert rules.deletion_blockers("/a") == ["/a/b", "/a/c"]
    assert not DeleteAccess(rules, "write").all_below("/a")


def test_rules_about_reading_block_no_deletion() -> None:
    assert Rules([rule("/a/**", operations=["read"])]).deletion_blockers("/a") == []


@pytest.mark.parametrize(
    ("rules", "directory", "free"),
    [
        ([rule("/a/**")], "/b", True),
        ([rule("/a/**")], "/", False),
        ([rule("/a/**")], "/a/x", False),
        ([rule("/a/b/*.txt")], "/a/c", True),
        ([rule("/a/b/*.txt")], "/a/b/c", True),
        ([rule("/**/.env")], "/anywhere", False),
        ([rule("/a/**", mode="allow"), rule("/**")], "/a/x", True),
        ([rule("/a/**", mode="allow"), rule("/**")], "/a", True),
        ([rule("/**"), rule("/a/**", mode="allow")], "/a/x", False),
        ([rule("/a/*", mode="allow"), rule("/**")], "/a", False),
        ([rule("/a/**", mode="interrupt")], "/a", False),
        ([rule("/a/**", operations=["write"])], "/a", True),
    ],
)
def test_a_directory_is_free_when_no_rule_can_reach_into_it(
    rules: list[FilesystemPermission], directory: str, free: bool
) -> None:
    assert Rules(rules).is_free_below("read", directory) is free
    assert Access(Rules(rules), "read").all_below(directory) is free


WAITING = [
    # pattern, directory, whether looking there waits
    ("/s/**", "/s", True),
    ("/s/**", "/s/deep", True),
    ("/s/*", "/s", True),
    ("/s/*", "/s/deep", True),
    ("/s/*", "/s/deep/er", False),
    ("/s", "/s", True),
    ("/s/**", "/", False),
    ("/s/**", "/other", False),
    ("/**/.env", "/", False),
    ("/s/*.txt", "/s", False),
    ("/**", "/", True),
    ("/**", "/x", True),
]


def test_looking_around_waits_only_where_all_of_it_waits() -> None:
    found = [
        (pattern, directory, Rules([rule(pattern, mode="interrupt")]).waits("read", directory))
        for pattern, directory, _ in WAITING
    ]

    assert found == WAITING


def test_what_is_approved_is_approved_with_all_below_and_the_rest_is_kept_in_mind() -> None:
    rules = Rules([rule("/s/top", mode="deny"), rule("/s/**", mode="interrupt")])
    access = Access(rules, "read", ["/s/a"])

    assert access("/s/a/x")
    assert not access("/s/b")
    assert not access("/s/top")
    assert list(access.held_back) == ["/s/**"]


def test_each_pattern_tells_the_place_that_it_is_about() -> None:
    rules = Rules([rule("/a/{b,c}/*.txt"), rule("/d", mode="interrupt"), rule("/e", mode="allow"), rule("/")])

    assert list(rules.restrictions()) == [
        ("/a/{b,c}/*.txt", "/a/b"),
        ("/a/{b,c}/*.txt", "/a/c"),
        ("/d", "/d"),
        ("/", "/"),
    ]


SEGMENTS = st.one_of(
    st.sampled_from(["**", "{a,.b}*", "[ab]", "[!a]b", r"\[a", "a[", "?é"]),
    st.text("ab.*?", min_size=1, max_size=4).filter(lambda each: each != ".."),
)
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
RULES = st.lists(
    st.builds(
        FilesystemPermission,
        st.sampled_from([["read"], ["write"], ["read", "write"]]),
        st.lists(PATHS, min_size=1, max_size=3),
        st.sampled_from(["allow", "deny", "interrupt"]),
    ),
    max_size=3,
)
NAMES = st.text("ab.é[", min_size=1, max_size=4).filter(lambda each: each.strip("."))
DIRECTORIES = st.lists(st.lists(NAMES, max_size=4).map(lambda names: "/" + "/".join(names)), min_size=2)


@given(RULES, DIRECTORIES, NAMES, st.booleans())
@example([rule("/**/a*b")], ["/x", "/y"], "ab", False)
@example([rule("/**/a"), rule("/**/*a.b"), rule("/**/.bab")], ["/a", "/b"], "ba.b", False)
@example([rule("/**/a"), rule("/**/*a.b"), rule("/**/.bab")], ["/a", "/b"], ".bab", False)
def test_only_doubtful_names_are_matched(
    rules: list[FilesystemPermission], directories: list[str], name: str, fold: bool
) -> None:
    every = Rules(rules, fold=fold)
    lifted = Rules([each for each in rules if each.mode != "allow"], fold=fold)
    for directory in directories:
        path = f"{directory.rstrip('/')}/{name}"
        matched = [lifted.match("read", path) is not None, lifted.match("write", path) is not None]

        asked = [every.doubtful_names(directory, each)(name) for each in ("read", "write")]
        assert list(map(bool, asked)) == matched
        assert bool(every.doubtful_names(directory)(name)) is any(matched)


@given(RULES, DIRECTORIES, NAMES, st.booleans())
@example([rule("/**/a/**")], ["/b", "/c", "/a", "/a/b"], "b", False)
def test_rules_say_the_same_in_all_directories_of_one_place(
    rules: list[FilesystemPermission], directories: list[str], below: str, fold: bool
) -> None:
    kept = Rules(rules, fold=fold)
    said: dict[object, object] = {}
    for directory in directories:
        path = f"{directory.rstrip('/')}/{below}"
        alone = Rules(rules, fold=fold)
        free = alone.is_free_below("read", directory), alone.is_closed_below("write", directory)
        now = *free, alone.match("read", path), alone.match("write", f"{path}/a")

        assert (kept.is_free_below("read", directory), kept.is_closed_below("write", directory)) == free
        assert said.setdefault(kept.place(directory), now) == now


def test_rules_say_the_same_of_the_first_path_and_of_the_thousandth() -> None:
    rules = Rules([FilesystemPermission(["read", "write"], ["/secret/**", "/**/*.key"], "deny")])
    names = ["/secret/a", "/open/a", "/open/b.key", "/", "/secret"]

    answers = [[rules.decide("write", each) for each in names] for _ in range(200)]

    assert answers == [["deny", "allow", "deny", "allow", "allow"]] * 200

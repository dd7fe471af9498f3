"""The glob dialect: one table, and a slow matcher to compare with."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deepagents._globs import InvalidGlobPatternError, anchor, compile_glob
from tests.backends.naive_globs import Pattern, patterns

TABLE = [
    # No slash: the name, at any depth.
    ("*.py", "a.py", True),
    ("*.py", "src/a.py", True),
    ("*.py", "src/deep/a.py", True),
    ("*.py", ".github/a.py", True),
    ("*.yml", ".github/workflows/ci.yml", True),
    ("*.py", "a.pyc", False),
    ("a.py", "x/a.py", True),
    ("a.py", "x/aa.py", False),
    ("**", ".git/config", True),
    ("**", ".git/.config", False),
    ("*", ".env", False),
    (".*", ".env", True),
    (".*", "a/.env", True),
    ("?env", ".env", False),
    ("[.]env", ".env", False),
    (r"\.env", ".env", True),
    ("A.PY", "a.py", False),
    ("", "a", False),
    (".", "a", False),
    # A slash: the whole path.
    ("src/*.py", "src/a.py", True),
    ("src/*.py", "src/deep/a.py", False),
    ("src/*.py", "lib/src/a.py", False),
    ("src/**/*.py", "src/a.py", True),
    ("src/**/*.py", "src/x/y/a.py", True),
    ("src/**/*.py", "src/.x/a.py", False),
    ("src/**/.x/*.py", "src/y/.x/a.py", True),
    ("**/*.yml", "ci.yml", True),
    ("**/*.yml", ".github/workflows/ci.yml", False),
    ("**/*.yml", "a/.ci.yml", False),
    ("**/.*.yml", "a/.ci.yml", True),
    ("**/a/**/b/**/c", "x/a/y/b/c", True),
    ("**/a/**/b/**/c", "a/b/a/b/z/c", True),
    ("**/a/**/b/**/c", "a/c/b", False),
    ("**/**/a", "a", True),
    ("a/**", "a/b/c", True),
    ("a/**", "a", False),
    ("a.py/**", "a.py", False),
    ("a/**/**", "a/b", True),
    # A leading slash anchors.
    ("/*.py", "a.py", True),
    ("/*.py", "src/a.py", False),
    ("/**/*.py", "src/a.py", True),
    ("/a.py", "a.py", True),
    ("./*.py", "a.py", True),
    ("./*.py", "src/a.py", False),
    # Trailing slashes name directories; empty segments vanish.
    ("a/", "a", False),
    ("*/", "a/b", False),
    ("a/.", "a", False),
    ("src/**/", "src/x/a", True),
    ("**/", "a/b", True),
    ("/", "a", False),
    ("a//b.py", "a/b.py", True),
    # Braces and brackets.
    ("*.{py,md}", "a.md", True),
    ("*.{py,md}", "a.txt", False),
    ("{a,b{c,d}}.py", "bd.py", True),
    ("{a,b{c,d}}.py", "b.py", False),
    ("{src,lib}/**/*.py", "lib/x/a.py", True),
    ("f{1..3}.txt", "f2.txt", True),
    ("{a,b", "{a,b", True),
    (r"\{a,b\}", "{a,b}", True),
    ("[abc].py", "b.py", True),
    ("[a-c].py", "d.py", False),
    ("[!abc].py", "d.py", True),
    ("[^abc].py", "a.py", False),
    ("[]x].py", "].py", True),
    ("[!]x].py", "].py", False),
    (r"[\]].py", "].py", True),
    ("[a-].py", "-.py", True),
    ("[z-a].py", "m.py", False),
    ("[!z-a].py", "m.py", True),
    ("x/a[.-0]b", "x/a/b", False),
    ("x/a[!q]b", "x/a/b", False),
    ("x/a?b", "x/a/b", False),
    ("[", "a", False),
    ("[abc", "a", False),
    ("[abc", "[abc", True),
    ("a]", "a]", True),
    ("[a/b]", "a", False),
    # Other characters stand for themselves.
    ("!a.py", "!a.py", True),
    ("!a.py", "b.py", False),
    (r"a\*.py", "a*.py", True),
    (r"a\*.py", "ab.py", False),
    (r"a\**.py", "a*b.py", True),
    ("a\\", "a\\", True),
    ("a+(b).py", "a+(b).py", True),
    ("a*b*c*d", "a1b2c3d", True),
    ("a*b*c*d", "a1c2b3d", False),
    ("a**b", "axxb", True),
    ("***", "abc", True),
    ("*\n", "a\n", True),
]


def test_the_table() -> None:
    found = [(pattern, path, *in_three_ways(pattern, path)) for pattern, path, _ in TABLE]

    assert found == [(pattern, path, *[expected] * 3) for pattern, path, expected in TABLE]


def in_three_ways(pattern: str, path: str) -> tuple[bool, bool, bool]:
    directory, _, name = path.rpartition("/")
    glob = compile_glob(pattern)
    return glob(path), glob.matches(path), bool(glob.names_in(directory)(name))


@pytest.mark.parametrize("pattern", ["../a", "a/../b", "..", "a\\..\\b", "{a,..}/b", "{.,x}./b", "/.."])
def test_a_way_out_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidGlobPatternError, match="Path traversal not allowed") as caught:
        compile_glob(pattern)
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize("pattern", ["{a,b}" * 18, "{1..5000}", "{" * 5000])
def test_a_pattern_beyond_reason_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidGlobPatternError, match="Invalid glob pattern"):
        compile_glob(pattern)


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        ("[eE][nN][vV]", ["env", "ENV", "eNv"], ["en", "envv", "enw"]),
        ("*.[kK][eE][yY]", ["a.key", "b.KEY"], ["a.\N{KELVIN SIGN}ey", "key"]),
        ("[sS][sS]?[hH]*", ["ssxh", "SSxHa"], ["\N{LATIN SMALL LETTER LONG S}sxh", "ss/h"]),
        ("[aA]b[cC]", ["abc", "Abc", "AbC"], ["aBc"]),
        ("[aa][Bb][aB]", ["aba", "aBB"], ["Aba", "abA", "abb"]),
        (r"\[aA]", ["[aA]"], ["a", "A"]),
        ("[!aA]", ["b"], ["a", "A"]),
    ],
)
def test_letters_in_any_case(pattern: str, matched: list[str], others: list[str]) -> None:
    found = compile_glob(pattern)

    assert [name for name in [*matched, *others] if found(name)] == matched


def test_one_pattern_is_compiled_once() -> None:
    assert compile_glob("*.py") is compile_glob("*.py")


ANCHORS = [
    ("*.py", "/"),
    ("a.py", "/"),
    ("/a.py", "/"),
    ("src/*.py", "/src"),
    ("/src/lib/a.py", "/src/lib"),
    ("src//./lib/*.py", "/src/lib"),
    ("src/*/lib/a.py", "/src"),
    ("s[r]c/a.py", "/"),
    ("{a,b}/c", "/"),
    ("a?/c", "/"),
]


def test_a_pattern_has_an_anchor() -> None:
    assert [(pattern, anchor(pattern)) for pattern, _ in ANCHORS] == ANCHORS


ENTERED = [
    # pattern, directory, whether a walk must enter it
    ("*.py", ".git/deep", True),
    ("*.py", "", True),
    ("src/*.py", "", True),
    ("src/*.py", "src", True),
    ("src/*.py", "lib", False),
    ("src/*.py", "src/deep", False),
    ("src/*.py", "src/a.py/deeper", False),
    ("**/*.py", "a/b/c", True),
    ("**/*.py", "a/.git", False),
    ("**/.git/*", "a/.git", True),
    ("src/**", "src/a", True),
    ("src/**", "src/.a", False),
    ("a/*/b/**/c", "a/x/b/y/z", True),
    ("a/*/b/**/c", "a/x/y", False),
    ("{a,b}/c", "b", True),
    ("{a,b}/c", "c", False),
    ("a/", "a", False),
    ("", "", False),
]


def test_a_walk_may_skip_what_cannot_match() -> None:
    found = [(pattern, place, compile_glob(pattern).may_match_below(place)) for pattern, place, _ in ENTERED]

    assert found == ENTERED


@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "b", "**/" + "*/**/" * 30 + "b", "**/*a*a*a*a*a*b/**/*a*a*a*a*b"]
)
def test_a_hostile_pattern_takes_no_time(pattern: str) -> None:
    assert not compile_glob(pattern)("a" * 200 + "/" + "a/" * 100 + "!")


NAMES = st.text("ab.", min_size=1, max_size=4).filter(lambda each: each not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)
PATTERNS = st.lists(
    st.one_of(st.just("**"), st.text("ab.*?", max_size=4).filter(lambda each: each != "..")), max_size=6
).map("/".join)


@given(patterns("ab."), PATHS)
def test_it_agrees_with_a_plain_matcher(pattern: Pattern, path: str) -> None:
    try:
        glob = compile_glob(pattern.shown)
    except InvalidGlobPatternError:
        assert ".." in pattern.shown
        return
    assert not pattern.is_refused()
    assert glob(path) is pattern.matches(path)


@given(PATTERNS, PATHS)
def test_a_skipped_directory_holds_no_match(pattern: str, path: str) -> None:
    glob = compile_glob(pattern)
    above = path.rpartition("/")[0]
    if not glob.may_match_below(above):
        assert not glob(path)


@given(PATTERNS | st.sampled_from(["{a,b/b}/**", "**/{a,.b}/*", "{**,a}/b", r"\{a,b}/*", "{a/,b}*"]), PATHS)
@example("**/a/b", "a/b")
@example("**/*/b", "a/b/b")
@example("{a/{b,a},b}/*", "a/b/b")
def test_a_pattern_goes_on_below_a_directory(pattern: str, path: str) -> None:
    glob = compile_glob(pattern)
    names = path.split("/")
    for depth in range(len(names)):
        onward = [compile_glob(each) for each in glob.below("/".join(names[:depth]))]
        rest = "/".join(names[depth:])
        assert any(each(rest) for each in onward) is glob(path)


@settings(max_examples=30)
@given(st.text() | st.text("{}[]!^*?/\\.,-ab$()1|"), st.text("ab/."))
def test_no_pattern_fails_in_another_way(pattern: str, path: str) -> None:
    try:
        glob = compile_glob(pattern)
    except InvalidGlobPatternError:
        return
    glob(path)
    glob.may_match_below(path)


@given(PATTERNS, PATHS)
@example("**", ".git/config")
@example("src/**", "src/.x/a")
@example("**/a", "a")
def test_the_name_in_its_directory_says_the_same(pattern: str, path: str) -> None:
    glob = compile_glob(pattern)
    directory, _, name = path.rpartition("/")

    assert bool(glob.names_in(directory)(name)) is glob(path)


@pytest.mark.parametrize(
    ("pattern", "by_name", "below", "depth"),
    [
        ("*.py", True, "/", None),
        ("src/*.py", False, "/src", 2),
        ("/a/b/**/c", False, "/a/b", None),
        ("{a,b/c}/d", False, "/", 3),
        (r"a\[b/c", False, "/", 2),
        ("a/", False, "/a", 0),
    ],
)
def test_a_pattern_is_described_for_a_matcher_elsewhere(
    pattern: str, by_name: bool, below: str, depth: int | None
) -> None:
    said = compile_glob(pattern).describe()

    assert (said["by_name"], said["below"], said["depth"]) == (by_name, below, depth)

"""Patterns neither lead out nor take more than their time, and a search is never an option of a program."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.testing import call, calls
from tests.attacks.harness import HINT, Ground, every_other, in_turn
from tests.conftest import CallMode

SECONDS = 8.0
"""Of processor time: well over the bound of one search, far below what these would take without it."""

WAYS_OUT = {
    "dot-dot": "../outside/*",
    "dot-dot after the root": "/../outside/*",
    "dot-dot in the middle": "d/../../outside/*",
    "dot-dot behind stars": "**/../../outside/**",
    "dot-dot in braces": "{..,d}/outside/*",
    "dot-dot made by braces": "{.,d}{.,x}/outside/*",
    "dot-dot across nested braces": "{d,{.,x}.}/outside/*",
    "dot-dot with backslashes": "..\\outside\\*",
    "dot-dot in a class": "[.][.]/outside/*",
    "dot-dot escaped": "\\.\\./outside/*",
    "dot-dot by question marks": "??/outside/*",
    "dot-dot by stars": ".*/outside/*",
    "a home directory": "~/**",
    "the root of the machine": "/etc/passwd",
    "a link out": "to-directory/**",
    "links out by a wildcard": "*/secret.txt",
    "links out at any depth": "**/secret.txt",
    "an extended pattern": "@(..|d)/outside/*",
    "a slash in a class": "[./]outside/*",
    "NUL": "\0/../outside/*",
}
BOMBS = {
    "braces": "{a,b}" * 40,
    "a range": "{1..999999999}",
    "nested braces": "{a," * 2000 + "b" + "}" * 2000,
    "stars": "*a" * 60 + "b",
    "stars at any depth": "**/" * 1300 + "x",
    "stars at far too many depths": "**/" * 5000 + "x",
    "stars between names": "**/a/" * 40 + "x",
    "unclosed classes": "[" * 50_000,
    "unclosed braces": "{" * 5000,
}
EXPRESSIONS = {
    "nested quantifiers": "(a+)+$",
    "nested stars": "(.*)*x",
    "counted repeats": "(a{1,100}){1,100}{1,100}$",
    "a back-reference": r"(a*)\1(a*)\2x",
    "a look-ahead": "(?=(a+))*b",
    "recursion": "(a(?R))*$",
    "unclosed groups": "(" * 5000,
    "a fuzzy match": "(?:aaaaaaaaaaaaaaaaaaaa){e<=10}b",
    "a repeat that fills the memory": "a{1000000000}",
    "repeats of repeats": "(?:(?:a{1000}){1000}){1000}",
    "a repeat hidden by leading zeros": ".{" + "0" * 20 + "1000000000}",
    "a repeat hidden in comments": "(?x)a{1#}\n000000000}",
    "a very long expression": "(?i)" + "|".join(map(str, range(200_000))),
    "groups in groups": "(?:" * 50_000 + "a" + ")" * 50_000,
    "a long alternation": "|".join("a" * n + "b" for n in range(1, 400)),
}
OPTIONS = {
    "a preprocessor": "--pre=cat",
    "patterns from a file": "-f/etc/passwd",
    "patterns from a file outside": "--file=../outside/secret.txt",
    "following links": "--follow",
    "a lone dash": "-",
    "the end of options": "--",
}


def test_no_pattern_leads_out(linked: Ground, call_mode: CallMode) -> None:
    searches = [
        calls(
            ("glob", {"pattern": pattern}),
            ("glob", {"pattern": pattern, "path": "/d"}),
            ("grep", {"pattern": HINT, "glob": pattern, "output_mode": "content"}),
            ("grep", {"pattern": "", "glob": pattern, "output_mode": "count"}),
        )
        for pattern in every_other(call_mode, WAYS_OUT)
    ]
    run = linked.run(call_mode, *searches)

    assert run.problems() == []
    assert "secret" not in "".join(answer.text for answer in run.answers if answer.status == "success")


@pytest.mark.parametrize("where", ["disk", "state"])
@in_turn("pattern", BOMBS)
def test_no_pattern_explodes(disk: Ground, call_mode: CallMode, pattern: str, where: str) -> None:
    name = "a" * 200
    (disk.root / name).write_text("x")
    if where == "state":
        disk.options["backend"] = StateBackend()
        disk.given = {"files": {f"/{name}": {"content": "x", "encoding": "utf-8"}}}
    begin = time.process_time()
    run = disk.run(
        call_mode,
        call("glob", pattern=pattern),
        call("grep", pattern="x", glob=pattern),
    )

    assert run.problems() == []
    assert time.process_time() - begin < SECONDS


@in_turn("expression", EXPRESSIONS)
def test_no_expression_runs_for_long(disk: Ground, call_mode: CallMode, expression: str) -> None:
    (disk.root / "long.txt").write_text("a" * 5_000 + "\n" + "a" * 50 + "!\n")
    begin = time.process_time()
    run = disk.run(call_mode, call("grep", pattern=expression, regex=True))

    assert run.problems() == []
    assert time.process_time() - begin < SECONDS


def test_what_is_searched_for_is_no_option(linked: Ground, call_mode: CallMode) -> None:
    searches = [
        calls(
            ("grep", {"pattern": pattern, "output_mode": "content"}),
            ("grep", {"pattern": HINT, "glob": pattern, "output_mode": "content"}),
        )
        for pattern in every_other(call_mode, OPTIONS)
    ]
    run = linked.run(call_mode, *searches)

    assert run.problems() == []


def test_without_the_search_program_nothing_leads_out_either(
    linked: Ground, call_mode: CallMode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    linked.options["backend"] = FilesystemBackend(linked.root)
    run = linked.run(
        call_mode,
        call("grep", pattern=f"{HINT}.*", regex=True, output_mode="content"),
        call("grep", pattern=HINT, output_mode="content", context=5),
    )

    assert run.problems() == []

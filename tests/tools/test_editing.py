"""An edit lands, or what the model reads says what to do; nothing is guessed, and nobody's work is lost."""

from __future__ import annotations

from langchain_core.messages import AIMessage

from deepagents import FilesystemPermission
from tests.tools.bench import Bench, bench, call, code_of, meddling

__all__ = ["bench"]

CODE = "def add(a, b):\n    # Adds.\n    return a + b\n"
READ = call("read_file", file_path="/a.py")


def edit(old: str, new: str, **options: bool) -> AIMessage:
    return call("edit_file", file_path="/a.py", old_string=old, new_string=new, **options)


def test_an_edit_that_differs_in_looks_lands_and_says_so(bench: Bench) -> None:
    bench.place("/a.py", CODE)
    done = bench.run(edit("# Adds.\nreturn a + b", "# Subtracts.\nreturn a - b"))[0]

    assert done.text.endswith("of the string in '/a.py' (matched lines 2-3 apart from indentation)")
    assert bench.content("/a.py") == "def add(a, b):\n    # Subtracts.\n    return a - b\n"


def test_where_two_places_fit_nothing_is_changed(bench: Bench) -> None:
    twins = "if a:\n    go()\nif b:\n        go()\n"
    bench.place("/a.py", twins)
    refused, done = bench.run(edit("  go()  ", "stop()"), edit("if b:\n    go()", "if b:\n    stop()"))

    assert "2 places fit apart from whitespace: line 2 (in `if a:`), line 4 (in `if b:`)" in refused.content
    assert "lines 3-4" in done.content
    assert bench.content("/a.py") == "if a:\n    go()\nif b:\n        stop()\n"


def test_all_places_at_once_take_the_exact_text(bench: Bench) -> None:
    bench.place("/a.py", CODE)

    assert code_of(bench.run(edit("return  a", "return b", replace_all=True))[0]) == "no_match"
    assert bench.content("/a.py") == CODE


def test_a_file_that_changed_elsewhere_takes_an_exact_edit(bench: Bench) -> None:
    if bench.where == "state":
        return
    bench.place("/a.py", CODE)
    theirs = CODE.replace("# Adds.", "# Adds two numbers.")
    write = call("write_file", file_path="/a.py", content="mine")
    _, done, refused = bench.run(READ, meddling(bench, "/a.py", theirs, edit("a + b", "b + a")), write)

    assert "Other parts of the file changed since it was read" in done.content
    assert code_of(refused) == "stale_version"
    assert bench.content("/a.py") == theirs.replace("a + b", "b + a")


def test_a_file_that_changed_takes_no_edit_that_may_be_about_something_else(bench: Bench) -> None:
    if bench.where == "state":
        return
    theirs = f"{CODE}\n\ndef plus(a, b):\n    return a + b\n"
    for old, options in (("return  a + b", {}), ("# Adds.", {"replace_all": True}), ("return a + b", {})):
        bench.place("/a.py", CODE)
        _, refused = bench.run(READ, meddling(bench, "/a.py", theirs, edit(old, "pass", **options)))

        assert code_of(refused) == "stale_version"
        assert bench.content("/a.py") == theirs


def test_a_line_end_that_was_escaped_in_the_new_text_alone_is_named(bench: Bench) -> None:
    bench.place("/a.py", CODE)
    done, printed = bench.run(edit("# Adds.", r"# Adds.\n    # Both."), edit("return a", r"print('\n')"))

    assert "new_string has the two characters \\ and n" in done.content
    assert "two characters" not in printed.content
    assert r"# Adds.\n    # Both." in (bench.content("/a.py") or "")


def test_a_rule_against_reading_keeps_looks_from_being_tried(bench: Bench) -> None:
    rules = [FilesystemPermission(["read"], ["/a.py"], "deny")]
    bench.place("/a.py", CODE)
    refused = bench.run(edit("return  a + b", "pass"), permissions=rules)[0]

    assert code_of(refused) == "no_match"
    assert bench.content("/a.py") == CODE

"""Changing lines by anchors: what the model is shown, what lands, and what a refusal says to do next."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import FilesystemPermission, HarnessProfile, create_deep_agent, register_harness_profile
from deepagents.backends import FilesystemBackend
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of, meddling

TEXT = "def one():\n    x = 1\n\n    return x\n\ndef two():\n    x = 2\n\n    return x\n"
ANCHOR = re.compile(r"^(\d+:[0-9a-z]{3})\|", re.MULTILINE)


def read(bench: Bench, path: str = "/a.py", **arguments: Any) -> str:
    return bench.run(call("read_file", file_path=path, **arguments), edit_form="anchors")[0].text


def anchors(bench: Bench, path: str = "/a.py") -> list[str]:
    """Return the anchors of a file as the model is shown them; that of line 1 is at 1."""
    return ["0", *ANCHOR.findall(read(bench, path))]


def change(bench: Bench, *edits: dict[str, Any], path: str = "/a.py", **options: Any) -> Any:
    return bench.run(call("edit_lines", file_path=path, edits=[*edits]), edit_form="anchors", **options)[0]


@pytest.fixture
def at(bench: Bench) -> list[str]:
    bench.place("/a.py", TEXT)
    return anchors(bench)


def test_lines_are_shown_with_number_and_hash(bench: Bench) -> None:
    bench.place("/a.py", TEXT)
    shown = read(bench)

    assert [row.partition("|")[2] for row in shown.split("\n")] == TEXT.split("\n")[:-1]
    assert len(ANCHOR.findall(shown)) == 9


def test_a_page_shows_the_anchors_of_the_whole(bench: Bench) -> None:
    bench.place("/a.py", TEXT)

    assert ANCHOR.findall(read(bench, offset=5, limit=2)) == anchors(bench)[6:8]


def test_several_edits_land_together_and_the_new_anchors_are_shown(bench: Bench, at: list[str]) -> None:
    done = change(
        bench,
        {"op": "replace", "anchor": at[2], "text": "    x = 10\n    y = 11\n"},
        {"op": "insert", "anchor": at[6], "text": '    "Two."'},
        {"op": "delete", "anchor": at[3], "to": at[4]},
        {"op": "insert", "anchor": "0", "text": "import os"},
    )

    assert bench.content("/a.py") == (
        'import os\ndef one():\n    x = 10\n    y = 11\n\ndef two():\n    "Two."\n    x = 2\n\n    return x\n'
    )
    assert done.text.startswith("Made 4 edit(s) in '/a.py'")
    shown = [row for row in done.text.split("\n") if ANCHOR.match(row)]
    assert set(shown) <= set(read(bench).split("\n"))
    assert "Numbers after line 7 have changed by +1" in done.text


def test_an_anchor_may_be_copied_with_its_text(bench: Bench, at: list[str]) -> None:
    change(bench, {"op": "replace", "anchor": f"{at[7]}|    x = 2", "text": "    x = 3"})

    assert bench.content("/a.py") == TEXT.replace("x = 2", "x = 3")


FAULTS: dict[str, tuple[dict[str, str], str, str]] = {
    "a number alone": ({"anchor": "2"}, "invalid_argument", "It may be {2};"),
    "a hash alone": ({"anchor": "tag of 2"}, "invalid_argument", "It may be {2};"),
    "an anchor of another text": ({"anchor": "2:000"}, "no_match", "{2}|    x = 1"),
    "an anchor behind the end": ({"anchor": "90:000"}, "no_match", "{9}|    return x"),
    "the end first": ({"anchor": "{4}", "to": "{2}"}, "invalid_argument", "from {2} to {4}:"),
    "no anchor": ({"anchor": "x = 1"}, "invalid_argument", "is not an anchor"),
    "no text": ({"anchor": "{2}", "text": ""}, "invalid_argument", "a blank line"),
    "text with anchors": ({"anchor": "{2}", "text": "{2}|    x = 1\ny"}, "invalid_argument", "text alone"),
    "text with numbers": (
        {"anchor": "{2}", "text": "     2\t    x = 1\n     3\t    y"},
        "invalid_argument",
        "leave the numbers out",
    ),
    "text with a number": ({"anchor": "{2}", "text": "     2\tx = 1"}, "invalid_argument", "numbers out"),
    "text in a fence": ({"anchor": "{2}", "text": "```\nx = 1\n```"}, "invalid_argument", "code fence"),
    "text for a deletion": ({"anchor": "{2}", "op": "delete"}, "invalid_argument", "use replace"),
    "an insertion between two": ({"anchor": "{2}", "to": "{4}", "op": "insert"}, "invalid_argument", "'to'"),
}


def test_a_fault_is_refused_with_what_to_do_next(bench: Bench, at: list[str]) -> None:
    def fill(text: str) -> str:
        return re.sub(r"\{(\d)\}", lambda found: at[int(found[1])], text).replace("tag of 2", at[2][2:])

    good = {"op": "delete", "anchor": at[9]}
    edits = [
        {"op": "replace", "text": "new", **{key: fill(value) for key, value in given.items()}}
        for given, _, _ in FAULTS.values()
    ]
    script = [call("edit_lines", file_path="/a.py", edits=[good, edit]) for edit in edits]
    refused = dict(zip(FAULTS, bench.run(*script, edit_form="anchors"), strict=True))

    assert {fault: code_of(each) for fault, each in refused.items()} == {
        fault: code for fault, (_, code, _) in FAULTS.items()
    }
    for fault, (_, _, said) in FAULTS.items():
        assert fill(said) in refused[fault].text, fault
        assert "Edit 2: " in refused[fault].text
        assert "Nothing was changed" in refused[fault].text
    assert bench.content("/a.py") == TEXT


LOOKS: dict[str, tuple[str, str, str]] = {
    "another indentation": ("    x = 1\n    y = 2", "  x = 1\n  y = 3", "indentation, '  ' for '    '"),
    "a first line as deep as before": ("if x:\n    go()\n    y", "if z:\n  go()\n  y", "'  ' for '    '"),
    "tabs": ("a:\n    go()\n    y", "a:\n\tgo()\n\tz", "indentation"),
    "curly quotes": ('say("one")', "say(”two”)", '” for "'),
    "straight quotes": ("It’s one", "It's two", "' for ’"),
    "a dash": ("a - b", "a \u2013 b + 1", "\u2013 for -"),
    "escaped quotes": ('say("one")', 'say(\\"two\\")', '\\" for "'),
    "entities": ("a < b and c", "a &lt; b and d", "&lt; for <"),
    "escaped line ends": ("x = 1\ny = 2", "x = 1\\ny = 3", "escaped twice"),
    "letters in two parts": ("caf\u00e9 one", "cafe\u0301 two", "letters in two parts"),
}


@pytest.mark.parametrize("looks", LOOKS)
def test_new_lines_that_look_unlike_those_they_replace_are_refused_and_shown(
    bench: Bench, looks: str
) -> None:
    old, new, said = LOOKS[looks]
    bench.place("/a.py", f"first\n{old}\nlast\n")
    at = anchors(bench)
    last = at[-2]
    refused = change(bench, {"op": "replace", "anchor": at[2], "to": last, "text": new})

    assert code_of(refused) == "invalid_argument"
    assert said in refused.text
    assert f"{last}|{old.splitlines()[-1]}" in refused.text
    assert bench.content("/a.py") == f"first\n{old}\nlast\n"
    # The way out that the refusal names.
    meant = [{"op": "delete", "anchor": at[2], "to": last}, {"op": "insert", "anchor": at[1], "text": new}]
    change(bench, *meant)
    assert bench.content("/a.py") == f"first\n{new}\nlast\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # looks alone
        ("x = 1\ny = 2", "    x = 1\n    y = 2"),
        ('say("a - b")', "say(”a – b”)"),
        ("a < b", "a &lt; b"),
        # a block put around lines, and taken away
        ("    x = 1\n    y = 2", "    if x:\n        x = 1\n        y = 3"),
        ("    if x:\n        x = 1\n        y = 2", "    x = 1\n    y = 3"),
        ("    if x:\n        x = 1\n    y = 2", "    if z:\n        x = 1\n        y = 2"),
        # another text
        ("    return it", "def other():"),
        ('say("one")', 'say("one", \'two\', "\u2013")'),
        ('say("one")\nsay("two")', 'say("one\\ntwo")'),
    ],
)
def test_looks_that_are_meant_land(bench: Bench, old: str, new: str) -> None:
    bench.place("/a.py", f"first\n{old}\nlast\n")
    at = anchors(bench)
    change(bench, {"op": "replace", "anchor": at[2], "to": at[-2], "text": new})

    assert bench.content("/a.py") == f"first\n{new}\nlast\n"


def test_lines_that_are_hard_to_compare_are_changed_soon(bench: Bench) -> None:
    old, new = ("a" * 9 + "b") * 200, ("b" + "a" * 7) * 250
    bench.place("/a.py", f"{old}\n")
    at, began = anchors(bench), time.monotonic()
    change(bench, {"op": "replace", "anchor": at[1], "text": new})

    assert bench.content("/a.py") == f"{new}\n"
    assert time.monotonic() - began < 20


def test_a_block_is_put_around_lines_by_edits_beside_each_other(bench: Bench, at: list[str]) -> None:
    change(
        bench,
        {"op": "insert", "anchor": at[1], "text": "    if True:"},
        {"op": "replace", "anchor": at[2], "text": "        x = 10"},
    )

    assert str(bench.content("/a.py")).startswith("def one():\n    if True:\n        x = 10\n")


def test_lines_that_would_stand_there_twice_are_refused(bench: Bench, at: list[str]) -> None:
    edit = {"op": "replace", "anchor": at[6], "text": "def three():\n    x = 2"}
    refused = change(bench, edit)

    assert "text repeats what stands behind" in refused.text
    assert f"{at[7]}|    x = 2" in refused.text
    assert bench.content("/a.py") == TEXT
    twice = {"op": "insert", "anchor": at[6], "text": "    x = 2"}
    change(bench, {**edit, "text": "def two():  # more"}, twice)
    assert bench.content("/a.py") == TEXT.replace("two():", "two():  # more\n    x = 2")
    at = anchors(bench)
    change(bench, {**edit, "anchor": at[6], "to": at[8]})
    assert bench.content("/a.py") == TEXT.replace("two", "three")


def test_edits_of_the_same_lines_are_refused_together(bench: Bench, at: list[str]) -> None:
    refused = change(
        bench,
        {"op": "replace", "anchor": at[2], "to": at[4], "text": "pass"},
        {"op": "insert", "anchor": at[3], "text": "new"},
    )

    assert code_of(refused) == "invalid_argument"
    assert f"Edits 1 and 2 are about the same lines; make one of them:\n{at[2]}|    x = 1" in refused.text
    assert bench.content("/a.py") == TEXT


def test_a_line_that_moved_is_named_where_it_is_now(bench: Bench, at: list[str]) -> None:
    bench.place("/a.py", f"# new\n{TEXT}")
    refused = change(bench, {"op": "delete", "anchor": at[7]})

    assert code_of(refused) == "no_match"
    assert f"It may be 8{at[7][1:]};" in refused.text


def test_an_anchor_of_before_does_not_change_an_equal_line_that_took_its_place(bench: Bench) -> None:
    bench.place("/a.py", "begin\n    x = 1\nend\n" * 6)
    old = anchors(bench)[11]
    top = {"op": "insert", "anchor": "0", "text": "begin\n    x = 1\nend\n"}

    *_, refused = bench.run(
        call("read_file", file_path="/a.py"),
        call("edit_lines", file_path="/a.py", edits=[top]),
        call("edit_lines", file_path="/a.py", edits=[{"op": "replace", "anchor": old, "text": "    x = 2"}]),
        edit_form="anchors",
    )

    assert "fits several lines, and the file has changed" in refused.text
    assert "x = 2" not in str(bench.content("/a.py"))


def test_an_anchor_that_still_fits_is_its_own_check(tmp_path: Path, call_mode: CallMode) -> None:
    disk = Bench("disk", tmp_path, call_mode)
    disk.place("/a.py", TEXT)
    at = anchors(disk)
    edit = call("edit_lines", file_path="/a.py", edits=[{"op": "replace", "anchor": at[7], "text": "new"}])
    doubtful = call("edit_lines", file_path="/a.py", edits=[{"op": "delete", "anchor": at[9]}])
    theirs = TEXT.replace("one", "uno")
    shown = call("read_file", file_path="/a.py")
    _, landed = disk.run(shown, meddling(disk, "/a.py", theirs, edit), edit_form="anchors")

    assert landed.status == "success"
    assert disk.content("/a.py") == theirs.replace("    x = 2", "new")

    disk.place("/a.py", TEXT)
    _, refused = disk.run(shown, meddling(disk, "/a.py", theirs, doubtful), edit_form="anchors")

    assert code_of(refused) == "no_match"
    assert "fits several lines, and the file has changed" in refused.text


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\r\nb\r\nc\r\n", "a\r\nnew\r\nc\r\n"), ("a\nb", "a\nnew"), ("\ufeffa\nb\n", "\ufeffa\nnew\n")],
    ids=["CRLF", "no newline at the end", "a byte order mark"],
)
def test_line_ends_are_kept(bench: Bench, before: str, after: str) -> None:
    bench.place("/a.py", before)
    change(bench, {"op": "replace", "anchor": anchors(bench)[2], "text": "new"})

    assert bench.content("/a.py") == after


def test_an_empty_file_takes_an_insertion(bench: Bench) -> None:
    bench.place("/a.py", "")
    assert 'insert after anchor "0"' in change(bench, {"op": "delete", "anchor": "1:000"}).text
    change(bench, {"op": "insert", "anchor": "0", "text": "new"})

    assert bench.content("/a.py") == "new\n"


def test_bytes_and_missing_files_are_refused(bench: Bench) -> None:
    bench.place_bytes("/a.bin", b"\0\1")
    edit = {"op": "insert", "anchor": "0", "text": "new"}

    assert code_of(change(bench, edit, path="/a.bin")) == "invalid_encoding"
    assert code_of(change(bench, edit, path="/none")) == "file_not_found"


def test_rules_bind_it_as_they_bind_edit_file(bench: Bench, at: list[str]) -> None:
    rules = [FilesystemPermission(["write"], ["/a.py"], "deny")]
    refused = change(bench, {"op": "delete", "anchor": at[2]}, permissions=rules)

    assert code_of(refused) == "permission_denied"
    assert bench.content("/a.py") == TEXT


def test_a_person_is_asked_where_edit_file_waits(tmp_path: Path, call_mode: CallMode) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    register_harness_profile("forms:asked", HarnessProfile(edit_form="anchors"))
    script = call("edit_lines", file_path="/a.py", edits=[{"op": "insert", "anchor": "0", "text": "new"}])
    with ScriptedModel(script, provider="forms", model_name="asked") as model:
        agent = create_deep_agent(
            model,
            backend=FilesystemBackend(root_dir=tmp_path),
            interrupt_on={"edit_file": True},
            checkpointer=InMemorySaver(),
        )
        result = call_mode.invoke(agent, {"messages": "Go"}, {"configurable": {"thread_id": "1"}})

    assert result["__interrupt__"][0].value["action_requests"][0]["name"] == "edit_lines"
    assert (tmp_path / "a.py").read_text() == TEXT

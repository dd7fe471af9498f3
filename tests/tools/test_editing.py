"""An edit lands, or what the model reads says what to do; nothing is guessed, and nobody's work is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import BackendProtocol, CompositeBackend, FilesystemBackend, StoreBackend
from deepagents.backends.protocol import EditResult, ReadResult
from deepagents.testing import ScriptedModel
from tests.backends.sandboxes import DirectorySandbox
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


def several(*edits: tuple[str, str], path: str = "/a.py") -> AIMessage:
    listed = [{"old_string": old, "new_string": new} for old, new in edits]
    return call("edit_file", file_path=path, edits=listed)


def test_several_edits_are_made_one_after_the_other(bench: Bench) -> None:
    bench.place("/a.py", CODE)
    done = bench.run(several(("add", "plus"), ("plus(a", "plus(x"), ("  return a", "  return x")))[0]

    assert "Successfully replaced 3 instance(s)" in done.content
    assert bench.content("/a.py") == "def plus(x, b):\n    # Adds.\n    return x + b\n"


def test_of_several_edits_all_are_made_or_none(bench: Bench) -> None:
    bench.place("/a.py", CODE)
    refused = bench.run(several(("add", "plus"), ("return x", "return y")))[0]

    assert code_of(refused) == "no_match"
    assert "edits[1]: String not found in file" in refused.content
    assert "Nothing was written" in refused.content
    assert bench.content("/a.py") == CODE


def test_several_edits_may_differ_in_looks(bench: Bench) -> None:
    bench.place("/a.py", CODE)
    done = bench.run(several(("add", "plus"), ("# Adds.\nreturn a + b", "# Adds.\nreturn b + a")))[0]

    assert "(matched lines 2-3 apart from indentation)" in done.content
    assert bench.content("/a.py") == "def plus(a, b):\n    # Adds.\n    return b + a\n"


def test_an_edit_is_given_in_one_form(bench: Bench) -> None:
    bench.place("/a.py", CODE)
    both = {"old_string": "add", "new_string": "x", "edits": [{"old_string": "a", "new_string": "b"}]}
    for given, said in (
        (both, "Put all into edits, in order"),
        ({"replace_all": True, "edits": both["edits"]}, "Put all into edits, in order"),
        ({"old_string": "add"}, "given no new_string. Give both, or edits"),
        ({"edits": [{"old_string": "add"}]}, "edits.0.new_string: Field required"),
        ({}, "given no old_string and no new_string"),
    ):
        refused = bench.use("edit_file", file_path="/a.py", **given)
        assert code_of(refused) == "invalid_argument"
        assert said in refused.content
    empty = bench.use("edit_file", file_path="/a.py", old_string="", new_string="", edits=both["edits"])
    assert code_of(empty) == "ambiguous_match"
    assert bench.content("/a.py") == CODE


def test_several_edits_of_a_file_that_changed_elsewhere_land(bench: Bench) -> None:
    if bench.where == "state":
        return
    bench.place("/a.py", CODE)
    theirs = CODE.replace("# Adds.", "# Adds two numbers.")
    _, done = bench.run(READ, meddling(bench, "/a.py", theirs, several(("add", "plus"), ("a + b", "b + a"))))

    assert "Other parts of the file changed since it was read" in done.content
    assert bench.content("/a.py") == theirs.replace("add(", "plus(").replace("a + b", "b + a")


class Foreign(BackendProtocol):
    """A backend of somebody else, which knows one edit of exact text."""

    def __init__(self, root: Path) -> None:
        self.file = root / "a.py"

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return ReadResult(file_data={"content": self.file.read_text(), "encoding": "utf-8"})

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        text = self.file.read_text()
        if text.count(old_string) != 1:
            return EditResult(error="Error: String not found in file", code="no_match")
        self.file.write_text(text.replace(old_string, new_string))
        return EditResult(path=file_path, occurrences=1)


class Shouting(FilesystemBackend):
    """A backend of ours whose edit somebody has written anew."""

    def edit(self, file_path: str, old_string: str, new_string: str, **options: Any) -> EditResult:
        return super().edit(file_path, old_string, new_string.upper(), **options)


@pytest.mark.parametrize(
    "make",
    [
        Foreign,
        lambda root: Shouting(root, virtual_mode=True),
        DirectorySandbox,
        lambda root: StoreBackend(namespace=lambda _: ("files",), store=InMemoryStore()),
        lambda root: CompositeBackend(FilesystemBackend(root, virtual_mode=True), {}),
    ],
    ids=["foreign", "a method written anew", "sandbox", "store", "composite"],
)
def test_every_kind_of_backend_takes_several_edits(make: Any, tmp_path: Path) -> None:
    backend: Any = make(tmp_path)
    (tmp_path / "a.py").write_text(CODE)
    if isinstance(backend, StoreBackend):
        backend.write("/a.py", CODE)
    path = str(tmp_path / "a.py") if isinstance(backend, DirectorySandbox) else "/a.py"
    refused = several(("add", "plus"), ("return x", "return y"), path=path)
    made = several(("add", "plus"), ("plus(a", "plus(x"), ("Adds", "Sums"), path=path)
    with ScriptedModel(refused, made, "Done.") as model:
        said = create_deep_agent(model, backend=backend).invoke({"messages": "Go"})["messages"]

    first, second = [each.text for each in said if each.type == "tool"]
    assert "edits[1]: " in first
    assert "Nothing was written" in first
    assert "replaced 3 instance(s)" in second
    file: Any = backend.read(path).file_data
    assert file["content"].lower() == "def plus(x, b):\n    # sums.\n    return a + b\n"


def test_several_edits_land_where_lines_repeat(tmp_path: Path) -> None:
    backend = Foreign(tmp_path)
    backend.file.write_text("x\n" * 3)
    with ScriptedModel(several(("x\nx\nx", "x\nx\nz"), ("x\nz", "y\nz")), "Done.") as model:
        create_deep_agent(model, backend=backend).invoke({"messages": "Go"})

    assert backend.file.read_text() == "x\ny\nz\n"

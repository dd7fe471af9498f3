"""Changing files by a patch: what lands, what a refusal says to do next, and that nothing lands by halves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import FilesystemMiddleware, FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import DeleteResult, WriteResult
from deepagents.testing import ScriptedModel, call, calls
from tests.conftest import CallMode
from tests.tools.bench import Bench, code_of, meddling

CLASSES = (
    "import os\n\nclass A:\n    def f(self):\n        x = 1\n        return x\n\n    def g(self):\n"
    "        x = 1\n        return x\n\nclass B:\n    def f(self):\n        x = 1\n        return x\n"
)


def patch(*body: str) -> str:
    return "\n".join(["*** Begin Patch", *body, "*** End Patch"])


def apply(bench: Bench, *body: str, **options: Any) -> Any:
    return bench.run(call("apply_patch", patch=patch(*body)), edit_form="patch", **options)[0]


@pytest.fixture
def classes(bench: Bench) -> Bench:
    bench.place("/a.py", CLASSES)
    return bench


def test_one_patch_changes_adds_moves_and_deletes(classes: Bench) -> None:
    classes.place("/old.md", "one\ntwo\n")
    classes.place("/gone.txt", "x\n")
    done = apply(
        classes,
        "*** Update File: /a.py",
        "@@",
        "-import os",
        "+import sys",
        "@@ class B:",
        "     def f(self):",
        "-        x = 1",
        "+        x = 2",
        "         return x",
        "*** End of File",
        "*** Add File: docs/new.md",
        "+# New",
        "+",
        "*** Update File: old.md",
        "*** Move to: kept/new name.md",
        " one",
        "+and a half",
        "",
        "*** Delete File: /gone.txt",
    )

    expected = CLASSES.replace("import os", "import sys")
    assert done.text == (
        "Updated /a.py; Added /docs/new.md; Moved /old.md to /kept/new name.md; Deleted /gone.txt"
    )
    assert classes.content("/a.py") == expected[::-1].replace("1 = x", "2 = x", 1)[::-1]
    assert classes.content("/docs/new.md") == "# New\n\n"
    assert classes.content("/kept/new name.md") == "one\nand a half\ntwo\n"
    assert (classes.content("/old.md"), classes.content("/gone.txt")) == (None, None)


PLACED = {
    "class and method": (["@@ class A:", "@@     def g(self):"], 2),
    "the end of the file": ([], 3),
    "a header cut short": (["@@ class B"], 3),
    "numbers as in other patches": (["@@ -8,3 +8,3 @@ def g(self):"], 2),
}


@pytest.mark.parametrize(("headers", "which"), PLACED.values(), ids=PLACED)
def test_a_header_names_one_place_of_several(classes: Bench, headers: list[str], which: int) -> None:
    end = [] if headers else ["*** End of File"]
    apply(
        classes,
        "*** Update File: /a.py",
        *headers,
        "-        x = 1",
        "+        x = 2",
        "         return x",
        *end,
    )

    parts = CLASSES.split("x = 1")
    assert classes.content("/a.py") == "x = 1".join(parts[:which]) + "x = 2" + "x = 1".join(parts[which:])


HUNK = ["-        x = 1", "+        x = 2", "         return x"]
FAULTS: dict[str, tuple[list[str], str, str]] = {
    "several places": (["*** Update File: /a.py", *HUNK], "ambiguous_match", "lines 5-6, 9-10, 14-15"),
    "not below the header": (
        ["*** Update File: /a.py", "@@ class B", "-    def g(self):", "+    def h(self):"],
        "no_match",
        "not below 'class B'. The text that begins with '    def g(self):' is in lines 8-8",
    ),
    "other text there": (
        ["*** Update File: /a.py", "@@", "-import oss", "+import sys"],
        "no_match",
        "Nearest place: line 1:",
    ),
    "no place at all": (
        ["*** Update File: /a.py", "@@ class A:", "+import sys"],
        "no_match",
        "nothing says where",
    ),
    "a line without a sign": (
        ["*** Update File: /a.py", "import os"],
        "invalid_argument",
        "Line 3 of the patch",
    ),
    "nothing changes": (["*** Update File: /a.py", " import os"], "invalid_argument", "nothing changes"),
    "a new file that exists": (["*** Add File: /a.py", "+x"], "already_exists", "*** Update File: /a.py"),
    "text that is not new": (["*** Add File: /b.py", "x"], "invalid_argument", "begins with '+', got 'x'"),
    "no such file": (["*** Update File: /b.py", "-x"], "file_not_found", "/b.py"),
    "a file twice": (["*** Delete File: a.py", "*** Delete File: a.py"], "invalid_argument", "twice"),
    "two names of a file": (["*** Delete File: a.py", "*** Delete File: /a.py"], "invalid_argument", "twice"),
    "a directory": (["*** Delete File: /sub"], "is_directory", "/sub"),
    "a path out of the root": (["*** Delete File: ../x"], "invalid_path", "'..'"),
    "no file": ([], "invalid_argument", "names no file. A patch looks like this:"),
    "the same lines": (
        ["*** Update File: /a.py", "-import os", "+x", "@@", "-import os", "+y"],
        "invalid_argument",
        "Hunks 1 and 2 change the same lines",
    ),
}


def test_a_fault_is_refused_with_what_to_do_next(classes: Bench) -> None:
    classes.place("/sub/b.txt", "b")
    good = ["*** Add File: /good.py", "+x"]
    script = [
        call("apply_patch", patch=patch(*good, *body) if body else patch()) for body, _, _ in FAULTS.values()
    ]
    refused = dict(zip(FAULTS, classes.run(*script, edit_form="patch"), strict=True))

    assert {fault: code_of(each) for fault, each in refused.items()} == {
        fault: code for fault, (_, code, _) in FAULTS.items()
    }
    for fault, (_, _, said) in FAULTS.items():
        assert said.replace("Line 3", "Line 5") in refused[fault].text, fault
    assert (classes.content("/a.py"), classes.content("/good.py")) == (CLASSES, None)


@pytest.mark.parametrize("text", ["--- a/x\n+++ b/x\n", "*** Begin Patch\n*** Delete File: /a.py\n"])
def test_what_is_no_whole_patch_is_not_applied(classes: Bench, text: str) -> None:
    refused = classes.run(call("apply_patch", patch=text), edit_form="patch")[0]

    assert code_of(refused) == "invalid_argument"
    assert "has no line '*** " in refused.text
    assert classes.content("/a.py") == CLASSES


def test_a_fence_around_a_patch_is_none_of_it(classes: Bench) -> None:
    fenced = f"```\n{patch('*** Delete File: /a.py')}\n```"
    classes.run(call("apply_patch", patch=fenced), edit_form="patch")

    assert classes.content("/a.py") is None


def test_blanks_at_ends_of_lines_do_not_count_and_are_kept(bench: Bench) -> None:
    bench.place("/a.txt", "one  \r\ntwo\r\nthree")
    apply(bench, "*** Update File: /a.txt", " one", "-two", "+2", "+2.5", "three".rjust(6))

    assert bench.content("/a.txt") == "one  \r\n2\r\n2.5\r\nthree"


def test_lines_that_differ_in_looks_alone_land_as_the_file_has_them(classes: Bench) -> None:
    done = apply(
        classes,
        "*** Update File: /a.py",
        "@@ class A:",
        "-  def g(self):",
        "-      x = 1",
        "+  def h(self):",
        "+      x = 2",
    )
    assert done.text == "Updated /a.py (matched lines 8-9 apart from indentation)"
    assert classes.content("/a.py") == CLASSES.replace("g(self):\n        x = 1", "h(self):\n        x = 2")


def test_lines_that_were_escaped_into_one_land_as_lines(classes: Bench) -> None:
    hunk = ["-    def g(self):\\n        x = 1", "+    def h(self):\\n        x = 2"]
    done = apply(classes, "*** Update File: /a.py", *hunk)

    assert done.text == "Updated /a.py (matched lines 8-9 apart from double escapes)"
    assert classes.content("/a.py") == CLASSES.replace("g(self):\n        x = 1", "h(self):\n        x = 2")


def test_a_spoilt_line_changes_where_it_stands_whole(bench: Bench) -> None:
    bench.place("/a.html", "<b> and more\n<b>\n")
    done = apply(bench, "*** Update File: /a.html", "-&lt;b&gt;", "+&lt;i&gt;")

    assert done.text == "Updated /a.html (matched line 2 apart from HTML entities)"
    assert bench.content("/a.html") == "<b> and more\n<i>\n"


@pytest.mark.parametrize(
    "hunk",
    [
        pytest.param(["-x =  1", "+x = 2"], id="a part of a line"),
        pytest.param(["@@ class B:", "-  def g(self):", "+  def h(self):"], id="not below the header"),
        pytest.param(["-  import os", "+  import sys", "*** End of File"], id="not at the end"),
        pytest.param(["-   x = 1", "+   x = 2"], id="several places"),
    ],
)
def test_looks_alone_do_not_make_a_place_fit(classes: Bench, hunk: list[str]) -> None:
    refused = apply(classes, "*** Update File: /a.py", *hunk)

    assert code_of(refused) == "no_match"
    assert classes.content("/a.py") == CLASSES


def test_a_file_that_changed_takes_what_still_fits(tmp_path: Path, call_mode: CallMode) -> None:
    disk = Bench("disk", tmp_path, call_mode)
    disk.place("/a.py", CLASSES)
    read = call("read_file", file_path="/a.py")
    change = call("apply_patch", patch=patch("*** Update File: /a.py", "-import os", "+import sys"))
    _, landed = disk.run(read, meddling(disk, "/a.py", f"# theirs\n{CLASSES}", change), edit_form="patch")

    assert landed.status == "success"
    assert disk.content("/a.py") == f"# theirs\n{CLASSES}".replace("import os", "import sys")


def test_a_rule_about_one_file_keeps_all_as_they_are(classes: Bench) -> None:
    classes.place("/kept/b.txt", "b\n")
    rules = [FilesystemPermission(["write"], ["/kept/**"], "deny")]
    add = ["*** Add File: /new.txt", "+x"]
    for body in (
        ["*** Update File: /kept/b.txt", "-b", "+c"],
        ["*** Delete File: /kept/b.txt"],
        ["*** Add File: /kept/c.txt", "+c"],
        ["*** Update File: /a.py", "*** Move to: /kept/a.py"],
    ):
        refused = apply(classes, *add, *body, permissions=rules)
        assert code_of(refused) == "permission_denied", body
    assert (classes.content("/new.txt"), classes.content("/kept/b.txt")) == (None, "b\n")
    assert classes.content("/a.py") == CLASSES


def test_text_that_rules_keep_from_being_read_is_not_shown(classes: Bench) -> None:
    rules = [FilesystemPermission(["read"], ["/a.py"], "deny")]
    refused = apply(classes, "*** Update File: /a.py", "-import oss", permissions=rules)

    assert code_of(refused) == "permission_denied"
    assert "import os\n" not in refused.text


def test_what_was_written_is_taken_back_when_a_later_step_fails(tmp_path: Path, call_mode: CallMode) -> None:
    disk = Bench("disk", tmp_path, call_mode)
    disk.place("/a.txt", "a\n")
    refused = apply(
        disk,
        "*** Update File: /a.txt",
        "-a",
        "+b",
        "*** Add File: /new",
        "+x",
        "*** Add File: /new/c.txt",
        "+c",
    )

    assert refused.status == "error"
    assert "Nothing was changed" in refused.text
    assert (disk.content("/a.txt"), disk.content("/new")) == ("a\n", None)


def test_of_two_changes_to_one_file_in_a_turn_the_second_is_refused(bench: Bench) -> None:
    bench.place("/a.txt", "a\n")
    both = calls(
        (
            "apply_patch",
            {"patch": patch("*** Add File: /b.txt", "+b", "*** Update File: /a.txt", "-a", "+c")},
        ),
        ("write_file", {"file_path": "/a.txt", "content": "mine"}),
    )
    first, second = bench.run(both, edit_form="patch")

    assert first.status == "success"
    assert code_of(second) == "parallel_mutation"
    assert bench.content("/a.txt") == "c\n"


@pytest.mark.parametrize(
    ("waits", "body"),
    [
        ({"interrupt_on": {"edit_file": True}}, ["*** Add File: /b.txt", "+b"]),
        ({"interrupt_on": {"delete": True}}, ["*** Add File: /b.txt", "+b"]),
        (
            {"permissions": [FilesystemPermission(["write"], ["/b.txt"], "interrupt")]},
            ["*** Add File: b.txt", "+b"],
        ),
    ],
    ids=["edits wait", "deletions wait", "a path waits"],
)
def test_a_person_is_asked_about_the_whole_patch(
    tmp_path: Path, call_mode: CallMode, waits: dict[str, Any], body: list[str]
) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    change = call("apply_patch", patch=patch("*** Update File: /a.txt", "-a", "+c", *body))
    backend = FilesystemBackend(root_dir=tmp_path)
    with ScriptedModel(change, "Done.") as model:
        agent = create_deep_agent(
            model,
            backend=backend,
            middleware=[FilesystemMiddleware(backend=backend, edit_form="patch")],
            checkpointer=InMemorySaver(),
            **waits,
        )
        config: Any = {"configurable": {"thread_id": "1"}}
        asked = call_mode.invoke(agent, {"messages": "Go"}, config)["__interrupt__"][0].value
        assert [each["name"] for each in asked["action_requests"]] == ["apply_patch"]
        assert (tmp_path / "a.txt").read_text() == "a\n"
        call_mode.invoke(agent, Command(resume={"decisions": [{"type": "approve"}]}), config)

    assert (tmp_path / "a.txt").read_text() == "c\n"
    assert (tmp_path / "b.txt").read_text() == "b\n"


def test_a_patch_that_no_waiting_path_is_in_runs_unasked(tmp_path: Path, call_mode: CallMode) -> None:
    rules = [FilesystemPermission(["write"], ["/b.txt"], "interrupt")]
    backend = FilesystemBackend(root_dir=tmp_path)
    with ScriptedModel(call("apply_patch", patch=patch("*** Add File: /a.txt", "+a")), "Done.") as model:
        agent = create_deep_agent(
            model,
            backend=backend,
            middleware=[FilesystemMiddleware(backend=backend, edit_form="patch")],
            permissions=rules,
            checkpointer=InMemorySaver(),
        )
        call_mode.invoke(agent, {"messages": "Go"}, {"configurable": {"thread_id": "1"}})

    assert (tmp_path / "a.txt").read_text() == "a\n"


def test_memory_that_a_patch_changed_is_read_again(call_mode: CallMode) -> None:
    change = call(
        "apply_patch", patch=patch("*** Add File: /b.txt", "+b", "*** Update File: /M.md", "-tabs", "+spaces")
    )
    with ScriptedModel(change, "Done.") as model:
        agent = create_deep_agent(
            model, memory=["/M.md"], middleware=[FilesystemMiddleware(edit_form="patch")]
        )
        files = {"/M.md": {"content": "tabs\n", "encoding": "utf-8"}}
        call_mode.invoke(agent, {"messages": "Go", "files": files})

    assert "tabs" in model.asked[0].system
    assert "spaces" in model.asked[1].system


@pytest.mark.parametrize("bench", [("disk", "sync"), ("disk", "async")], indirect=True)
def test_a_file_keeps_its_mode_where_it_moves(bench: Bench, tmp_path: Path) -> None:
    bench.place("/run.sh", "one\n")
    (tmp_path / "run.sh").chmod(0o750)
    apply(bench, "*** Update File: /run.sh", "*** Move to: /bin/go.sh", "-one", "+two")

    assert (tmp_path / "bin" / "go.sh").read_text() == "two\n"
    assert (tmp_path / "bin" / "go.sh").stat().st_mode & 0o777 == 0o750


class Keeps(FilesystemBackend):
    """Deletes no file of a directory."""

    def delete(self, file_path: str, **options: Any) -> DeleteResult:
        if file_path.startswith("/kept/"):
            return DeleteResult(error="the disk is write-protected", code="io_error")
        return super().delete(file_path, **options)


def test_a_move_that_is_taken_back_gives_the_mode_back(tmp_path: Path, call_mode: CallMode) -> None:
    disk = Bench("disk", tmp_path, call_mode)
    disk.place("/run.sh", "one\n")
    disk.place("/kept/b.txt", "b\n")
    (tmp_path / "run.sh").chmod(0o750)
    refused = apply(
        disk,
        "*** Update File: /run.sh",
        "*** Move to: /go.sh",
        "-one",
        "+two",
        "*** Delete File: /kept/b.txt",
        backend=Keeps(root_dir=tmp_path),
    )

    assert "write-protected. Nothing was changed" in refused.text
    assert (disk.content("/run.sh"), disk.content("/go.sh")) == ("one\n", None)
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750


def test_a_file_is_added_where_only_writing_is_allowed(classes: Bench) -> None:
    hidden = [FilesystemPermission(["read"], ["/inbox/**"], "deny")]
    classes.place("/inbox/old.txt", "theirs\n")
    added = apply(classes, "*** Add File: /inbox/new.txt", "+mine", permissions=hidden)
    refused = apply(classes, "*** Add File: /inbox/old.txt", "+mine", permissions=hidden)

    assert added.status == "success"
    assert classes.content("/inbox/new.txt") == "mine\n"
    assert code_of(refused) == "already_exists"
    assert classes.content("/inbox/old.txt") == "theirs\n"


def test_bytes_that_are_not_text_are_named_with_their_line(tmp_path: Path, call_mode: CallMode) -> None:
    disk = Bench("disk", tmp_path, call_mode)
    disk.place_bytes("/old.txt", b"one\ncaf\xe9\n")
    patched = apply(disk, "*** Update File: /old.txt", "-one", "+1")
    edit = {"op": "replace", "anchor": "1:abc", "text": "1"}
    changed = disk.run(call("edit_lines", file_path="/old.txt", edits=[edit]), edit_form="anchors")[0]

    for refused in (patched, changed):
        assert code_of(refused) == "invalid_encoding"
        assert "Line 2 has bytes that are not UTF-8." in refused.text


class Slow(FilesystemBackend):
    """Is cancelled, as by its caller, while it writes the second file."""

    def __init__(self, root: Path) -> None:
        super().__init__(root_dir=root)
        self.written: list[str] = []
        self.cancel: Callable[[], object] = list

    async def awrite(self, file_path: str, content: str, **options: Any) -> WriteResult:
        self.written.append(file_path)
        if len(self.written) == 2:
            self.cancel()
            await asyncio.sleep(0)
        return await super().awrite(file_path, content, **options)


async def test_a_cancelled_patch_is_made_whole(tmp_path: Path) -> None:
    backend = Slow(tmp_path)
    change = call("apply_patch", patch=patch("*** Add File: /a.txt", "+a", "*** Add File: /b.txt", "+b"))
    files = FilesystemMiddleware(backend=backend, edit_form="patch")
    with ScriptedModel(change) as model:
        agent = create_deep_agent(model, backend=backend, middleware=[files])
        running = asyncio.ensure_future(agent.ainvoke({"messages": "Go"}))
        backend.cancel = running.cancel
        with pytest.raises(asyncio.CancelledError):
            await running

    assert ((tmp_path / "a.txt").read_text(), (tmp_path / "b.txt").read_text()) == ("a\n", "b\n")


def test_a_patch_that_changes_nothing_says_so(classes: Bench) -> None:
    refused = apply(classes, "*** Update File: /a.py", "-import os", "+import os")

    assert code_of(refused) == "invalid_argument"
    assert "nothing changes" in refused.text

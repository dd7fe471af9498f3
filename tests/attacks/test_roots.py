"""What holds everything cannot be deleted, and the parts of a tree are not the tree."""

from __future__ import annotations

import pytest

from deepagents.backends import StateBackend
from deepagents.testing import call
from tests.attacks.harness import Ground, in_turn
from tests.conftest import CallMode

SPELLINGS_OF_THE_ROOT = {
    "a slash": "/",
    "two slashes": "//",
    "many slashes": "//////",
    "a dot": ".",
    "a slash and a dot": "/.",
    "dots between slashes": "/././.",
    "a backslash": "\\",
    "mixed slashes": "/\\/",
    "nothing": "",
}


def test_every_spelling_of_the_root_is_refused_to_delete(disk: Ground, call_mode: CallMode) -> None:
    disk.kept.append(disk.root)
    calls = [call("delete", file_path=path) for path in SPELLINGS_OF_THE_ROOT.values()]
    run = disk.run(call_mode, *calls)

    assert run.problems() == []
    assert set(run.codes) == {"invalid_path"}


@in_turn("path", SPELLINGS_OF_THE_ROOT)
def test_the_state_is_never_emptied(disk: Ground, call_mode: CallMode, path: str) -> None:
    disk.options["backend"] = StateBackend()
    disk.given = {"files": {"/a.txt": {"content": "mine", "encoding": "utf-8"}}}
    disk.kept_files = disk.given["files"]
    run = disk.run(call_mode, call("delete", file_path=path), call("write_file", file_path=path, content="x"))

    assert run.problems() == []
    assert run.codes[0] == "invalid_path"


@pytest.mark.parametrize("path", ["/to-here", "/to-here/to-here", "/d/to-above"])
def test_the_root_is_not_deleted_by_a_link_to_it(disk: Ground, call_mode: CallMode, path: str) -> None:
    disk.kept.append(disk.root / "in.txt")
    disk.harmless |= {"delete"}
    (disk.root / "to-here").symlink_to(".")
    (disk.root / "d" / "to-above").symlink_to("..")

    assert disk.run(call_mode, call("delete", file_path=path)).problems() == []


def test_a_tree_with_links_in_it_is_deleted_without_what_they_lead_to(
    linked: Ground, call_mode: CallMode
) -> None:
    linked.harmless |= {"delete"}
    (linked.root / "d" / "deep").mkdir()
    (linked.root / "d" / "deep" / "to-directory").symlink_to(linked.top / "outside")
    run = linked.run(call_mode, call("delete", file_path="/d"))

    assert run.problems() == []
    assert not (linked.root / "d").exists()


@pytest.mark.parametrize("path", ["/*", "/**", "/d/*", "/{in.txt,d}", "/[a-z]n.txt"])
def test_a_pattern_is_only_a_name_to_delete(disk: Ground, call_mode: CallMode, path: str) -> None:
    disk.kept.append(disk.root)
    run = disk.run(call_mode, call("delete", file_path=path))

    assert run.problems() == []
    assert run.codes == ["file_not_found"]


@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
def test_a_directory_is_not_replaced_by_a_file(disk: Ground, call_mode: CallMode, tool: str) -> None:
    disk.kept.append(disk.root)
    arguments = {"content": "x"} if tool == "write_file" else {"old_string": "a", "new_string": "b"}
    run = disk.run(
        call_mode, *(call(tool, file_path=path, **arguments) for path in ("/", "/d", "/d/", "/d/."))
    )

    assert run.problems() == []


def test_a_file_is_not_a_directory_to_write_below(disk: Ground, call_mode: CallMode) -> None:
    disk.kept.append(disk.root)

    assert disk.run(call_mode, call("write_file", file_path="/in.txt/x", content="x")).problems() == []

"""What holds everything cannot be deleted, and the parts of a tree are not the tree."""

from __future__ import annotations

from deepagents.testing import call
from tests.attacks.harness import Ground
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


def test_the_root_is_not_deleted_by_a_link_to_it(disk: Ground, call_mode: CallMode) -> None:
    disk.kept.append(disk.root / "in.txt")
    disk.harmless |= {"delete"}
    (disk.root / "to-here").symlink_to(".")
    (disk.root / "d" / "to-above").symlink_to("..")

    paths = ["/to-here/to-here", "/to-here", "/d/to-above"]

    assert disk.run(call_mode, *(call("delete", file_path=path) for path in paths)).problems() == []


def test_a_tree_with_links_in_it_is_deleted_without_what_they_lead_to(
    linked: Ground, call_mode: CallMode
) -> None:
    linked.harmless |= {"delete"}
    (linked.root / "d" / "deep").mkdir()
    (linked.root / "d" / "deep" / "to-directory").symlink_to(linked.top / "outside")
    run = linked.run(call_mode, call("delete", file_path="/to-directory"), call("delete", file_path="/d"))

    assert run.problems() == []
    assert not (linked.root / "d").exists()


def test_a_pattern_is_only_a_name_to_delete(disk: Ground, call_mode: CallMode) -> None:
    disk.kept.append(disk.root)
    patterns = ["/*", "/**", "/d/*", "/{in.txt,d}", "/[a-z]n.txt"]
    run = disk.run(call_mode, *(call("delete", file_path=each) for each in patterns))

    assert run.problems() == []
    assert run.codes == ["file_not_found"] * len(patterns)

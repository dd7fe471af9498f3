"""Whatever the system refuses, no text and no field names a real path of this machine."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deepagents.backends import FilesystemBackend, LocalShellBackend
from deepagents.testing import call, calls
from tests.attacks.harness import CHANGES, LOOKS, Ground, in_turn, on_path
from tests.conftest import CallMode

pytestmark = pytest.mark.filterwarnings("ignore:root_dir .* does not exist")

EVERYTHING = frozenset((*LOOKS, *CHANGES))


def root_gone(root: Path) -> None:
    shutil.rmtree(root)


def root_a_file(root: Path) -> None:
    shutil.rmtree(root)
    root.write_text("no directory")


def root_a_loop(root: Path) -> None:
    shutil.rmtree(root)
    root.symlink_to(root)


def nothing_allowed(root: Path) -> None:
    (root / "in.txt").chmod(0)
    (root / "d").chmod(0)


def bytes_that_are_no_text(root: Path) -> None:
    (root / "in.txt").write_bytes(b"\xff\xfe caf\xe9 \x00\x01")


def names_that_are_no_text(root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9\xff.txt")).write_bytes(b"e")
    (root / "d" / os.fsdecode(b"\xf0\x28\x8c")).symlink_to(root.parent / "outside")


def a_picture_that_is_none(root: Path) -> None:
    (root / "in.txt").rename(root / "d" / "in.png")
    (root / "in.txt").symlink_to("d/in.png")


def too_large(root: Path) -> None:
    with (root / "in.txt").open("wb") as file:
        file.truncate(1 << 30)


def a_directory_for_a_file(root: Path) -> None:
    (root / "in.txt").unlink()
    (root / "in.txt").mkdir()


def a_file_for_a_directory(root: Path) -> None:
    shutil.rmtree(root / "d")
    (root / "d").write_text("no directory")


FAULTS = [
    root_gone,
    root_a_file,
    root_a_loop,
    nothing_allowed,
    bytes_that_are_no_text,
    names_that_are_no_text,
    a_picture_that_is_none,
    too_large,
    a_directory_for_a_file,
    a_file_for_a_directory,
]


@in_turn("fault", {fault.__name__.replace("_", " "): fault for fault in FAULTS})
def test_no_fault_tells_where_files_really_are(
    disk: Ground, call_mode: CallMode, fault: Callable[[Path], None]
) -> None:
    def strike() -> str:
        """Let something happen to the files while the agent works."""
        fault(disk.root)
        return "It happened."

    disk.harmless = EVERYTHING | {"strike"}
    disk.options |= {"backend": FilesystemBackend(disk.root), "tools": [strike]}

    run = disk.run(call_mode, call("strike"), *on_path("/d/in.txt"), *on_path("/in.txt"))

    assert run.problems() == []


@contextmanager
def full_disk() -> Generator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_odd_arguments_are_answered_without_a_path(disk: Ground, call_mode: CallMode) -> None:
    disk.harmless = EVERYTHING
    run = disk.run(
        call_mode,
        call("read_file", file_path="/in.txt", offset=-5, limit=0),
        call("read_file", file_path="/in.txt", offset=2**62, limit=2**62),
        call("read_file", file_path=["/in.txt"]),
        call("read_file", path="/in.txt"),
        call("write_file", file_path={"a": 1}, content=b"x".decode()),
        call("edit_file", file_path="/in.txt", old_string="", new_string="x"),
        call("grep", pattern="", path=None, output_mode="everything"),
        call("glob", pattern=None),
        calls(("ls", {"path": 7}), ("no_such_tool", {"path": "/"})),
    )

    assert [each for each in run.problems() if "not refused" not in each] == []


def test_a_shell_that_cannot_start_does_not_say_where(disk: Ground, call_mode: CallMode) -> None:
    disk.options["backend"] = LocalShellBackend(disk.root)
    root_gone(disk.root)
    disk.harmless = EVERYTHING | {"execute"}

    problems = disk.run(call_mode, call("execute", command="true")).problems()

    # Where commands start is what the model has to know before it runs any; no answer says it again.
    assert [each for each in problems if not each.endswith((" in tools", " in prompts"))] == []

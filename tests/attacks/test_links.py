"""No link leads out of the root, wherever it stands on the way and whatever kind it is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from deepagents.testing import call
from tests.attacks.harness import HINT, SEARCHES, Ground, every_other, on_path
from tests.conftest import CallMode

THROUGH = {
    "an absolute link to a directory": "/to-directory/secret.txt",
    "a deeper place below it": "/to-directory/deep/secret.txt",
    "a link to the parent": "/up/outside/secret.txt",
    "a relative link": "/up-and-over/secret.txt",
    "a relative link in a directory": "/d/up-up/secret.txt",
    "a link with dot-dot in the middle": "/through-itself/secret.txt",
    "a link to a link": "/to-link/secret.txt",
    "a chain across directories": "/d/chain/secret.txt",
    "a link to itself": "/loop/secret.txt",
    "two links to each other": "/loop-a/secret.txt",
    "a link to the root of the machine": "/to-host-root/etc/passwd",
    "a link to the process": "/to-proc/etc/passwd",
    "a link to a descriptor": "/to-fd/0",
    "a link whose target only begins like the root": "/sneaky-prefix/secret.txt",
    "a link through the root and out again": "/dotted/secret.txt",
    "a link through another name of the place": "/known/secret.txt",
    "a new file behind a link": "/to-directory/new.txt",
    "a new directory behind a link": "/to-directory/new/new.txt",
}
AT_THE_END = {
    "a link to a file": "/to-file",
    "a link to where nothing is yet": "/new-outside",
    "a link to itself at the end": "/loop",
    "a link to the environment": "/to-environment",
    "a link to a device": "/to-zero",
    "a pipe that nobody feeds": "/pipe",
}


def test_no_link_on_the_way_leads_out(linked: Ground, call_mode: CallMode) -> None:
    assert linked.run(call_mode, *on_path(*every_other(call_mode, THROUGH))).problems() == []


def test_no_link_at_the_end_leads_out_and_a_delete_takes_the_link(
    linked: Ground, call_mode: CallMode
) -> None:
    linked.harmless |= {"delete"}
    paths = every_other(call_mode, AT_THE_END)
    run = linked.run(call_mode, *on_path(*paths))

    assert run.problems() == []
    assert [answer.status for answer in run.answers if answer.name == "delete"] == ["success"] * len(paths)
    assert not [path for path in paths if os.path.lexists(linked.root / path[1:])]


def test_searching_from_the_root_follows_no_link_out(linked: Ground, call_mode: CallMode) -> None:
    run = linked.run(
        call_mode,
        call("ls", path="/"),
        call("glob", pattern="**/*"),
        call("glob", pattern="to-directory/**"),
        call("glob", pattern="{up,up-and-over}/**/*.txt"),
        call("grep", pattern=HINT, output_mode="content"),
        call("grep", pattern=HINT, glob="to-directory/*", output_mode="count"),
        call("grep", pattern="^.*$", regex=True, output_mode="content"),
    )

    assert run.problems() == []
    assert "secret" not in "".join(answer.text for answer in run.answers)


def test_a_hard_link_is_not_a_way_to_write_outside(disk: Ground, call_mode: CallMode) -> None:
    outside = disk.top / "outside" / "shared.txt"
    outside.write_text("shared\n")
    os.link(outside, disk.root / "shared.txt")
    run = disk.run(
        call_mode,
        call("write_file", file_path="/shared.txt", content="overwritten"),
        call("edit_file", file_path="/shared.txt", old_string="shared", new_string="overwritten"),
    )

    assert run.problems() == []
    assert run.codes == ["permission_denied", "permission_denied"]


def test_a_socket_is_no_file(disk: Ground, call_mode: CallMode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(disk.root)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        disk.harmless = SEARCHES | {"delete"}

        assert disk.run(call_mode, *on_path("/socket")).problems() == []


def test_a_root_that_is_a_link_is_no_door_to_its_siblings(
    disk: Ground, call_mode: CallMode, tmp_path: Path
) -> None:
    disk.root.joinpath("sub").symlink_to("../outside")
    known = disk.top.parent / "known"
    disk.options["backend"] = type(disk.options["backend"])(known / "root")

    assert disk.run(call_mode, *on_path("/sub/secret.txt")).problems() == []

"""What no tool asks of files on disk, but a program can: transfers, and paths of the machine itself."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.filesystem.confined_dir import ConfinedDirectory, LeavesRootError
from tests.attacks.harness import CANARY, Ground, snapshot
from tests.attacks.test_links import AT_THE_END, THROUGH


@pytest.fixture
def files(linked: Ground) -> FilesystemBackend:
    return linked.options["backend"]


def test_no_transfer_goes_by_a_link_out(linked: Ground, files: FilesystemBackend) -> None:
    before = snapshot(linked.kept)
    paths = [*THROUGH.values(), *AT_THE_END.values()]
    moved = [*files.upload_files([(path, b"overwritten") for path in paths]), *files.download_files(paths)]

    assert all(each.error and str(linked.top) not in each.error for each in moved)
    assert CANARY not in repr(moved)
    assert snapshot(linked.kept) == before


def test_links_that_stay_inside_are_shown_under_their_own_names(disk: Ground) -> None:
    backend = FilesystemBackend(disk.root)
    (disk.root / "d" / "link").symlink_to("../in.txt")
    (disk.root / "absolute").symlink_to(disk.root / "d")
    (disk.root / "to-here").symlink_to(".")

    assert backend.read("/absolute/link").error is None
    assert backend.read("/to-here/to-here/in.txt").error is None
    listed = [entry["path"] for entry in backend.ls("/absolute").entries or []]
    assert listed == ["/absolute/in.txt", "/absolute/link"]
    assert [match["path"] for match in backend.glob("l*", "/absolute").matches or []] == ["/absolute/link"]
    assert "/absolute/" in [entry["path"] for entry in backend.ls("/").entries or []]
    found = [match["path"] for match in backend.grep("inside").matches or []]
    assert found == ["/d/in.txt", "/in.txt"]


def test_a_name_that_is_not_utf8_is_shown_in_a_form_that_can_be_sent(disk: Ground) -> None:
    backend = FilesystemBackend(disk.root)
    (disk.root / "d" / os.fsdecode(b"caf\xe9.txt")).write_text("needle")

    for result in (backend.ls("/d"), backend.glob("*.txt", "/d"), backend.grep("needle", "/d")):
        assert "/d/caf\ufffd.txt" in repr(result)
        repr(result).encode()


def test_devices_and_sockets_are_refused(disk: Ground) -> None:
    host = FilesystemBackend(disk.root, virtual_mode=False)

    assert host.read("/dev/zero").code == "invalid_path"
    assert host.write("/dev/null", "x").code == "invalid_path"
    assert host.download_files(["/dev/zero"])[0].error == "invalid_path"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user to try it as")
def test_a_directory_that_may_only_be_passed_through_is_passed_through() -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        root.chmod(0o755)
        (root / "d").mkdir()
        (root / "d" / "a").write_text("text")
        (root / "d" / "a").chmod(0o644)
        (root / "d").chmod(0o711)
        os.seteuid(65534)
        try:
            read, listed = FilesystemBackend(root).read("/d/a"), FilesystemBackend(root).ls("/d")
        finally:
            os.seteuid(0)

    assert listed.code == "permission_denied"
    if sys.platform == "linux":
        assert read.error is None


@pytest.mark.parametrize("by_handle", [True, False])
def test_both_ways_to_reach_places_keep_inside(linked: Ground, by_handle: bool) -> None:
    tree = ConfinedDirectory(linked.root, by_handle)

    with tree.entry(["d", ".."]) as place:
        assert place.parts == ()
    for parts in (
        ["to-directory", "secret.txt"],
        ["up", "outside"],
        ["..", "outside"],
        ["to-file"],
        ["dotted", "x"],
    ):
        with pytest.raises(LeavesRootError), tree.entry(parts):
            pass
    with pytest.raises(OSError, match="symbolic links"), tree.entry(["loop", "x"]):
        pass
    with tree.entry(["to-file"], follow=False) as place:
        assert place.parts == ("to-file",)

"""Names and links on disk that would break a listing, or forge entries of one."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import BackendProtocol
from tests.backends.sandboxes import rooted

BACKENDS = {"disk": FilesystemBackend, "sandbox": rooted}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> BackendProtocol:
    (tmp_path / "root").mkdir()
    return BACKENDS[request.param](tmp_path / "root")


def test_a_link_into_a_loop_outside_hides_nothing_else(backend: BackendProtocol, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "root" / "link").symlink_to(tmp_path / "a" / "x")
    (tmp_path / "root" / "file.txt").write_text("needle")

    assert [entry["path"] for entry in backend.ls("/").entries or ()] == ["/file.txt"]
    assert [entry["path"] for entry in backend.glob("**").matches or ()] == ["/file.txt"]
    assert [match["path"] for match in backend.grep("needle").matches or ()] == ["/file.txt"]
    for result in (
        backend.read("/link"),
        backend.read("/link/deeper"),
        backend.write("/link", "x"),
        backend.edit("/link", "x", "y"),
        backend.ls("/link"),
    ):
        assert result.error is not None
        assert str(tmp_path) not in result.error
    assert backend.download_files(["/link"])[0].error is not None
    assert backend.delete("/link").error is None
    assert not os.path.lexists(tmp_path / "root" / "link")


def test_a_very_deep_tree_is_deleted_whole(backend: BackendProtocol, tmp_path: Path) -> None:
    here = os.open(tmp_path / "root", os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        os.close(here)
        here = below
    os.close(here)

    assert backend.delete("/d").error is None
    assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.parametrize(("size", "times"), [(1000, 10), (3 << 20, 3)], ids=["short", "long"])
def test_a_private_file_is_never_more_open_while_it_is_replaced(
    backend: BackendProtocol, tmp_path: Path, size: int, times: int
) -> None:
    key = tmp_path / "root" / "key"
    key.write_text("old")
    key.chmod(0o600)
    is_done = threading.Event()
    readable: set[str] = set()

    def watch() -> None:
        while not is_done.is_set():
            for each in key.parent.iterdir():
                with suppress(FileNotFoundError):
                    if each.stat().st_mode & 0o077:
                        readable.add(each.name)

    with ThreadPoolExecutor(1) as thread:
        watching = thread.submit(watch)
        for _ in range(times):
            assert backend.write("/key", "x" * size).error is None
        is_done.set()
        watching.result()

    assert readable == set()
    assert key.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in key.parent.iterdir()] == ["key"]

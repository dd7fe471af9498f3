"""Files stay whole whatever stops a writer, and of two writers that saw one version exactly one wins."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from deepagents.backends._bytes import is_temporary
from deepagents.backends.filesystem import FilesystemBackend
from tests.backends.processes import again_after_each_kill, ask, finish, listen, start, tell, wait_until_ready

KILLS = 30

WRITE_FOR_EVER = again_after_each_kill(
    """
from deepagents.backends.filesystem import FilesystemBackend
""",
    """
backend = FilesystemBackend(sys.argv[1])
while True:
    for letter in "abc":
        backend.write("/written.txt", letter * 300_000)
        backend.edit("/edited.txt", "version", "version", True)
        backend.upload_files([("/uploaded.bin", letter.encode() * 300_000)])
""",
)

COUNT_UP = """
import sys
from deepagents.backends.filesystem import FilesystemBackend
backend = FilesystemBackend(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
won = 0
while won < 25:
    page = backend.read("/counter.txt")
    number = int(page.file_data["content"])
    result = backend.write("/counter.txt", str(number + 1), expected_version=page.version)
    assert result.code in (None, "stale_version"), result
    won += result.error is None
"""


def test_a_writer_killed_at_any_moment_leaves_every_file_whole(tmp_path: Path) -> None:
    backend = FilesystemBackend(tmp_path)
    edited = "version " * 40_000
    backend.upload_files(
        [
            ("/written.txt", b"c" * 300_000),
            ("/edited.txt", edited.encode()),
            ("/uploaded.bin", b"c" * 300_000),
        ]
    )
    moment = random.Random(7)
    writers = start(WRITE_FOR_EVER, tmp_path)
    wait_until_ready(writers)
    for _ in range(KILLS):
        pid = int(ask(writers))
        time.sleep(moment.uniform(0, 0.03))
        os.kill(pid, signal.SIGKILL)
        assert listen(writers) == "gone"

        assert re.fullmatch("(a+|b+|c+)", (tmp_path / "written.txt").read_text())
        assert re.fullmatch("(a+|b+|c+)", (tmp_path / "uploaded.bin").read_text())
        assert {(tmp_path / name).stat().st_size for name in ("written.txt", "uploaded.bin")} == {300_000}
        assert (tmp_path / "edited.txt").read_text() == edited
    finish(writers)
    left = {path.name for path in tmp_path.iterdir()} - {"written.txt", "edited.txt", "uploaded.bin"}
    assert all(map(is_temporary, left))
    assert [entry["path"] for entry in backend.ls("/").entries or []] == [
        "/edited.txt",
        "/uploaded.bin",
        "/written.txt",
    ]


def test_processes_that_count_up_by_versions_lose_no_step(tmp_path: Path) -> None:
    (tmp_path / "counter.txt").write_text("0")
    counters = [start(COUNT_UP, tmp_path) for _ in range(3)]
    for counter in counters:
        wait_until_ready(counter)
    for counter in counters:
        tell(counter)
    for counter in counters:
        finish(counter)

    assert (tmp_path / "counter.txt").read_text() == "75"
    assert [path.name for path in tmp_path.iterdir()] == ["counter.txt"]


def together(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_threads_that_saw_one_version_exactly_one_wins(tmp_path: Path) -> None:
    backends = [FilesystemBackend(tmp_path) for _ in range(4)]
    for _ in range(20):
        seen = backends[0].write("/a", "start").version
        codes: list[str | None] = []

        def edit(
            backend: FilesystemBackend, seen: str | None = seen, codes: list[str | None] = codes
        ) -> None:
            codes.append(backend.edit("/a", "start", "done", expected_version=seen).code)

        together(*(lambda backend=backend: edit(backend) for backend in backends))

        assert sorted(codes, key=str) == [None, *["stale_version"] * 3]


def test_threads_that_edit_different_places_without_versions_lose_no_edit(tmp_path: Path) -> None:
    backend = FilesystemBackend(tmp_path)
    backend.write("/a", "".join(f"<{number}>" for number in range(40)))

    def edit(numbers: range) -> None:
        for number in numbers:
            assert backend.edit("/a", f"<{number}>", f"[{number}]").error is None

    together(lambda: edit(range(20)), lambda: edit(range(20, 40)))

    assert (tmp_path / "a").read_text() == "".join(f"[{number}]" for number in range(40))


def test_a_reader_never_sees_half_a_write(tmp_path: Path) -> None:
    backend = FilesystemBackend(tmp_path)
    backend.write("/a", "0" * 500_000)
    seen: set[str] = set()
    done = threading.Event()

    def write() -> None:
        for letter in "123456789" * 2:
            backend.write("/a", letter * 500_000)
        done.set()

    def read() -> None:
        while not done.is_set():
            (content,) = [each.content or b"" for each in backend.download_files(["/a"])]
            seen.add(f"{len(content)} of {len(set(content))}")

    together(write, read)

    assert seen == {"500000 of 1"}

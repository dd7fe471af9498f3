"""A page of a large file is right, and found without counting again what lies before it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepagents._text import to_lf
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.backends.filesystem.pages import LineMarks, Trail, read_page

LONG_AGO = 1_600_000_000
MOST = 10 << 20


def settle(path: Path, seconds: float = LONG_AGO) -> None:
    """Make a file look as if nobody had changed it for long."""
    os.utime(path, (seconds, seconds))


def lines(path: Path, count: int, text: str = "line") -> None:
    path.write_text("".join(f"{text} {number:08}\n" for number in range(count)), "utf-8")
    settle(path)


def text_at(backend: FilesystemBackend, offset: int) -> Any:
    found = backend.read("/big.log", offset, 1)
    assert found.error is None
    assert found.file_data
    return found.file_data["content"]


def test_the_second_page_starts_close_to_its_lines(tmp_path: Path) -> None:
    lines(tmp_path / "big.log", 300_000)
    marks = LineMarks()
    fd = os.open(tmp_path / "big.log", os.O_RDONLY)
    try:
        assert marks.trail_of(fd)[1].before(200_000) == (0, 0)
        read_page(fd, 200_000, 10, MOST, marks)
        line, position = marks.trail_of(fd)[1].before(200_000)
    finally:
        os.close(fd)

    assert 150_000 < line < 200_000
    assert 0 <= position - line * len("line 00000000\n") < len("line 00000000\n")


@settings(max_examples=25, derandomize=True)
@given(
    st.lists(st.sampled_from(["\n", "\r\n", "\r", "é\n", "🙂\r\n", "x" * 9000]), min_size=1, max_size=9),
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 400_000), st.integers(1, 50)), min_size=2, max_size=6
    ),
)
def test_pages_in_any_order_are_those_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], asked: list[tuple[int, int, int]]
) -> None:
    root = tmp_path_factory.mktemp("big")
    unit = "".join(pieces)
    content = f"{unit}a" * ((3 << 19) // len(f"{unit}a".encode()) + 1)
    (root / "big.log").write_bytes(content.encode())
    settle(root / "big.log")
    whole = to_lf(content).removesuffix("\n").split("\n")
    backend = FilesystemBackend(root)

    for from_end, number, limit in asked:
        offset = max(len(whole) - 1 - number, 0) if from_end else number
        page = backend.read("/big.log", offset, limit)
        if offset >= len(whole):
            assert f"({len(whole)} lines)" in str(page.error)
        elif page.code != "too_large":
            assert page.file_data
            shown = str(page.file_data["content"])
            assert shown.removesuffix("\n").split("\n") == whole[offset : offset + limit]


@pytest.mark.parametrize("way", ["in place", "replaced", "grown", "through the backend"])
def test_a_changed_file_is_counted_anew(tmp_path: Path, way: str) -> None:
    big = tmp_path / "big.log"
    lines(big, 200_000)
    backend = FilesystemBackend(tmp_path)
    assert text_at(backend, 150_000) == "line 00150000\n"

    changed = "\n" + big.read_text("utf-8")[1:]
    match way:
        case "in place":
            with big.open("r+b") as file:
                file.write(b"\n")
        case "replaced":
            (tmp_path / "new").write_text(changed, "utf-8")
            (tmp_path / "new").rename(big)
            settle(big)
        case "grown":
            with big.open("r+b") as file:
                file.write(b"\n")
                file.seek(0, os.SEEK_END)
                file.write(b"more\n")
            settle(big)
        case _:
            assert backend.write("/big.log", changed).error is None

    assert text_at(backend, 150_000) == "line 00149999\n"


def test_a_file_that_just_changed_is_not_remembered(tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text("line\n" * 400_000, "utf-8")
    marks = LineMarks()
    fd = os.open(tmp_path / "big.log", os.O_RDONLY)
    try:
        read_page(fd, 300_000, 1, MOST, marks)
        assert marks.trail_of(fd)[1].before(300_000) == (0, 0)
    finally:
        os.close(fd)


def test_what_is_remembered_of_a_file_is_bounded() -> None:
    trail = Trail()
    for number in range(1, 100_000):
        trail.add(number, number * 10)
    assert len(trail.lines) == len(trail.positions) <= 4096
    assert trail.before(99_990)[0] > 99_000
    assert all(position == line * 10 for line, position in zip(trail.lines, trail.positions, strict=True))

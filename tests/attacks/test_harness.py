"""The verdict fails where it should: on backends that leak, touch, let through or fail to say why."""

from __future__ import annotations

import base64
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.results import LsResult, ReadResult, WriteResult
from deepagents.testing import call
from tests.attacks.harness import CANARY, HINT, Ground, snapshot, spellings
from tests.conftest import CallMode

LOOK = call("read_file", file_path="/in.txt")


def said(content: str, **more: Any) -> ReadResult:
    return ReadResult(file_data={"content": content, "encoding": "utf-8"}, **more)


class Careless(BackendProtocol):
    """Answers `read` as a test says, raises with a real path, and touches what it should not."""

    def __init__(self, root: Path, answer: Callable[[], ReadResult]) -> None:
        self._root = root
        self._answer = answer

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return self._answer()

    def ls(self, path: str) -> LsResult:
        raise ValueError(f"no such directory: {self._root}")

    def write(self, file_path: str, content: str, *, expected_version: str | None = None) -> WriteResult:
        (self._root.parent / "outside" / "secret.txt").touch()
        return WriteResult(error="Not allowed", code="permission_denied")


def careless(ground: Ground, answer: Callable[[], ReadResult]) -> Ground:
    ground.options["backend"] = Careless(ground.root, answer)
    return ground


@pytest.mark.parametrize(
    ("leak", "what"),
    [
        (lambda top: said(f"it is {CANARY}"), CANARY),
        (lambda top: said(f"it is {CANARY[::-1]}"), CANARY[::-1]),
        (lambda top: said(base64.b64encode(f"??{CANARY}".encode()).decode()), "leaked"),
        (lambda top: said(f"not below {top}/x"), "leaked"),
        (lambda top: ReadResult(error=f"cannot open {top}", code="io_error"), "leaked"),
    ],
)
def test_a_leak_is_seen(disk: Ground, call_mode: CallMode, leak: Any, what: str) -> None:
    problems = careless(disk, lambda: leak(disk.top)).run(call_mode, LOOK).problems()

    assert any(what in problem for problem in problems)


def test_a_call_that_was_let_through_is_seen(disk: Ground, call_mode: CallMode) -> None:
    (problem,) = careless(disk, lambda: said("fine")).run(call_mode, LOOK).problems()

    assert problem.startswith("read_file was not refused")


def test_a_real_path_in_what_was_raised_is_seen(disk: Ground, call_mode: CallMode) -> None:
    problems = careless(disk, lambda: said("")).run(call_mode, call("ls", path="/")).problems()

    assert any(str(disk.top) in problem for problem in problems)


def test_a_touch_outside_is_seen_though_the_call_was_refused(disk: Ground, call_mode: CallMode) -> None:
    ground = careless(disk, lambda: said(""))
    (problem,) = ground.run(call_mode, call("write_file", file_path="/a", content="x")).problems()

    assert problem.startswith("was touched:")
    assert problem.endswith("secret.txt")


def test_a_root_that_is_too_wide_is_seen(disk: Ground, call_mode: CallMode) -> None:
    disk.options["backend"] = FilesystemBackend(disk.top)
    run = disk.run(
        call_mode,
        call("grep", pattern=HINT, output_mode="content"),
        call("delete", file_path="/outside"),
    )

    assert len(run.problems()) > 2


@pytest.mark.parametrize("shift", range(3))
def test_a_secret_is_known_in_base64_at_any_offset(shift: int) -> None:
    text = base64.b64encode(b"x" * shift + CANARY.encode() + b"\n and more").decode()

    assert any(spelling in text for spelling in spellings(CANARY))


def test_a_snapshot_tells_names_contents_modes_and_times(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    before = snapshot([tmp_path])
    changed = [
        lambda: (tmp_path / "a").chmod(0o600),
        lambda: (tmp_path / "a").write_text("b"),
        lambda: (tmp_path / "a").rename(tmp_path / "b"),
        lambda: (tmp_path / "b").unlink(),
    ]
    for change in changed:
        change()
        after = snapshot([tmp_path])
        assert after != before
        before = after


def test_no_attempt_gets_lost() -> None:
    names = [path.stem for path in Path(__file__).parent.glob("test_*.py")]
    modules = [import_module(f"tests.attacks.{name}") for name in names]
    tables = {
        id(value): value
        for module in modules
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, dict)
    }

    assert sum(map(len, tables.values())) >= 300

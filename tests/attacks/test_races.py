"""Nobody is led out between the check of a path and its use, while another process swaps names for links."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.results import ReadResult
from deepagents.testing import Asked, calls
from deepagents.testing.scripted import ScriptedAnswer
from tests.attacks.flipping import FLIP_DIRECTORY, FLIP_FILE, meanwhile
from tests.attacks.harness import CANARY, CHANGES, HINT, LOOKS, Ground, in_turn, tried
from tests.conftest import CallMode

pytestmark = pytest.mark.slow

TURNS = 8
"""How often a turn is said again while another process swaps names."""
EVERYTHING = frozenset((*LOOKS, *CHANGES))
LOOKING = [
    *(tried(tool, path) for tool in LOOKS for path in ("/d/secret.txt", "/d", "/d/deep")),
    ("glob", {"pattern": "**/*"}),
    ("grep", {"pattern": HINT, "output_mode": "content"}),
]
CHANGING = [
    tried("edit_file", "/d/secret.txt"),
    tried("write_file", "/d/new.txt"),
    tried("write_file", "/d/made/new.txt"),
    tried("delete", "/d/deep"),
]


class ChecksThenOpens(BackendProtocol):
    """Resolves a path, checks that it is inside, and only then opens it by name."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        path = self._root / file_path[1:]
        try:
            if not path.resolve().is_relative_to(self._root):
                return ReadResult(error="outside", code="invalid_path")
            os.sched_yield()
            return ReadResult(file_data={"content": path.read_text(), "encoding": "utf-8"})
        except OSError:
            return ReadResult(error="gone", code="io_error")


def test_the_race_is_lost_by_who_checks_first_and_opens_later(disk: Ground, call_mode: CallMode) -> None:
    (disk.root / "d" / "secret.txt").write_text("inside")
    disk.options["backend"] = ChecksThenOpens(disk.root)
    last = time.monotonic() + 30

    def read_until_it_leaks(asked: Asked) -> ScriptedAnswer:
        leaked = any(CANARY in message.text for message in asked.messages)
        late = time.monotonic() > last
        return "Done." if leaked or late else calls(*[tried("read_file", "/d/secret.txt")] * 10)

    with meanwhile(FLIP_DIRECTORY, disk.root, disk.top / "outside"):
        run = disk.run(call_mode, always=read_until_it_leaks)

    assert f"{CANARY!r} leaked in messages" in run.problems()


@pytest.mark.parametrize("turn", [LOOKING, CHANGING], ids=["looking", "changing"])
@in_turn("script", {"directory": FLIP_DIRECTORY, "file": FLIP_FILE})
def test_nobody_is_faster_than_the_check(
    disk: Ground, call_mode: CallMode, script: str, turn: list[Any]
) -> None:
    (disk.root / "d" / "secret.txt").write_text("inside")
    (disk.top / "outside" / "sub").mkdir()
    disk.harmless = EVERYTHING
    with meanwhile(script, disk.root, disk.top / "outside"):
        run = disk.run(call_mode, *(calls(*turn) for _ in range(TURNS)))

    assert run.problems() == []
    assert None in run.codes

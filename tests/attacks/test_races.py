"""Nobody is led out between the check of a path and its use, while another process swaps names for links."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.results import ReadResult
from deepagents.testing import Asked, calls
from deepagents.testing.scripted import ScriptedAnswer
from tests.attacks.flipping import FLIP_DIRECTORY, FLIP_FILE, meanwhile
from tests.attacks.harness import CANARY, CHANGES, HINT, LOOKS, Ground, tried
from tests.conftest import CallMode

SECONDS = 0.6
EVERYTHING = frozenset((*LOOKS, *CHANGES))
LOOKING = calls(
    *(tried(tool, path) for tool in LOOKS for path in ("/d/secret.txt", "/d", "/d/deep")),
    ("glob", {"pattern": "**/*"}),
    ("grep", {"pattern": HINT, "output_mode": "content"}),
)
CHANGING = calls(
    tried("edit_file", "/d/secret.txt"),
    tried("write_file", "/d/new.txt"),
    tried("write_file", "/d/made/new.txt"),
    tried("delete", "/d/deep"),
)


def as_long_as(there_is_time: Callable[[], bool], *turns: AIMessage) -> Callable[[Asked], ScriptedAnswer]:
    """Say the same turns again and again."""
    said = 0

    def reply(asked: Asked) -> ScriptedAnswer:
        nonlocal said
        said += 1
        again = turns[said % len(turns)]
        return (
            calls(*((each["name"], each["args"]) for each in again.tool_calls))
            if there_is_time()
            else "Done."
        )

    return reply


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
    looks = calls(*[tried("read_file", "/d/secret.txt")] * 10)

    def leaked(asked: Asked) -> bool:
        return any(CANARY in message.text for message in asked.messages)

    with meanwhile(FLIP_DIRECTORY, disk.root, disk.top / "outside", seconds=30) as there_is_time:
        again = as_long_as(there_is_time, looks)
        run = disk.run(call_mode, always=lambda asked: "Done." if leaked(asked) else again(asked))

    assert f"{CANARY!r} leaked in messages" in run.problems()


@pytest.mark.parametrize("script", [FLIP_DIRECTORY, FLIP_FILE], ids=["directory", "file"])
@pytest.mark.parametrize("turn", [LOOKING, CHANGING], ids=["looking", "changing"])
def test_nobody_is_faster_than_the_check(
    disk: Ground, call_mode: CallMode, script: str, turn: AIMessage
) -> None:
    (disk.root / "d" / "secret.txt").write_text("inside")
    (disk.top / "outside" / "sub").mkdir()
    disk.harmless = EVERYTHING
    with meanwhile(script, disk.root, disk.top / "outside", seconds=SECONDS) as there_is_time:
        run = disk.run(call_mode, always=as_long_as(there_is_time, turn))

    assert run.problems() == []
    assert None in run.codes

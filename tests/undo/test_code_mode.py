"""What a program has changed on disk is taken back like what calls have changed."""

from __future__ import annotations

from pathlib import Path

from deepagents.middleware import CodeModeMiddleware
from deepagents.testing import call
from tests.conftest import CallMode
from tests.undo.workshop import Workshop

CODE = """
import asyncio
await asyncio.gather(
    write_file(file_path="/new.txt", content="new"),
    edit_file(file_path="/old.txt", old_string="before", new_string="after"),
)
await execute(command="echo made > built.txt")
"""


def test_what_a_program_changed_is_taken_back(call_mode: CallMode, tmp_path: Path) -> None:
    shop = Workshop(call_mode, tmp_path)
    (shop.root / "old.txt").write_text("before\n")
    agent = shop.make_agent(middleware=[CodeModeMiddleware()])
    shop.do(call("read_file", file_path="/old.txt"), agent=agent)
    as_it_was = shop.tree()

    before = shop.do(call("run_code", code=CODE), agent=agent)
    assert (shop.root / "old.txt").read_text() == "after\n"
    assert sorted(path.name for path in shop.root.iterdir()) == ["built.txt", "new.txt", "old.txt"]

    shop.rewind(before, agent)
    assert shop.tree() == as_it_was

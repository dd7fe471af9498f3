"""The pictures of the conversation are drawn from the program in a terminal."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any, Final

import pytest

from tests.architecture.source import ROOT
from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.tmux import needs_tmux

pytestmark = pytest.mark.slow

SHOWN: Final = {
    "context": ("your messages", "free"),
    "models": ("local-server:qwen3-coder", "set ANTHROPIC_API_KEY"),
    "narrow": ("wants to edit notes.py", "[y]es"),
    "plan": ("compare dates, not text", "[2] Carry it out"),
    "question": ("wants to edit notes.py", "[y]es"),
    "subagents": ("Review the change of is_due", "A note is due"),
    "work": ("fromisoformat", "test_today PASSED", "[>]", "auto"),
}


@needs_tmux
@needs_sandbox
def test_each_picture_shows_what_it_is_for_and_loads_nothing(tmp_path: Path) -> None:
    draw: Any = runpy.run_path(str(ROOT / "docs" / "conversation_pictures.py"))["main"]

    assert draw(["--into", str(tmp_path)]) == 0

    drawn = {each.stem.removeprefix("conversation-"): each for each in tmp_path.glob("*.svg")}
    assert set(drawn) == set(SHOWN)
    for name, expected in SHOWN.items():
        picture = drawn[name].read_text()
        text = re.sub("<[^>]*>", "", picture).replace("&#160;", " ").replace("&gt;", ">")
        assert all(each in text for each in expected), f"{name}: {text}"
        assert set(re.findall(r"(?:src|href|url)\W+https?:", picture)) == set()
        assert str(tmp_path.parent) not in picture
        assert "/tmp" not in picture

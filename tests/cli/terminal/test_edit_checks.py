"""What a check after an edit finds reaches the model in a conversation, and a person sees it mended."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.approval.test_sandbox import needs_sandbox
from tests.cli.openai_server import OpenAIServer, Reply, Request, call
from tests.cli.terminal.person import Home, Person
from tests.cli.tmux import needs_tmux

pytestmark = [needs_tmux, needs_sandbox, pytest.mark.slow]
RUFF = Path(sys.executable).with_name("ruff").resolve()


@pytest.fixture
def person(tmp_path: Path, server: OpenAIServer) -> Iterator[Person]:
    """A person whose project has ruff in its own environment, and who has switched it on."""
    home = Home(tmp_path, server, {"old.py": "import os\n"})
    (home.directory / ".venv/bin").mkdir(parents=True)
    (home.directory / ".venv/bin/ruff").write_bytes(RUFF.read_bytes())
    (home.directory / ".venv/bin/ruff").chmod(0o755)
    command = "ruff check --no-cache --output-format=concise"
    (home.home / "settings.toml").write_text(f"[checks]\nruff = {json.dumps(command)}\n")
    with home.sit_down("--mode", "auto") as person:
        person.sees(r"scripted in\b")
        yield person


def test_an_import_that_nothing_uses_is_shown_to_the_model_and_mended(person: Person) -> None:
    steps = count(1)
    mended: list[str] = []

    def work(request: Request) -> str | Reply:
        """Look around until the check is heard of, then mend the file."""
        news = [each for each in request.texts("user") if "ruff: 1 new" in each]
        if not news:
            return call("grep", pattern=f"step {next(steps)}")
        if not mended:
            mended[:] = news
            return call("write_file", file_path="new.py", content="print(1)\n")
        return "It is mended."

    wrong = call("write_file", file_path="new.py", content="import sys\n")
    person.asks("Write new.py.", call("ls", path="."), wrong, *[work] * 100)

    shown = person.sees("^It is mended.")
    assert "checked after the edit: ruff: 1 new" in shown
    assert mended[0].endswith("  new.py:1:8: F401 [*] `sys` imported but unused")
    assert "old.py" not in mended[0]
    assert (person.directory / "new.py").read_text() == "print(1)\n"
    person.enters("/settings")
    person.sees("checks.ruff: ruff check")

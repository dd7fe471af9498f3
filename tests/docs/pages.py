"""Runs the Python blocks of a page as a reader would: in an empty directory, with nothing set up for them.

A block that begins with `# continued` goes on where the block before it stopped; every other one starts from
nothing. A comment behind a `print(...)` shows a line that it must print.
"""

from __future__ import annotations

import importlib.util
import io
import re
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from tests.architecture.source import ROOT
from tests.docs.provider import Script, serve

CONTINUED: Final = "# continued"
_FENCED = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A Python block of a page, the line where it begins, and the output that the page shows for it."""

    page: Path
    line: int
    code: str
    shown: list[str]


def find_pages() -> dict[str, Path]:
    """Return every page that shows Python, by its path in the repository."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(page.relative_to(ROOT)): page for page in found if "```python\n" in page.read_text()}


def find_blocks(page: Path) -> list[Block]:
    """Return the Python blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(
            page,
            text.count("\n", 0, found.start(1)),
            found[1],
            [*_SHOWN.findall(found[1]), *(found[2] or "").splitlines()],
        )
        for found in _FENCED.finditer(text)
    ]


def run_page(page: Path, script: Script, folder: Path, environment: pytest.MonkeyPatch) -> None:
    """Run the blocks of a page in order, with a script in the model's place.

    Raises:
        AssertionError: when a block prints something else than it shows, or answers are left over.
    """
    with serve(script) as address:
        environment.setenv("ANTHROPIC_BASE_URL", address)
        environment.setenv("ANTHROPIC_API_KEY", "none")
        names: dict[str, Any] = {}
        for number, block in enumerate(find_blocks(page)):
            if not block.code.startswith(CONTINUED):
                names = {"__name__": "__main__"}
                fresh = folder / str(number)
                fresh.mkdir()
                environment.chdir(fresh)
            _run(block, names)
    assert not script.unused(), f"answers that nothing asked for: {script.unused()}"


def _run(block: Block, names: dict[str, Any]) -> None:
    printed = io.StringIO()
    # The empty lines make the line numbers of a traceback those of the page.
    code = compile("\n" * block.line + block.code, str(block.page), "exec", dont_inherit=True)
    with redirect_stdout(printed):
        exec(code, names)
    missing = [line for line in block.shown if line not in printed.getvalue().splitlines()]
    assert not missing, (
        f"{block.page.name}:{block.line}: {missing} not in what was printed:\n{printed.getvalue()}"
    )


def load_program(name: str) -> ModuleType:
    """Import a program of the documents by its name."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module

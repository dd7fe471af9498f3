"""The curl lines of the documents work on the agent of `make serve`."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.docs.provider import Script, serve
from tests.server.serving import Program

pytestmark = pytest.mark.slow

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^curl (?:.*\\\n)*.*", re.MULTILINE)


def _lines(page: Path) -> list[str]:
    return [line for block in _BLOCK.findall(page.read_text()) for line in _COMMAND.findall(block)]


PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if _lines(page)]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the example as its directory has it, with a script in the model's place."""
    directory = tmp_path_factory.mktemp("serve") / "serve"
    # Without what `make serve` has left there.
    shutil.copytree(ROOT / "examples" / "serve", directory, ignore=shutil.ignore_patterns(".deepagents"))
    with serve(Script({"*": ["Baltic, North, Black."] * 20})) as model:
        environ = {
            "DEEPAGENTS_MODEL": "anthropic:claude-sonnet-4-6",
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "none",
        }
        running = Program(directory, "serve", **environ)
        yield running.start().split("//")[-1]
        running.end(signal.SIGTERM)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_curl_lines_of_a_page_work(page: Path, address: str, tmp_path: Path) -> None:
    for line in _lines(page):
        assert "localhost:2024" in line
        typed = line.replace("localhost:2024", address).replace("curl ", "curl --fail-with-body ", 1)
        done = subprocess.run(["sh", "-c", typed], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        assert done.stdout
        if any(path in line for path in ("/runs/", "/v1/", "/mcp")):
            assert "Baltic" in done.stdout

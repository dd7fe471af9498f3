"""The import contracts of pyproject.toml hold, and would be seen to break."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

LINT = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]

WRONG_IMPORTS = {
    "_async.py": "from deepagents import graph",
    "errors.py": "import langchain",
    "middleware/_base.py": "from deepagents.middleware import subagents",
    "tools/search.py": "from deepagents.tools import change",
    "backends/state.py": "from deepagents.backends import filesystem",
    "models/resolve.py": "from deepagents.testing import scripted",
}


def check_contracts(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        LINT,
        cwd=project,
        env={"PYTHONPATH": str(project / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def test_every_contract_is_kept() -> None:
    checked = check_contracts(ROOT)

    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(("module", "statement"), WRONG_IMPORTS.items(), ids=WRONG_IMPORTS.keys())
def test_a_wrong_import_breaks_a_contract(module: str, statement: str, tmp_path: Path) -> None:
    project = skeleton(tmp_path)
    assert check_contracts(project).returncode == 0

    (project / "src/deepagents" / module).write_text(statement)

    checked = check_contracts(project)
    assert checked.returncode == 1, checked.stdout
    assert "BROKEN" in checked.stdout


def skeleton(project: Path) -> Path:
    """Copy the names of our modules, empty, and the contracts over them."""
    (project / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for module in (ROOT / "src").rglob("*.py"):
        copy = project / module.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.touch()
    return project

"""The import contracts of pyproject.toml hold, and would be seen to break."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.architecture.source import ROOT

LINT = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]

WRONG_IMPORTS = {
    "deepagents._async": "deepagents.graph",
    "deepagents.errors": "langchain",
    "deepagents.middleware._base": "deepagents.middleware.subagents",
    "deepagents.tools.search": "deepagents.tools.change",
    "deepagents.backends.state": "deepagents.backends.filesystem",
    "deepagents.models.resolve": "deepagents.testing.scripted",
    "deepagents_cli.session.agent.agents": "deepagents_cli.views.task",
    "deepagents_cli.session.turns.turns": "deepagents_cli.session.conversation.undo",
    "deepagents_cli.views.conversation.chat": "deepagents_cli.views.rendering.live",
    "deepagents_cli.views.chat.input.line": "deepagents_cli.views.chat.screen.drawing",
}
"""One for each of ten contracts."""


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


def test_each_wrong_import_breaks_its_contract(tmp_path: Path) -> None:
    project = skeleton(tmp_path)
    assert check_contracts(project).returncode == 0

    for module, imported in WRONG_IMPORTS.items():
        (project / "src" / f"{module.replace('.', '/')}.py").write_text(f"import {imported}")
    checked = check_contracts(project)

    assert checked.returncode == 1, checked.stdout
    assert "10 broken" in checked.stdout
    assert [each for each in WRONG_IMPORTS.items() if " -> ".join(each) not in checked.stdout] == []


def skeleton(project: Path) -> Path:
    """Copy the names of our modules, empty, and the contracts over them."""
    (project / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for module in (ROOT / "src").rglob("*.py"):
        copy = project / module.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.touch()
    return project

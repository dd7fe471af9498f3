"""The programs that people use: an edit that breaks a type is shown once, mended, and shown no more."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deepagents.backends import LocalSandbox
from tests.conftest import CallMode
from tests.mcp.test_real_servers import NODE, NPM
from tests.middleware.checked import LOOK, Work, write

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).with_name("typescript")
PLACE = Path(__file__).parents[2] / "build" / "typescript"

GREET = '''\
def greet(name: str) -> str:
    """Return a greeting."""
    return f"Hello, {name}"
'''
MAIN = """\
from greeting import greet

OLD: int = "wrong before"
print(greet("you"))
"""


# Each of these programs runs for seconds; that the colours do the same is tried with quicker ones.
@pytest.mark.parametrize("call_mode", ["async"], indirect=True)
def test_a_python_project_with_pyright_and_ruff(tmp_path: Path, call_mode: CallMode) -> None:
    (tmp_path / "greeting.py").write_text(GREET)
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "pyproject.toml").write_text('[tool.pyright]\nvenvPath = "."\nvenv = ".venv"\n')
    work = Work(tmp_path, call_mode, pyright="pyright", ruff="ruff check --output-format=concise")
    # Where a project has its programs; this one borrows those of the tests.
    (tmp_path / ".venv").symlink_to(sys.prefix)
    work.backend = LocalSandbox(tmp_path, python=sys.prefix)

    broken = write(f"{tmp_path}/greeting.py", f"import os\n\n\n{GREET.replace('name: str', 'name: int')}")
    mended = write(f"{tmp_path}/greeting.py", f"# It greets.\n{GREET}")
    shown = work.turn(LOOK, broken, LOOK, mended, LOOK, "Done.")

    assert work.warned == []
    assert len(shown) == 1
    lines = shown[0].splitlines()
    assert lines[1] == "pyright: 1 new"
    assert "main.py:4:13 - error:" in lines[2]
    assert '"Literal[\'you\']" is not assignable to "int"' in shown[0]
    assert "  greeting.py:1:8: F401 [*] `os` imported but unused" in lines


def install_typescript() -> None:
    """Install what the lock file names, once for each lock file; without a registry, skip the test."""
    mark, wanted = PLACE / "installed", (SOURCES / "package-lock.json").read_text()
    if mark.is_file() and mark.read_text() == wanted:
        return
    PLACE.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCES / name, PLACE)
    install = [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(install, cwd=PLACE, capture_output=True, text=True, timeout=280, check=False)
    if done.returncode:
        pytest.skip(f"typescript cannot be installed here: {done.stderr[-300:]}")
    mark.write_text(wanted)


@pytest.mark.parametrize("call_mode", ["sync"], indirect=True)
def test_a_typescript_project_with_tsc(tmp_path: Path, call_mode: CallMode) -> None:
    install_typescript()
    (tmp_path / "tsconfig.json").write_text(
        '{"compilerOptions": {"strict": true, "types": []}, "include": ["*.ts"]}'
    )
    (tmp_path / "tide.ts").write_text(
        "export function tide(port: string): number {\n  return port.length;\n}\n"
    )
    (tmp_path / "main.ts").write_text(
        'import { tide } from "./tide";\n\n'
        'const old: number = "wrong before";\nexport const high = tide("Saint-Malo");\n'
    )
    (tmp_path / "node_modules").symlink_to(PLACE / "node_modules")
    work = Work(tmp_path, call_mode, tsc="tsc --noEmit --pretty false")
    # The Node of the tests, for which a project would have one on its PATH.
    path = f"{NODE.parent}:/usr/bin:/bin"
    work.backend = LocalSandbox(tmp_path, python=sys.prefix, readable=[PLACE], env={"PATH": path})
    tide = tmp_path / "tide.ts"
    broken = write(
        str(tide), f"// Metres.\n{tide.read_text().replace('port: string', 'port: { name: string }')}"
    )
    mended = write(str(tide), f"// Metres.\n{tide.read_text()}")

    shown = work.turn(LOOK, broken, LOOK, mended, LOOK, "Done.")

    assert work.warned == []
    assert len(shown) == 1
    lines = shown[0].splitlines()
    assert lines[1] == "tsc: 2 new"
    assert any(each.startswith("  main.ts(4,26): error TS2345: Argument of type 'string'") for each in lines)
    assert not any("wrong before" in each for each in lines)

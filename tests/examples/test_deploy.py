"""The files for other people's machines pass the tools that check such files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "examples" / "serve" / "deploy"
TOOLS = Path(sys.executable).parent
CHECKS = {
    "compose.yaml": [str(TOOLS / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec"],
    "kubernetes.yaml": [str(TOOLS / "kubernetes-validate"), "--strict"],
    "Dockerfile": [str(TOOLS / "hadolint")],
    "deepagents.service": ["systemd-analyze", "verify"],
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_file_for_another_machine_is_well_formed(name: str) -> None:
    if not shutil.which(CHECKS[name][0]):
        pytest.skip(f"{Path(CHECKS[name][0]).name} is not installed")

    done = subprocess.run([*CHECKS[name], str(DEPLOY / name)], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_is_checked() -> None:
    assert {each.name for each in DEPLOY.iterdir()} == {*CHECKS}

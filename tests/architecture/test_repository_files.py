"""What the repository brings for its host and for editors is well formed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.architecture.source import ROOT

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def check(schema: str, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_workflow_is_one_that_can_run(tmp_path: Path) -> None:
    workflow = ROOT / ".github" / "workflows" / "test.yml"
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(workflow.read_text().replace("runs-on:", "runs-at:"))

    assert check("vendor.github-workflows", workflow).returncode == 0
    assert check("vendor.github-workflows", wrong).returncode == 1


def test_the_workflow_runs_each_python_that_is_promised_and_targets_that_are_there() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    promised = [f"Python :: 3.{minor}" in (ROOT / "pyproject.toml").read_text() for minor in (11, 12, 13)]
    targets = {step["run"].split()[1] for job in jobs.values() for step in job["steps"] if "run" in step}

    assert promised == [True] * 3
    assert jobs["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert all(f"\n{target}:" in (ROOT / "Makefile").read_text() for target in targets)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_asks_something(form: Path) -> None:
    read = yaml.safe_load(form.read_text())

    assert {"name", "description", "body"} <= read.keys()
    assert [part["id"] for part in read["body"]]


def test_the_hooks_before_a_commit_call_what_is_there() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    programs = {hook["entry"].split()[0] for hook in repository["hooks"]}

    assert [
        program for program in programs if not Path(sys.executable).with_name(Path(program).name).exists()
    ] == []


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda root: (root / "new.txt").write_text("x"), "changes that are not committed"),
        (lambda root: git(root, "tag", "v0.7.100"), "is a tag already"),
        (lambda root: None, "CHANGELOG.md has no section"),
    ],
)
def test_a_release_that_is_not_ready_is_refused(tmp_path: Path, spoil: object, says: str) -> None:
    assert callable(spoil)
    for name in (".ci/release", "src/deepagents/_version.py", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    (tmp_path / "src/deepagents/_version.py").write_text('__version__ = "0.7.100"\n')
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x")
    spoil(tmp_path)

    refused = subprocess.run(
        ["bash", ".ci/release", "uv", "python"], cwd=tmp_path, capture_output=True, text=True
    )

    assert refused.returncode == 1
    assert says in refused.stderr


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)

"""The doctor looks at what a person and a project have set and brought, and runs none of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

BROKEN = {
    "plugins/a/hooks/hooks.json": '{"hooks": {"Other": []}}',
    "plugins/b/hooks/hooks.json": '{"hooks": ',
    "plugins/c/.claude-plugin/plugin.json": "[",
    "agents/a.md": "---\nname: rev\n---\n",
    "commands/empty.md": "",
    "settings.toml": 'hooks.end_of_turn = ["./check.sh --all"]\nmode = "asks"\n',
}


@pytest.fixture(autouse=True)
def _only_one_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    # Where nothing listens.
    monkeypatch.setenv("DEEPAGENTS_LOCAL_SERVER", "http://127.0.0.1:9")


def test_what_is_broken_is_named_with_its_file_and_the_way_out(
    cli: Command, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DEEPAGENTS_SETTINGS")
    for place in (directory, tmp_path / "home"):
        for name, text in BROKEN.items():
            write(place / ".deepagents" / name, text)

    checks = json.loads(cli("doctor", "--json", "--dir", str(directory)).out)["checks"]

    wrong = [each for each in checks if each["state"] == "missing" and str(tmp_path) in each["what"]]
    assert all(each["way_out"] for each in wrong)
    for place in (directory, tmp_path / "home"):
        named = {each["name"] for each in wrong if str(place / ".deepagents") in each["what"]}
        assert named == {"hooks", "plugin", "agents", "commands", "settings"}
    (hook,) = {each["way_out"] for each in checks if "there is no program './check.sh'" in each["what"]}
    assert hook == "install './check.sh', make it executable if it is a file, or take the hook out"


def test_what_is_there_and_what_waits_for_trust_is_listed(cli: Command, directory: Path) -> None:
    for name in ("AGENTS.md", ".deepagents/skills/s/SKILL.md"):
        write(directory / name, "x")
    write(directory / ".deepagents/agents/reviewer.md", "---\ndescription: A.\nmodel: nobody:x\n---\n")
    write(directory / ".deepagents/commands/go.md", "!`touch ran`")
    write(directory / ".deepagents/settings.toml", 'hooks.end_of_turn = ["cd ."]\nchecks.own = "tidy ."')
    write(directory / "node_modules/.bin/tidy", "#!/bin/sh\n")
    (directory / "node_modules/.bin/tidy").chmod(0o755)

    before = cli("doctor", "--dir", str(directory)).out
    cli("trust", str(directory), "--yes")
    after = cli("doctor", "--dir", str(directory)).out

    for found in (
        "AGENTS.md",
        "reviewer",
        "go",
        "end_of_turn cd .",
        "own: tidy .",
        f"{directory}/.deepagents/skills",
    ):
        assert f"{found}\n" in before
    assert "not used until you trust this directory: 1 hook, 1 check, 1 command, 1 agent\n" in before
    assert f"deepagents trust {directory}\n" in before
    assert "nobody:x" not in before
    assert "what this project brings is used\n" in after
    assert "No model could be made from 'nobody:x'" in after
    assert not (directory / "ran").exists()


def test_a_local_model_that_is_unknown_or_not_here_is_named(
    cli: Command, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEEPAGENTS_CACHE", str(tmp_path / "cache"))
    for name, model in (("a", "local:none"), ("b", "local"), ("c", "local:qwen2.5-coder-0.5b")):
        text = f"---\ndescription: A.\nmodel: {model}\n---\n"
        write(tmp_path / "home" / ".deepagents" / "agents" / f"{name}.md", text)

    checks = json.loads(cli("doctor", "--json", "--dir", str(directory)).out)["checks"]

    wrong = {each["name"]: each["way_out"] for each in checks if each["state"] == "missing"}
    assert "There is no local model 'none'" in wrong["agent a"]
    assert "deepagents models pull" in wrong["agent b"]
    assert "deepagents models pull qwen2.5-coder-0.5b" in wrong["agent c"]


def test_a_model_without_its_key_is_one_short_line_and_the_way_out_another(
    cli: Command, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    text = "---\ndescription: A.\nmodel: anthropic:claude-sonnet-4-6\n---\n"
    write(tmp_path / "home" / ".deepagents" / "agents" / "a.md", text)

    lines = cli("doctor", "--dir", str(directory)).out.splitlines()

    at = next(at for at, line in enumerate(lines) if " agent a " in line)
    assert lines[at].split(maxsplit=3)[3] == "anthropic:claude-sonnet-4-6 cannot be used"
    assert lines[at + 1].strip() == "set ANTHROPIC_API_KEY"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

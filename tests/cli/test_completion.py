"""A shell completes commands, options and sessions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel
from tests.cli.conftest import Command
from tests.cli.tmux import Tmux, needs_tmux

ASK = """
source {script}
deepagents() {{ echo tidy-up; }}
COMP_WORDS=({words} "")
COMP_CWORD={count}
_shtab_deepagents 2>/dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_is_one_of_its_shell(cli: Command, tmp_path: Path, shell: str) -> None:
    script = tmp_path / "script"
    script.write_text(cli("completion", shell).out)

    assert "doctor" in script.read_text()
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(script)], check=True)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("deepagents", {"run", "sessions", "doctor", "trust"}),
        ("deepagents sessions", {"list", "show"}),
        ("deepagents sessions show", {"tidy-up"}),
    ],
)
def test_bash_offers_what_fits(cli: Command, tmp_path: Path, words: str, offered: set[str]) -> None:
    script = tmp_path / "script"
    script.write_text(cli("completion", "bash").out)

    asked = ASK.format(script=script, words=words, count=len(words.split()))
    answered = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)

    assert offered <= {*answered.stdout.split()}


@pytest.mark.skipif(not shutil.which("fish"), reason="needs fish")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("deepagents ", {"run", "sessions", "doctor", "trust"}),
        ("deepagents run --mode ", {"ask", "auto", "plan", "full"}),
        ("deepagents sessions show ", {"tidy-up"}),
    ],
)
def test_fish_offers_what_fits(cli: Command, tmp_path: Path, typed: str, offered: set[str]) -> None:
    script = tmp_path / "script"
    script.write_text(cli("completion", "fish").out)

    asked = f"function deepagents; echo tidy-up; end; source {script}; complete -C '{typed}'"
    answered = subprocess.run(
        ["fish", "--no-config", "-c", asked], capture_output=True, text=True, check=True, cwd=tmp_path
    )

    assert offered <= {line.partition("\t")[0] for line in answered.stdout.splitlines()}


@needs_tmux
@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_completes_what_is_typed(cli: Command, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(cli("completion", "zsh").out)
    (tmp_path / ".zshrc").write_text(
        "PS1='$ '\nautoload -U compinit && compinit -u -D\n"
        f'eval "$(cat {tmp_path}/script)"\ndeepagents() {{ echo tidy-up }}\n'
    )
    with Tmux(["zsh", "-i"], directory=tmp_path, environment={"ZDOTDIR": str(tmp_path)}) as terminal:
        terminal.wait_for(r"^\$")
        for typed, completed in (("deepagents sess", "sessions$"), ("sh", "show$"), ("", "tidy-up")):
            terminal.type(typed)
            terminal.keys("Tab")
            terminal.wait_for(completed)


def test_sessions_of_the_directory_are_offered(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    assert cli("completion", "sessions").out == ""

    cli.run("hello", "--thread", "mine", model=ScriptedModel("Hello."))

    assert {"hello", "mine"} <= {*cli("completion", "sessions").out.split()}

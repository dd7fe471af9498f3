"""A shell completes commands, options and sessions, once the printed lines were typed."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel
from deepagents_cli.__main__ import main
from tests.architecture.source import ROOT
from tests.cli.conftest import Command
from tests.cli.tmux import Tmux, needs_tmux

FILES = {
    "bash": (".bashrc", "PS1='$ '\n"),
    "zsh": (".zshrc", "PS1='$ '\n"),
    "fish": (".config/fish/config.fish", "function fish_prompt; echo -n '$ '; end; set fish_greeting\n"),
}
PROMPT = r"^\$ *\s*\Z"
PAGE = (ROOT / "docs/concepts/command-line.md").read_text("utf-8")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The lines that install the completion, as `deepagents completion -h` prints them for each shell."""
    with pytest.raises(SystemExit):
        main(["completion", "-h"])
    found = re.findall(r"^  (\w+)\n((?:    .+\n)+)", capsys.readouterr().out, re.MULTILINE)
    return {shell: lines.replace("    ", "") for shell, lines in found}


@needs_tmux
@pytest.mark.parametrize("shell", [*FILES])
def test_each_shell_completes_what_is_typed(
    cli: Command, printed: dict[str, str], directory: Path, tmp_path: Path, state: Path, shell: str
) -> None:
    if not (program := shutil.which(shell)):
        pytest.skip(f"{shell} is not installed")
    cli.run("tidy-up", "--thread", "mine", model=ScriptedModel("Tidy."))
    cli.run("$(touch here): and `touch here`", "--thread", "other", model=ScriptedModel("No."))
    (directory / "inner place").mkdir()
    home = tmp_path / "home"
    name, content = FILES[shell]
    (home / name).parent.mkdir(parents=True)
    (home / name).write_text(content)
    settings = {
        "HOME": str(home),
        "ZDOTDIR": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "DEEPAGENTS_STATE": str(state),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "LANG": "C.UTF-8",
    }

    with Tmux([program, "-i"], directory=directory, environment=settings) as terminal:
        for line in [*printed[shell].splitlines(), f"exec {program} -i", "clear"]:
            terminal.wait_for(PROMPT)
            terminal.type(line)
            terminal.keys("Enter")
        for parts in (
            (("deepagents sess", "sessions"), ("del", "delete"), ("tid", "tidy-up"), ("mi", "mine")),
            (("deepagents --cont", "--continue"), ("--mode pl", "--mode plan")),
            (("deepagents --dir inn", r"--dir inner\ place/"),),
        ):
            terminal.wait_for(PROMPT)
            line = "deepagents"
            for typed, completed in parts:
                terminal.type(typed)
                terminal.keys("Tab")
                line = f"{line} {completed}"
                terminal.wait_for(rf"^\$ {re.escape(line)} *$")
            terminal.keys("C-u")

    assert sorted(each.name for each in directory.iterdir()) == ["inner place", "notes.md"]


def test_the_page_has_the_lines_that_are_printed(printed: dict[str, str]) -> None:
    assert f"```sh\n{printed['bash']}```" in PAGE


def test_sessions_of_the_directory_are_offered(
    cli: Command, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    assert cli("completion", "sessions").out == ""

    cli.run("hello", "--thread", "mine", model=ScriptedModel("Hello."))
    # Not a word for a shell, and read as an option.
    cli.run("--yes", "--thread", "its id", model=ScriptedModel("Hello."))
    cli.run("two words\x1b[2J", "--thread", "another", model=ScriptedModel("Hello."))

    assert cli("completion", "sessions").out == ("another\ttwo words\\x1b[2J\nhello\tmine\nmine\thello\n")

"""A shell completes commands, options and sessions, once the printed lines were typed."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from deepagents.testing import ScriptedModel
from deepagents_cli.__main__ import main
from deepagents_cli.commands.args import build_parser
from deepagents_cli.commands.completion import find_parsers
from deepagents_cli.commands.environment import actions_of
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


def test_bash_offers_every_command_option_and_choice_that_there_is(
    cli: Command, directory: Path, tmp_path: Path
) -> None:
    if not (bash := shutil.which("bash")):
        pytest.skip("bash is not installed")
    (directory / "inner").mkdir()
    script = tmp_path / "completion.bash"
    script.write_text(cli("completion", "bash").out)
    parser, _ = build_parser(with_task=True)
    wanted = {
        (*words, typed): offered for words, each in _commands(parser) for typed, offered in _offers(each)
    }
    asked = "".join(f"ask {shlex.join(line)}\n" for line in wanted)
    program = f"""
source {shlex.quote(str(script))}
ask() {{
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _shtab_deepagents deepagents "${{@: -1}}"
    printf '%s\\t' "${{COMPREPLY[@]}}"; echo
}}
{asked}"""

    ended = subprocess.run([bash], input=program, capture_output=True, text=True, cwd=directory, check=True)

    offered = [set(line.split("\t")) for line in ended.stdout.splitlines()]
    assert len(offered) == len(wanted) > 30
    missing = {line: names - found for (line, names), found in zip(wanted.items(), offered, strict=True)}
    assert {line: names for line, names in missing.items() if names} == {}


@pytest.mark.parametrize("shell", [*FILES])
def test_each_script_names_every_option(cli: Command, shell: str) -> None:
    parser, _ = build_parser(with_task=True)
    script = cli("completion", shell).out

    options = {
        option
        for each in find_parsers(parser)
        for action in actions_of(each)
        for option in _shown(action)
        if option.startswith("--")
    }
    assert len(options) > 60
    assert {each for each in options if each[2 if shell == "fish" else 0 :] not in script} == set()


def _commands(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ("deepagents",)
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield the words of each command with its parser."""
    yield words, parser
    for name, below in _below(parser).items():
        yield from _commands(below, (*words, name))


def _offers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, set[str]]]:
    """Yield what may be typed next, as far as the parser says it."""
    yield "-", {option for action in actions_of(parser) for option in _shown(action)}
    if commands := _below(parser):
        yield "", {*commands}


def _below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands of a parser."""
    tables: list[Any] = [action.choices for action in actions_of(parser) if isinstance(action.choices, dict)]
    every = {name: below for table in tables for name, below in table.items()}
    return {name: below for name, below in every.items() if isinstance(below, argparse.ArgumentParser)}


def _shown(action: argparse.Action) -> Sequence[str]:
    return () if action.help == argparse.SUPPRESS else action.option_strings


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

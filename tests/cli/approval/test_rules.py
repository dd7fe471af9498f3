"""A rule "always" lets through what a person meant, and nothing that rides on it."""

from __future__ import annotations

import pytest

from deepagents_cli.approval.rules import (
    covers,
    is_relative,
    make_rule,
    offers_for_command,
    read_rule,
    split_plain,
)


def covers_prefix(prefix: str, command: str) -> bool:
    return covers([make_rule("commands", prefix)], "command", command)


@pytest.mark.parametrize(
    "command", ["git log", "git log --oneline -5", "git  log 'a; b'", 'git log --author="Jürgen M"']
)
def test_a_prefix_covers_commands_that_begin_so(command: str) -> None:
    assert covers_prefix("git log", command)


@pytest.mark.parametrize(
    "command",
    [
        "git logs", "git", "git diff", "./git log", "git log; rm -rf .", "git log && ls", "git log | sh",
        "git log & ls", "git log > x", "git log < x", "git log $(ls)", "git log `ls`", "git log $HOME",
        "git log \"$(ls)\"", "git log \"`ls`\"", "git log {a,b}", "git log *", "git log ?", "git log [a]",
        "git log #x", "git log \\\nls", "git log\nls", "git log\rls", "git log\tx", "git log\x0bls",
        "git log\u00a0x", "g\u0456t log", "git l\u043eg", "git log \u202e", "git log !x", "git log 'a",
        "A=1 git log", "PATH=. git log", "git -c core.pager=ls log", "git --exec-path=. log", "git -C / log",
        "git log --output=x", "git log --outp x", "git log --ext-diff", "git log --textconv", "git log -O x",
        "env git log", "sudo git log", "sh -c 'git log'", "xargs git log", "(git log)", "! git log",
    ],
    ids=ascii,
)  # fmt: skip
def test_nothing_rides_on_a_prefix(command: str) -> None:
    assert not covers_prefix("git log", command)


@pytest.mark.parametrize("host", ["*", "*.example.org", "localhost", "10.0.0.1/8", "a b.org", "x.org:22"])
def test_a_rule_about_a_host_names_one(host: str) -> None:
    with pytest.raises(ValueError, match="host"):
        read_rule(f"host: {host}")


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("git fetch", "git fetch --upload-pack=ls x"),
        ("git fetch", "git fetch --upl ls x"),
        ("git grep", "git grep -Ols x"),
        ("git push", "git push --receive-pack=ls x"),
        ("git rebase", "git rebase -x ls"),
        ("git clone", "git clone -c core.fsmonitor=ls x"),
        ("find", "find . -exec ls"),
        ("find", "find . -delete"),
        ("find", "find . -fprintf x y"),
        ("tar", "tar -xIls -f x"),
        ("tar", "tar xf x --to-command=ls"),
        ("make test", "make test SHELL=ls"),
        ("rg", "rg --pre ls x"),
    ],
)
def test_options_that_run_other_programs_are_no_arguments(prefix: str, command: str) -> None:
    assert not covers_prefix(prefix, command)


@pytest.mark.parametrize(
    "prefix", ["git", "env", "sudo ls", "bash", "xargs", "python", "npm run", "A=1 git log", "uv run", "-",
               "python3.11", "/usr/bin/node20", "perl5.36", "Rscript", "nvim", "deno"]
)  # fmt: skip
def test_a_prefix_that_can_run_anything_is_no_rule(prefix: str) -> None:
    covered = covers_prefix(prefix, f"{prefix} x")
    offered = offers_for_command(f"{prefix} --x y", exactly=False)

    assert not covered or prefix == "-"
    assert f"commands: {prefix}" not in offered or prefix == "-"


def test_a_command_is_covered_just_so() -> None:
    rules = [read_rule("command: make; ls")]

    assert covers(rules, "command", "make; ls", exactly=True)
    assert not covers(rules, "command", "make; ls x")


def test_a_question_offers_the_command_and_how_it_begins() -> None:
    assert [*offers_for_command("npm run test -- -v", exactly=False)] == [
        "command: npm run test -- -v",
        "commands: npm run test",
    ]
    assert offers_for_command("ls\nrm x", exactly=False) == {}


@pytest.mark.parametrize(
    "text", ["", "ls", "command:", "edit: x", "commands: sudo", "else: x", "edits: /a\nb"]
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"rule|begins"):
        read_rule(text)


def test_words_are_those_of_a_shell() -> None:
    assert split_plain("a 'b  c'd \"e\" ''") == ["a", "b  cd", "e", ""]


@pytest.mark.parametrize(
    ("rule", "relative"),
    [
        ("command: ./build.sh", True),
        ("commands: tools/check", True),
        ("command: make -C sub/dir", True),
        ("command: /usr/bin/make", False),
        ("commands: git log", False),
        ("edit: /x/a.py", False),
    ],
)
def test_a_rule_about_a_program_of_a_directory_is_known(rule: str, relative: bool) -> None:
    assert is_relative(read_rule(rule)) is relative

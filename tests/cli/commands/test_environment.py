"""Options of servers that are variables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepagents_cli.__main__ import main
from deepagents_cli.commands.args import build_parser, parse
from deepagents_cli.commands.completion import find_parsers
from deepagents_cli.commands.environment import actions_of


def test_what_is_not_typed_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("DATABASE", "postgresql://me:secret@db/x"),
        ("PORT", "8000"),
        ("KEEP_RUNS", "30d"),
        ("ALLOW_ANYONE", "1"),
        ("MAX_BODY", "1MB"),
        ("LOG_FORMAT", "json"),
        ("AGENT", "agent.py:agent"),
        ("RUNS", ""),
    ):
        monkeypatch.setenv(f"DEEPAGENTS_SERVER_{name}", value)

    served, worker = parse(["serve", "--port", "1"]), parse(["worker"])

    assert (served.port, served.keep_runs, served.runs) == (1, 30 * 86400, 10)
    assert (served.allow_anyone, served.max_body, served.log_format) == (True, 1_000_000, "json")
    assert served.agent == worker.agent == "agent.py:agent"
    for given in (served, worker, parse(["db", "vacuum"]), parse(["keys", "list"])):
        assert given.database == "postgresql://me:secret@db/x"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("RUNS", "many", "'many' is not a whole number greater than 0, in DEEPAGENTS_SERVER_RUNS"),
        ("PORT", "http", "in DEEPAGENTS_SERVER_PORT"),
        ("ALLOW_ANYONE", "maybe", "'maybe' is neither 1 nor 0, in DEEPAGENTS_SERVER_ALLOW_ANYONE"),
        (
            "LOG_LEVEL",
            "loud",
            "'loud' is none of debug, info, warning, error, in DEEPAGENTS_SERVER_LOG_LEVEL",
        ),
        ("MAX_BODY", "0", "is not a size"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(
    variable: str,
    value: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(f"DEEPAGENTS_SERVER_{variable}", value)

    with pytest.raises(SystemExit):
        parse(["serve"])

    assert said in capsys.readouterr().err
    assert parse(["run", "go"]).task == "go", "other commands do not read it"


def test_every_option_of_a_server_and_a_worker_has_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for parser in find_parsers(build_parser()[0]):
        if parser.prog not in ("deepagents serve", "deepagents worker"):
            continue
        for action in actions_of(parser):
            if action.dest == "help":
                continue
            text = "1" if action.choices is None else list(action.choices)[0]
            monkeypatch.setenv(f"DEEPAGENTS_SERVER_{action.dest.upper()}", str(text))
            given = vars(parse(parser.prog.split()[1:]))[action.dest]
            assert given is not None
            assert given is not False


def test_what_an_agent_starts_does_not_inherit_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEEPAGENTS_SERVER_DATABASE", "postgresql://me:secret@127.0.0.1:1/x")

    assert main(["serve", "gone.py:agent"]) == 2

    assert "secret" not in capsys.readouterr().err
    assert not [name for name, value in os.environ.items() if "me:secret" in value]

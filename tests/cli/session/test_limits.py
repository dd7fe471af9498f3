"""Limits that are typed bind a run, which then ends with what it has and an exit code of its own."""

from __future__ import annotations

import pytest

from deepagents import Limits, Price
from deepagents.testing import ScriptedModel, call
from deepagents_cli.commands.args import parse
from deepagents_cli.session.agent.access import limits_of
from tests.cli.conftest import Command


def looking() -> ScriptedModel:
    return ScriptedModel(always=lambda asked: call("ls", path=f"/{len(asked.messages)}"))


def test_what_is_typed_becomes_limits() -> None:
    typed = "--max-tokens 5000 --max-cost 2.5 --price 3/15/0.3 --max-time 1h30m --max-model-calls 7"
    arguments = parse(["run", "go", *typed.split(), "--max-tool-calls", "8", "--max-repeats", "4"])

    assert limits_of(arguments) == Limits(
        tokens=5000,
        money=2.5,
        seconds=5400,
        model_calls=7,
        tool_calls=8,
        repeats=4,
        prices={"*": Price(3, 15, 0.3)},
    )


def test_without_a_word_only_repeats_are_limited() -> None:
    assert limits_of(parse(["run", "go"])) == Limits(repeats=10)
    assert limits_of(parse(["run", "go", "--max-repeats", "0"])) is None


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--max-tokens", "0", "'0' is not a whole number greater than 0"),
        ("--max-model-calls", "ten", "'ten' is not a whole number"),
        ("--max-time", "soon", "'soon' is not a time; write 90s, 10m or 1h30m"),
        ("--max-time", "1h30", "'1h30' is not a time; write 90s, 10m or 1h30m"),
        ("--max-time", "9" * 400, "is not a time"),
        ("--max-tokens", "9" * 400, "is not a whole number"),
        ("--max-tokens", "9" * 5000, "is not a whole number"),
        ("--max-cost", "-1", "'-1' is not an amount"),
        ("--max-cost", "nan", "'nan' is not an amount"),
        ("--price", "3", "'3' is not a price"),
        ("--price", "3/x", "'3/x' is not a price"),
    ],
)
def test_what_is_no_limit_is_named(
    option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["run", "go", option, value])

    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_run_stops_at_its_limit_and_goes_on_when_told_to(cli: Command) -> None:
    ended = cli.run("look around", "--max-model-calls", "3", model=looking())

    assert ended.code == 4
    assert "Stopped at a limit: the limit of 3 model calls was reached" in ended.out
    assert "deepagents: stopped at --max-model-calls 3, with the work not finished." in ended.err
    assert "deepagents --continue" in ended.err
    assert "Traceback" not in ended.err

    again = cli.run("--continue", "Go on.", "--max-model-calls", "3", model=ScriptedModel("Done."))
    assert again.code == 0
    assert "Done." in again.out


def test_programs_read_an_event(cli: Command) -> None:
    ended = cli.run("look around", "--json", "--max-tool-calls", "2", model=looking())

    (reached,) = ended.of_kind("limit_reached")
    assert ended.code == 4
    assert (reached["kind"], reached["limit"], reached["agent"]) == ("tool_calls", 2, None)
    assert len(ended.of_kind("limit_near")) == 1


def test_a_cost_without_a_price_is_refused_at_once(cli: Command) -> None:
    ended = cli.run("look around", "--max-cost", "1", model=looking())

    assert ended.code == 2
    assert "--max-cost needs --price: nothing says what scripted:scripted costs" in ended.err

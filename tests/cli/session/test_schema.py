"""A program asks for an answer that fits a schema, and gets JSON or a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deepagents.testing import ScriptedModel, call
from tests.cli.conftest import Command, Ended

SCHEMA = {
    "title": "Count of files",
    "type": "object",
    "properties": {"files": {"type": "integer"}},
    "required": ["files"],
}
GOOD, BAD = call("Count_of_files", files=1), call("Count_of_files", files="one")


def run(cli: Command, tmp_path: Path, model: ScriptedModel, *options: str, schema: object = SCHEMA) -> Ended:
    path = tmp_path / "schema.json"
    path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
    return cli.run("count", "--schema", str(path), *options, model=model)


def test_quietly_it_is_json_alone(cli: Command, tmp_path: Path) -> None:
    ended = run(cli, tmp_path, ScriptedModel(GOOD), "-q")

    assert (ended.code, ended.out) == (0, '{"files": 1}\n')


def test_as_events_it_stands_in_the_final_answer(cli: Command, tmp_path: Path) -> None:
    ended = run(cli, tmp_path, ScriptedModel(GOOD), "--json")

    (answer,) = ended.of_kind("final_answer")
    assert (answer["structured"], json.loads(answer["text"])) == ({"files": 1}, {"files": 1})


def test_otherwise_it_is_shown(cli: Command, tmp_path: Path) -> None:
    assert '{"files": 1}' in run(cli, tmp_path, ScriptedModel(GOOD)).out


@pytest.mark.parametrize(
    ("first", "said"), [(BAD, 'at /files: "one" is not of type "integer"'), ("One.", "in the form that was")]
)
def test_an_answer_that_does_not_fit_is_asked_for_again(
    cli: Command, tmp_path: Path, first: object, said: str
) -> None:
    model = ScriptedModel(first, GOOD)  # pyright: ignore[reportArgumentType]

    ended = run(cli, tmp_path, model, "-q")

    assert (ended.code, ended.out) == (0, '{"files": 1}\n')
    assert said in model.asked[1].messages[-1].text


def test_without_a_fitting_answer_the_run_fails(cli: Command, tmp_path: Path) -> None:
    ended = run(cli, tmp_path, ScriptedModel(*[BAD] * 4), "-q")

    assert ended.code == 1
    assert "the model gave no answer that fits" in ended.err


def test_a_model_that_only_announces_an_answer_is_not_asked_for_ever(cli: Command, tmp_path: Path) -> None:
    model = ScriptedModel(*["Let me look:"] * 20)

    ended = run(cli, tmp_path, model, "-q")

    assert ended.code == 1
    assert "the model gave no answer that fits" in ended.err
    # The first, three for the schema, and one for the question whether that was all.
    assert len(model.asked) == 5


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2"),
        ("[]", 'an answer is an object: write "type": "object"'),
        ({"type": "array"}, 'an answer is an object: write "type": "object"'),
        ({"type": "object", "properties": {"a": {"type": "whole"}}}, "at /properties/a/type: "),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/X"}}}, "'/$defs/X' does not exist"),
        ({"type": "object", "$ref": "http://127.0.0.1:9/x"}, "http://127.0.0.1:9/x is not fetched"),
        ('{"type": "object", "a": ' + "[" * 100_000, "recursion"),
    ],
)
def test_a_wrong_schema_is_wrong_usage(cli: Command, tmp_path: Path, schema: object, said: str) -> None:
    ended = run(cli, tmp_path, ScriptedModel(), schema=schema)

    assert ended.code == 2
    assert f"--schema {tmp_path / 'schema.json'}: " in ended.err
    assert said in ended.err


def test_a_missing_schema_is_wrong_usage(cli: Command) -> None:
    ended = cli.run("count", "--schema", "nowhere.json", model=ScriptedModel())

    assert (ended.code, ended.err) == (2, "deepagents: --schema nowhere.json: No such file or directory\n")

"""A server asks in the middle of a call: a person answers each part, declines, or nobody is there."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from deepagents.testing import ScriptedModel
from deepagents.testing import call as scripted_call
from deepagents_cli.protocol import Answer, Choice, Question
from deepagents_cli.session.turns.elicitation import answer_server
from tests.cli.conftest import Command
from tests.cli.openai_server import OpenAIServer, call
from tests.cli.session.conftest import Worker
from tests.cli.session.test_servers import bring, open_trusted
from tests.mcp.servers import crooked

pytestmark = pytest.mark.slow

NOBODY = "Nobody can be asked."


async def answers(*given: str, **request: Any) -> tuple[Any, list[str]]:
    """Return what a server reads where a person picks and types these, and the questions."""
    left, shown = list(given), list[str]()

    async def ask(text: str, choices: Sequence[Choice]) -> str:
        shown.append(text)
        said = left.pop(0)
        return next((each.value for each in choices if each.label == said), said)

    asked = {"key": "k", "message": "Which table?", "mode": "form", **request}
    found = await answer_server({"tool_name": "book", "requests": [asked]}, ask)
    assert not left, left
    return found["responses"]["k"], shown


def form(*required: str, **properties: Any) -> dict[str, Any]:
    return {"requested_schema": {"type": "object", "properties": properties, "required": list(required)}}


async def test_each_field_is_asked_for_and_what_does_not_fit_once_more() -> None:
    fields = form(
        "name",
        name={"type": "string", "minLength": 2, "description": "Who comes"},
        seats={"type": "integer", "maximum": 8, "title": "Seats"},
        price={"type": "number"},
        note={"type": "string"},
        wine={"type": "string", "default": "red"},
        out={"type": "boolean"},
    )

    found, shown = await answers("Answer", "", "A", "Ada", "many", "9", "4", "1.5", "", "", "Yes", **fields)

    content = {"name": "Ada", "seats": 4, "price": 1.5, "wine": "red", "out": True}
    assert found == {"action": "accept", "content": content}
    assert shown[0] == (
        "Which table?\n(for a call of book)\nIt wants to know: name, Seats, price, note, wine, out"
    )
    assert shown[1] == "name: Who comes"
    assert shown[2].endswith("\nIt is needed. Once more:")
    assert "shorter than 2 characters" in shown[3]
    assert shown[4] == "Seats\n(a whole number, may be empty)"
    assert shown[5].endswith("\n'many' is not a whole number. Once more:")
    assert "9 is greater than the maximum of 8" in shown[6]


@pytest.mark.parametrize(
    ("schema", "picked", "value"),
    [
        ({"enum": ["s", "m"]}, "m", "m"),
        ({"enum": ["s", "m"], "enumNames": ["Small", "Middle"]}, "Small", "s"),
        ({"oneOf": [{"const": "s", "title": "Small"}, {"const": "m"}]}, "Small", "s"),
        ({"type": "boolean"}, "No", False),
    ],
)
async def test_a_value_is_picked(schema: Any, picked: str, value: Any) -> None:
    found, shown = await answers(picked, **form(size=schema))

    assert found == {"action": "accept", "content": {"size": value}}
    assert shown == ["Which table?\n(for a call of book)\nsize"]


async def test_several_values_and_one_of_many_are_typed() -> None:
    several = {"type": "array", "items": {"enum": ["a", "b", "c"]}}
    many = {"enum": [f"v{each}" for each in range(30)]}

    found, shown = await answers("Answer", "a, x", "a,c", "v31", "v7", **form(several=several, many=many))

    assert found["content"] == {"several": ["a", "c"], "many": "v7"}
    assert "\n  v29" in shown[-1]


@pytest.mark.parametrize(
    ("said", "action"), [("Decline", "decline"), (NOBODY, "cancel"), ("accept", "accept")]
)
async def test_an_address_is_shown_whole_and_opened_by_nobody(said: str, action: str) -> None:
    url = "https://example.org/login?" + "x" * 2_000

    found, shown = await answers(said, mode="url", url=url)

    assert found == {"action": action}
    assert url in shown[0]


@pytest.mark.parametrize("fields", [form(), form(name={}), form(out={"type": "boolean"})])
@pytest.mark.parametrize(("said", "action"), [("Decline", "decline"), (NOBODY, "cancel")])
async def test_a_form_is_declined_or_answered_by_nobody(fields: Any, said: str, action: str) -> None:
    assert (await answers(said, **fields))[0] == {"action": action}


async def test_a_form_without_fields_asks_for_an_agreement() -> None:
    assert (await answers("Agree", **form()))[0] == {"action": "accept", "content": {}}


@pytest.mark.parametrize("way", ["$schema", "$ref", "$id"])
async def test_a_schema_of_a_server_fetches_nothing(way: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema"
        fields = form(a={"type": "string", way: address, **({"$ref": "x"} if way == "$id" else {})})

        found, _ = await answers("Answer", "x", **fields)

        assert found["content"] == {"a": "x"}
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    "schema",
    [{"properties": 3}, {"properties": {"a": 3}, "required": 7}, {"properties": {"a": {"minLength": "x"}}}],
)
async def test_a_schema_that_is_none_breaks_nothing(schema: Any) -> None:
    given = ("Agree",) if schema["properties"] == 3 else ("Answer", "x")
    assert (await answers(*given, requested_schema=schema))[0]["action"] == "accept"


def test_a_person_answers_and_the_call_goes_on(worker: Worker, server: OpenAIServer, directory: Path) -> None:
    bring(directory, hotel=crooked("book", call="ask"))
    server.then(call("mcp__hotel__book"), lambda request: request.last)
    open_trusted(worker, mode="full")
    worker.say("Book.")
    asked = worker.wait(Question)
    assert asked.agent == "The MCP server hotel"
    assert asked.text.startswith("Sure, the 1. time?")
    assert [each.label for each in asked.choices] == ["Yes", "No", "Decline"]
    worker.send(Answer(asked.id, asked.choices[0].value))

    said = json.loads(worker.answer())
    assert said == {"calls": 1, "answers": [{"action": "accept", "content": {"sure": True}}]}


def test_a_question_is_cancelled_and_the_call_goes_on(
    worker: Worker, server: OpenAIServer, directory: Path
) -> None:
    bring(directory, hotel=crooked("book", call="ask"))
    server.then(call("mcp__hotel__book"), lambda request: request.last)
    open_trusted(worker, mode="full")
    worker.say("Book.")
    asked = worker.wait(Question)
    assert asked.can_cancel
    worker.send(Answer(asked.id, "", cancelled=True))

    assert json.loads(worker.answer())["answers"] == [{"action": "cancel"}]


def test_a_task_without_a_person_cancels(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"hotel": crooked("book", call="ask")}}))
    model = ScriptedModel(scripted_call("mcp__hotel__book"), lambda asked: asked.last)

    ended = cli.run("go", "--mcp", str(path), "--yes", "-q", model=model)

    assert json.loads(ended.out)["answers"] == [{"action": "cancel"}]

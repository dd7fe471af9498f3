"""Tools whose schemas come from elsewhere cannot end or hold up a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

from deepagents import create_deep_agent
from tests.cli.openai_server import call, serving

TEXT = {"type": "string"}


def doubling(times: int) -> dict[str, Any]:
    """Make definitions that each name the next twice."""
    names = [{"$ref": f"#/$defs/d{number + 1}"} for number in range(times)]
    twice = {
        f"d{n}": {"type": "object", "properties": {"x": each, "y": each}} for n, each in enumerate(names)
    }
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**twice, f"d{times}": TEXT}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = TEXT
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


HOSTILE: dict[str, dict[str, Any]] = {
    "a property that is called like a reference": {
        "properties": {"$ref": {"type": "string"}, "a": TEXT},
        "required": ["$ref", "a"],
    },
    "a reference that is not text": {"properties": {"a": {"$ref": True}}},
    "a reference to nothing": {"properties": {"a": {"$ref": "#/$defs/none"}}},
    "a reference to elsewhere": {"properties": {"a": {"$ref": "https://evil.example/schema"}}},
    "definitions that double": doubling(25),
    "many definitions that double": doubling(2_000),
    "deep": nested(5_000),
    "within itself": {
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}},
    },
}


def offered(schema: dict[str, Any]) -> Any:
    """Run an agent whose tool has this schema; return what of it was sent."""

    def answer(**given: Any) -> str:
        return f"answered {given}"

    odd = StructuredTool(
        name="odd", description="Odd.", args_schema={"type": "object", **schema}, func=answer
    )
    with serving(call("odd", a="x"), "Done.") as server:
        address: Any = {"base_url": server.address, "api_key": "none"}
        result = create_deep_agent(ChatOpenAI(model="fake", **address), tools=[odd]).invoke(
            {"messages": "Go"}
        )
        (tool,) = [each for each in server.requests[0].body["tools"] if each["function"]["name"] == "odd"]
    assert [each.text for each in result["messages"][2:]] == ["answered {'a': 'x'}", "Done."]
    return tool["function"]["parameters"]


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_schema_ends_a_run_or_holds_it_up(kind: str) -> None:
    sent = offered(HOSTILE[kind])

    assert "a" in sent["properties"]
    assert sent.get("required", ["a"]) == ["a"]
    assert "$ref" not in json.dumps(sent)
    assert len(json.dumps(sent)) < 500_000


def test_an_ordinary_schema_is_sent_as_it_is() -> None:
    place = {"type": "object", "properties": {"street": TEXT}}
    schema = {
        "properties": {
            "a": {"anyOf": [TEXT, {"type": "null"}]},
            "from": {"$ref": "#/$defs/place", "description": "where"},
            "same": {"$ref": "#/properties/a/anyOf/0"},
        },
        "$defs": {"place": place},
    }

    assert offered(schema)["properties"] == {
        "a": schema["properties"]["a"],
        "from": {**place, "description": "where"},
        "same": TEXT,
    }

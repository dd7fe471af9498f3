"""No server makes the program grow, or its requests; what is too much is left out and named."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from deepagents.errors import ToolFailure
from deepagents.mcp import MCPServers
from tests.mcp.servers import crooked, tool

MB = 2**20


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


@pytest.mark.parametrize("how", ["huge", "huge_first"])
def test_a_message_that_is_too_large_is_an_error_and_the_server_goes_on(call_mode: Any, how: str) -> None:
    with MCPServers({"one": crooked("read", call=how)}) as servers:
        [read] = call_mode.call(servers, "tools")
        assert len(call_mode.invoke(read, {"size": 10})) == 10
        before = resident()

        with pytest.raises(ToolFailure, match="more than 16777216 bytes") as raised:
            call_mode.invoke(read, {"size": 60 * MB})

        assert raised.value.code == "too_large"
        assert resident() - before < 150 * MB
        assert len(call_mode.invoke(read, {"size": 10})) == 10


@pytest.mark.slow
def test_a_line_without_end_costs_a_start_and_no_memory(call_mode: Any) -> None:
    before = resident()
    servers = MCPServers({"one": crooked(start="endless")}, startup_timeout=1)

    call_mode.call(servers, "start")

    assert servers.status()["one"].status == "failed"
    assert resident() - before < 150 * MB
    call_mode.call(servers, "close")


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


DOUBLING = {
    f"d{number}": {"type": "object", "properties": dict.fromkeys("ab", {"$ref": f"#/$defs/d{number + 1}"})}
    for number in range(25)
}
UNFIT: dict[str, Any] = {
    "array": {"name": "bad", "inputSchema": {"type": "array"}},
    "none": {"name": "bad"},
    "no object": {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": 7}}},
    "deep": {"name": "bad", "inputSchema": deep(250)},
    "wide": tool("bad", **{f"p{number}": {"type": "string"} for number in range(2600)}),
    "long": tool("bad", a={"type": "string", "enum": ["x" * 70_000]}),
    "doubling": {**tool("bad", a={"$ref": "#/$defs/d0"})},
    "reference": tool("bad", a={"$ref": "#/$defs/none"}),
    "a name": tool("bad", **{"$ref": {"type": "string"}}),
    "unseen": tool("bad", **{"a\u202e": {"type": "string"}}),
}
UNFIT["doubling"]["inputSchema"]["$defs"] = {**DOUBLING, "d25": {"type": "string"}}


@pytest.mark.parametrize("kind", UNFIT)
def test_a_tool_that_cannot_be_offered_costs_itself_alone(kind: str) -> None:
    with MCPServers({"one": crooked("before", UNFIT[kind], "after")}) as servers:
        offered = [each.name for each in servers.tools()]
        shown = servers.status()["one"]

    assert offered == ["mcp__one__before", "mcp__one__after"]
    assert (shown.tools, shown.skipped) == (2, ("bad",))


def test_a_schema_that_contains_itself_is_counted_once() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}}
    listed = tool("grow", tree={"$ref": "#/$defs/tree"})
    listed["inputSchema"]["$defs"] = {"tree": tree}

    with MCPServers({"one": crooked(listed)}) as servers:
        assert [each.name for each in servers.tools()] == ["mcp__one__grow"]


def test_small_faults_of_a_description_are_mended() -> None:
    listed = {
        **tool("fine", a={"type": "string"}),
        "annotations": {"readOnlyHint": "yes"},
        "title": 7,
        "icons": 1,
    }

    with MCPServers({"one": crooked(listed, "fine")}) as servers:
        [fine] = servers.tools()
        assert servers.status()["one"].skipped == ("fine",), "the second of a name"

    assert fine.metadata == {
        "mcp": {"server": {"name": "one"}, "tool": {"name": "fine", "annotations": None, "_meta": None}}
    }


def test_no_character_that_is_not_seen_reaches_a_model() -> None:
    hidden = "a\u202eb\u200bc\x1bd\U000e0041e\ufe0ff\u3164g"
    listed = tool("read", hidden + "x" * 3000, city={"type": "string", "description": hidden})

    with MCPServers({"one": crooked(listed)}) as servers:
        [read] = servers.tools()
    schema: Any = read.args_schema

    assert read.description == "abcdefg" + "x" * 2041
    assert schema["properties"]["city"]["description"] == "abcdefg"
    assert not any(unicodedata.category(each) == "Cf" for each in json.dumps(schema, ensure_ascii=False))


def test_a_schema_is_offered_in_a_form_that_every_provider_takes() -> None:
    choices = [{"properties": {"city": {"type": "string"}}}, {"properties": {"zip": {"type": "integer"}}}]
    listed = [
        {**tool("find"), "inputSchema": {"type": "object", "$schema": "x", "anyOf": choices}},
        tool("none"),
    ]

    with MCPServers({"one": crooked(*listed)}) as servers:
        find, none = (each.args_schema for each in servers.tools())

    assert find == {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}}}
    assert none == {"type": "object", "properties": {}}


def test_a_thousand_tools_at_most_are_offered() -> None:
    with MCPServers({"one": crooked({**tool("tool"), "repeat": 1200})}) as servers:
        assert len(servers.tools()) == 1000
        assert len(servers.status()["one"].skipped) == 200


ITSELF: Any = {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "required": ["x"]}
ENDLESS: dict[str, Any] = {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [ITSELF, ITSELF]}}}


@pytest.mark.parametrize("hidden", [False, True])
def test_no_output_schema_keeps_the_program_busy(call_mode: Any, hidden: bool) -> None:
    """Two ways at each of forty levels: to try all of them takes years, in which no server answers."""
    grow = {**tool("grow"), "outputSchema": ENDLESS}
    with MCPServers({"one": crooked(grow, call="nested", hidden=hidden)}, call_timeout=20) as servers:
        assert call_mode.invoke(call_mode.call(servers, "tools")[0], {}) == "done"


def test_a_result_that_is_large_for_its_schema_is_not_checked(call_mode: Any) -> None:
    output = {
        "type": "object",
        "properties": {"all": {"items": {"anyOf": [{"const": n} for n in range(500)]}}},
    }
    count = {**tool("count"), "outputSchema": output}
    with MCPServers({"one": crooked(count, call="promise")}, call_timeout=20) as servers:
        [tool_of_it] = call_mode.call(servers, "tools")
        assert call_mode.invoke(tool_of_it, {"all": [1000] * 100_000}) == "done"
        with pytest.raises(ToolFailure, match=r"all/0: 1000 is not valid"):
            call_mode.invoke(tool_of_it, {"all": [1000]})


@pytest.mark.parametrize(
    "promise",
    [
        {"patternProperties": {"^a": {}}, "additionalProperties": False},
        {"properties": {"a": {"oneOf": [{"pattern": "^b"}, {"pattern": "^c"}]}}},
        {"properties": {"a": {"not": {"pattern": "^c"}}}},
        {"if": {"properties": {"a": {"pattern": "^c"}}}, "then": {"required": ["c"]}},
    ],
)
def test_what_keeps_a_promise_in_patterns_is_taken(call_mode: Any, promise: Any) -> None:
    """No pattern is checked: it could keep the program busy."""
    keep = {**tool("keep"), "outputSchema": {"type": "object", **promise}}
    with MCPServers({"one": crooked(keep, call="promise")}) as servers:
        assert call_mode.invoke(call_mode.call(servers, "tools")[0], {"a": "b"}) == "done"


def test_unfit_tools_without_end_are_named_up_to_a_thousand() -> None:
    unfit = {"name": "bad", "inputSchema": {"type": "array"}, "repeat": 3000}
    with MCPServers({"one": crooked("good", unfit, page={"nextCursor": "on"})}) as servers:
        assert [each.name for each in servers.tools()] == ["mcp__one__good"]
        assert len(servers.status()["one"].skipped) == 1000


def test_a_list_without_end_ends() -> None:
    with MCPServers({"one": crooked("same", page={"nextCursor": "on"})}) as servers:
        assert [each.name for each in servers.tools()] == ["mcp__one__same"]

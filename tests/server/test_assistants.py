from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, PermissionDeniedError

from tests.server.serving import AGENTS, serving
from tests.server.test_runs import last, say


async def test_every_graph_has_an_assistant_that_stays_as_it_is(client: LangGraphClient) -> None:
    found: Any = await client.assistants.search(graph_id="echo", metadata={"created_by": "system"})

    (assistant,) = found
    assert await client.assistants.get("echo") == assistant
    assert await client.assistants.get(assistant["assistant_id"]) == assistant
    with pytest.raises(PermissionDeniedError):
        await client.assistants.update(assistant["assistant_id"], name="mine")
    with pytest.raises(PermissionDeniedError):
        await client.assistants.delete(assistant["assistant_id"])


async def test_an_assistant_configures_a_graph_in_versions(client: LangGraphClient) -> None:
    mark = str(uuid4())
    made = await client.assistants.create(
        "echo", config={"configurable": {"tone": "low"}}, metadata={"mark": mark}, name="Bass"
    )
    name = made["assistant_id"]
    assert last(await client.runs.wait(None, name, input=say("tone ?"))) == "low"

    changed = await client.assistants.update(name, config={"configurable": {"tone": "high"}}, name="Treble")
    assert changed["version"] == 2
    assert last(await client.runs.wait(None, name, input=say("tone ?"))) == "high"
    over: Any = {"configurable": {"tone": "own"}}
    assert last(await client.runs.wait(None, name, input=say("tone ?"), config=over)) == "own"

    back = await client.assistants.set_latest(name, 1)
    assert (back["name"], back["version"]) == ("Bass", 1)
    assert last(await client.runs.wait(None, name, input=say("tone ?"))) == "low"
    assert [each["version"] for each in await client.assistants.get_versions(name)] == [2, 1]
    assert await client.assistants.count(metadata={"mark": mark}) == 1

    await client.assistants.delete(name)
    with pytest.raises(NotFoundError):
        await client.assistants.get(name)


async def test_nobody_passes_an_assistant_off_as_that_of_a_graph(client: LangGraphClient) -> None:
    forged = {"created_by": "system", "mark": "mine"}
    made = await client.assistants.create("echo", metadata=forged)
    changed = await client.assistants.update(made["assistant_id"], metadata=forged)

    assert made["metadata"] == changed["metadata"] == {"mark": "mine"}


async def test_an_assistant_is_made_once(client: LangGraphClient) -> None:
    name = str(uuid4())
    await client.assistants.create("echo", assistant_id=name)

    with pytest.raises(ConflictError):
        await client.assistants.create("echo", assistant_id=name)
    again = await client.assistants.create("deep", assistant_id=name, if_exists="do_nothing")

    assert again["graph_id"] == "echo"
    with pytest.raises(NotFoundError):
        await client.assistants.create("nothing")


def test_a_file_that_has_changed_changes_the_assistants_of_its_graphs_only(tmp_path: Path) -> None:
    echo, deep = f"{AGENTS}:echo", f"{AGENTS}:deep"
    with (
        serving(tmp_path, slots=0, graphs={"a": echo, "b": echo}, descriptions={"a": "Echoes."}) as url,
        get_sync_client(url=url, api_key=None) as client,
    ):
        made = client.assistants.create("b", name="mine")["assistant_id"]
        first: Any = client.assistants.get("a")
    with (
        serving(tmp_path, slots=0, graphs={"a": deep, "c": echo}, descriptions={"a": "Dives."}) as url,
        get_sync_client(url=url, api_key=None) as client,
    ):
        found: Any = client.assistants.search(sort_by="graph_id", sort_order="asc")
        (version,) = client.assistants.get_versions("a")
        schema: Any = client.assistants.get_schemas("a")
        with pytest.raises(NotFoundError, match="'b' of this assistant is not served here"):
            client.runs.create(None, made, input=say("hello"))
        kept: Any = client.assistants.get(made)
    with (
        serving(tmp_path, slots=0, graphs={"a": deep, "b": echo}) as url,
        get_sync_client(url=url, api_key=None) as client,
    ):
        again = {each["name"]: each["description"] for each in client.assistants.search()}

    assert [(each["graph_id"], each["description"]) for each in found] == [("a", "Dives."), ("c", None)]
    assert found[0] == {**first, "description": "Dives."}
    assert version["description"] == "Dives."
    assert "files" in schema["input_schema"]["properties"]
    assert (kept["graph_id"], kept["name"], kept["version"]) == ("b", "mine", 1)
    assert again == {"a": None, "b": None, "mine": None}


async def test_an_assistant_describes_its_graph(client: LangGraphClient) -> None:
    schemas: Any = await client.assistants.get_schemas("deep")
    drawn: Any = await client.assistants.get_graph("outer", xray=True)
    inner: Any = await client.assistants.get_subgraphs("outer")

    assert "messages" in schemas["input_schema"]["properties"]
    assert "messages" in schemas["state_schema"]["properties"]
    assert "inner:answer" in {node["id"] for node in drawn["nodes"]}
    assert [*inner] == ["inner"]

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError

from deepagents_server.config import ServerConfig
from deepagents_server.database import open_database
from deepagents_server.database.tables import leases
from deepagents_server.errors import ServeError
from deepagents_server.server import Settings, open_server
from tests.server.serving import serving


async def test_the_store_keeps_finds_and_forgets(client: LangGraphClient) -> None:
    place = ["places", str(uuid4())]
    await client.store.put_item(place, "tide", {"height": 13})

    kept: Any = await client.store.get_item(place, "tide")
    found: Any = await client.store.search_items(place, filter={"height": 13})
    listed: Any = await client.store.list_namespaces(prefix=["places"])

    assert kept["value"] == {"height": 13}
    assert [each["key"] for each in found["items"]] == ["tide"]
    assert place in listed["namespaces"]
    await client.store.delete_item(place, "tide")
    assert await client.store.get_item(place, "tide") is None


async def test_an_item_goes_when_its_time_is_over(client: LangGraphClient) -> None:
    place = ["places", str(uuid4())]
    await client.store.put_item(place, "stays", {"height": 13}, ttl=60)
    await client.store.put_item(place, "goes", {"height": 13}, ttl=cast(int, 0.001))

    async with asyncio.timeout(60):
        while await client.store.get_item(place, "goes", refresh_ttl=False):
            await asyncio.sleep(0.1)

    assert await client.store.get_item(place, "stays")
    with pytest.raises(UnprocessableEntityError, match="ttl"):
        await client.store.put_item(place, "never", {}, ttl=-1)


async def test_a_place_without_a_name_is_refused(client: LangGraphClient) -> None:
    with pytest.raises(UnprocessableEntityError, match="namespace"):
        await client.store.put_item([""], "tide", {})


@pytest.mark.parametrize("config", [{"default_ttl": 60}, {"default_ttl": 60, "refresh_on_read": False}])
def test_to_read_an_item_renews_its_time_unless_somebody_says_otherwise(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    late = "2099-01-01 00:00:00"
    with (
        serving(tmp_path, slots=0, store={"ttl": config}) as url,
        get_sync_client(url=url, api_key=None) as client,
        closing(sqlite3.connect(tmp_path / "server.db", isolation_level=None)) as database,
    ):
        client.store.put_item(["places"], "tide", {})

        def renews(read: Callable[[], Any]) -> bool:
            database.execute("UPDATE store SET expires_at = ?", (late,))
            read()
            return database.execute("SELECT expires_at FROM store").fetchall() != [(late,)]

        default = config.get("refresh_on_read", True)
        assert renews(lambda: client.store.get_item(["places"], "tide")) is default
        assert renews(lambda: client.store.search_items(["places"])) is default
        assert not renews(lambda: client.store.get_item(["places"], "tide", refresh_ttl=False))
        assert not renews(lambda: client.store.search_items(["places"], refresh_ttl=False))


EMBED = """
def embed(texts):
    return [[float("sea" in text), float("hill" in text), 0.1] for text in texts]
"""
INDEX = {"index": {"dims": 3, "embed": "./meaning.py:embed", "fields": ["text"]}}
LOADS = hasattr(sqlite3.Connection, "enable_load_extension")


@pytest.mark.skipif(not LOADS, reason="the sqlite3 of this Python loads no extensions")
def test_items_are_found_by_what_they_mean(tmp_path: Path) -> None:
    (tmp_path / "meaning.py").write_text(EMBED)
    with (
        serving(tmp_path, slots=0, store=INDEX) as url,
        get_sync_client(url=url, api_key=None) as client,
    ):
        for name in ("sea", "hill"):
            client.store.put_item(["places"], name, {"text": f"the {name}"})
        found: Any = client.store.search_items(["places"], query="a walk on the hill")

    assert [each["key"] for each in found["items"]] == ["hill", "sea"]


@pytest.mark.skipif(not LOADS, reason="the sqlite3 of this Python loads no extensions")
async def test_nobody_waits_while_texts_are_embedded(tmp_path: Path) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        asked.set()
        await answered.wait()
        return [[1.0, 0.0, 0.0] for _ in texts]

    index = {"index": {"dims": 3, "embed": embed, "fields": ["text"]}}
    async with open_database(f"sqlite:///{tmp_path / 'server.db'}", index) as database:
        stored = asyncio.create_task(database.store.aput(("places",), "sea", {"text": "the sea"}))
        await asked.wait()
        await database.execute(leases.insert().values(thread_id="another"))
        answered.set()
        await stored

        assert await database.store.aget(("places",), "sea")


@pytest.mark.skipif(LOADS, reason="the sqlite3 of this Python loads extensions")
async def test_a_python_that_cannot_search_by_meaning_says_so(tmp_path: Path) -> None:
    (tmp_path / "meaning.py").write_text(EMBED)
    settings = Settings(f"sqlite:///{tmp_path / 'server.db'}", slots=0)

    with pytest.raises(ServeError, match=r"store\.index: .*no extensions.*postgresql"):
        async with open_server(ServerConfig(tmp_path, {}, store=INDEX), settings):
            pass

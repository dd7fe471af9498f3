from __future__ import annotations

import asyncio
from typing import Any, cast
from uuid import uuid4

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError


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
        while await client.store.get_item(place, "goes"):
            await asyncio.sleep(0.1)

    assert await client.store.get_item(place, "stays")
    with pytest.raises(UnprocessableEntityError, match="ttl"):
        await client.store.put_item(place, "never", {}, ttl=-1)


async def test_a_place_without_a_name_is_refused(client: LangGraphClient) -> None:
    with pytest.raises(UnprocessableEntityError, match="namespace"):
        await client.store.put_item([""], "tide", {})

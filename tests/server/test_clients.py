from __future__ import annotations

import pytest
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from tests.server.clients.calls import STORIES, methods


def test_every_method_of_the_clients_has_a_story(
    client: LangGraphClient, sync_client: SyncLangGraphClient
) -> None:
    assert methods(client) == methods(sync_client) == {*STORIES}


@pytest.mark.parametrize("name", STORIES)
async def test_both_clients_get_what_they_ask_for(
    name: str, client: LangGraphClient, sync_client: SyncLangGraphClient
) -> None:
    for each in (client, sync_client):
        await STORIES[name](each)

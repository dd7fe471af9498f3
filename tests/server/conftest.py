from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from tests.server.serving import serving


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for many stories: each has threads of its own."""
    often = {"ttl": {"sweep_interval_minutes": 0.01}}
    with serving(tmp_path_factory.mktemp("server"), store=often) as url:
        yield url


@pytest.fixture
async def client(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url, api_key=None) as client:
        yield client


@pytest.fixture
def sync_client(url: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=url, api_key=None) as client:
        yield client

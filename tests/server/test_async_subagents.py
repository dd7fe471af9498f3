"""The tools of asynchronous subagents against this server: the stories that `langgraph dev` has passed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import PermissionDeniedError

from tests.agents import test_agent_server as stories

pytestmark = pytest.mark.slow


@pytest.fixture
def client(url: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=url, api_key=None) as client:
        yield client


test_done = stories.test_a_task_is_done_announced_and_checked
test_updated = stories.test_an_update_interrupts_what_goes_on
test_enqueued = stories.test_an_update_that_waits_its_turn_comes_after_a_cancelled_one
test_cancelled = stories.test_a_task_is_cancelled_and_listed
test_told = stories.test_who_started_a_task_on_the_same_server_is_told_while_at_rest
test_not_told = stories.test_a_task_ends_without_waiting_for_a_busy_parent
test_approved = stories.test_a_task_that_waits_for_a_person_goes_on_when_one_has_answered


async def test_code_of_the_process_that_is_no_run_reaches_nothing_without_an_address(url: str) -> None:
    async with get_client() as inside:
        with pytest.raises(PermissionDeniedError, match="Only a run"):
            await inside.threads.search()

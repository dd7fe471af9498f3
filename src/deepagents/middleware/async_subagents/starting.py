"""How a task is started: a thread, a run on it, and a record, also where the server left it open."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from deepagents.middleware.async_subagents.client import Remote, RemoteFailure, malformed
from deepagents.middleware.async_subagents.history import history_for
from deepagents.middleware.async_subagents.office import Office, failed
from deepagents.middleware.async_subagents.requests import run_options, thread_metadata
from deepagents.middleware.async_subagents.spec import RemoteAgent
from deepagents.middleware.async_subagents.state import TASKS, AsyncTask, is_plain_id, mapping, now
from deepagents.middleware.async_subagents.status import as_run
from deepagents.tools._tool import ToolOutput


async def start(office: Office, description: str, subagent_type: str) -> ToolOutput:
    """Start a task; the answer names it, and the state keeps it."""
    remote = office.remote(subagent_type)
    agent = remote.agent
    began = time.monotonic()
    task_id, metadata = str(uuid4()), thread_metadata(agent, office.runtime)
    messages = history_for(agent, description, office.runtime, office.shown)
    thread_id = ""
    try:
        thread_id = await _thread(remote, task_id, metadata, office.tasks)
        run_id = await _run(remote, thread_id, messages, run_options(agent, office.runtime))
    except RemoteFailure as failure:
        if thread_id and failure.undecided:
            return _undecided(agent, thread_id, failure)
        raise failed(f"Failed to launch async subagent {subagent_type!r}", failure) from None
    office.pace.answered(agent.server, time.monotonic() - began)
    office.pace.begun(thread_id)
    said = f"Started. task_id: {thread_id}. Its result will be announced; go on without waiting."
    return ToolOutput(said, update={TASKS: {thread_id: _record(agent, thread_id, run_id, "running")}})


async def _thread(
    remote: Remote, task_id: str, metadata: dict[str, str], known: Mapping[str, AsyncTask]
) -> str:
    answer: Any = await remote.ask(lambda client: client.threads.create(thread_id=task_id, metadata=metadata))
    made: Any = mapping(answer).get("thread_id")
    if not is_plain_id(made) or made in known:
        raise malformed("a new thread")
    return made


async def _run(
    remote: Remote, thread_id: str, messages: list[dict[str, Any]], options: Mapping[str, Any]
) -> str:
    graph_id = remote.agent.graph_id
    answer: Any = await remote.ask(
        lambda client: client.runs.create(
            thread_id, assistant_id=graph_id, input={"messages": messages}, **options
        )
    )
    return as_run(answer)["run_id"]


def _record(agent: RemoteAgent, thread_id: str, run_id: str, status: str) -> AsyncTask:
    moment = now()
    return {
        "task_id": thread_id,
        "agent_name": agent.name,
        "thread_id": thread_id,
        "run_id": run_id,
        "status": status,
        "created_at": moment,
        "last_checked_at": moment,
        "last_updated_at": moment,
    }


def _undecided(agent: RemoteAgent, thread_id: str, failure: RemoteFailure) -> ToolOutput:
    said = (
        f"Error: it is not known whether async subagent {agent.name!r} began: {failure.text} Its task_id is "
        f"{thread_id}: check it before you start it again. [{failure.code}]"
    )
    return ToolOutput(
        said, update={TASKS: {thread_id: _record(agent, thread_id, "", "pending")}}, code=failure.code
    )

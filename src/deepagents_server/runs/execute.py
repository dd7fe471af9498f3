"""Drive one run: from where it stands to its end, and write down how it ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final, cast
from uuid import UUID

import sqlalchemy as sa
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.errors import GraphRecursionError
from langgraph.types import StateSnapshot
from sqlalchemy.exc import DataError

from deepagents._values import replace, valueclass
from deepagents.errors import BrokenAnswer
from deepagents.models.endings import break_of, describe_break
from deepagents.tools.execute import COMMAND_RECORD
from deepagents_server.database import Database
from deepagents_server.database.engine import Row
from deepagents_server.database.leftovers import tables_of_savers
from deepagents_server.database.runs import Ending, Here, Taken, finish, show_run
from deepagents_server.database.store import graphs_of
from deepagents_server.database.tables import server_time
from deepagents_server.events import EventLog
from deepagents_server.graphs import Graph, Graphs
from deepagents_server.logs import log_about
from deepagents_server.loopback import act_for
from deepagents_server.metrics import Metrics
from deepagents_server.runs.commands import RunCommands
from deepagents_server.runs.spending import Spending
from deepagents_server.runs.stream import Request, stream_graph
from deepagents_server.runs.usage import ModelCalls
from deepagents_server.serialize import dump_text, load, now, seconds_between, show_interrupts

_log: Final = logging.getLogger("deepagents.server")
_ATTEMPTS: Final = 20
"""How often a run may begin without finishing a step, before it counts as the cause of the crashes."""

_MADE_BY: Final = {
    "sqlite": "json_extract(CAST(metadata AS TEXT), '$.run_id') = :run_id",
    "postgresql": "metadata ->> 'run_id' = :run_id",
}
"""Which checkpoints a run has made, in the words of each database."""


@valueclass
class Outcome:
    """How a run ended, and what its thread then holds."""

    status: Ending
    thread_status: str
    values: Any
    interrupts: Mapping[str, Any]
    error: Mapping[str, str] | None = None
    rolled_back: bool = False


class Attempt:
    """One try at a run, from its last checkpoint."""

    def __init__(
        self, database: Database, graphs: Graphs, events: EventLog, metrics: Metrics, run: Row, token: int
    ) -> None:
        self.run = run
        self.token = token
        self.kwargs: dict[str, Any] = load(run["kwargs"]) or {}
        self.steered = False
        """Whether a run waits that is to take over at the next step."""
        self.gave_way = False
        self._values: Any = None
        self._spending = Spending(database, run["owner"])
        self._database = database
        self._graphs = graphs_of(graphs, run["owner"])
        self._events = events
        self._metrics = metrics
        self._began = time.monotonic()

    @property
    def named(self) -> Mapping[str, str]:
        """What lines of the log say about the run."""
        return {name: self.run[name] for name in ("run_id", "thread_id", "owner")}

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run["run_id"]

    async def work(self) -> None:
        """Run the graph, and say in events what it does.

        Raises:
            Exception: whatever the graph raises.
        """
        act_for(self.run["owner"])
        log_about(**self.named)
        self._count_begin()
        self._events.open(
            self.run_id,
            self.token,
            attempt=self.run["attempt"],
            keep=self._is_kept(),
            streamed=bool(self.kwargs.get("streamed")),
        )
        await self._events.put(
            self.run_id, "metadata", {"run_id": self.run_id, "attempt": self.run["attempt"]}
        )
        if self.run["attempt"] > _ATTEMPTS and await self._is_stuck():
            raise RuntimeError(
                f"The run was begun {_ATTEMPTS} times and finished no step: each time its worker was lost."
            )
        config = self._config()
        COMMAND_RECORD.set(RunCommands(self._database, self.run_id, self.run["attempt"]))
        async with self._graphs.open(self.run["graph_id"], config) as graph:
            request = Request.of(self.kwargs, {**config, "callbacks": [ModelCalls(self._metrics)]})
            if self.run["attempt"] > 1:
                state = await graph.aget_state(self._thread_config())
                if not self._prepare_again(request, state):
                    return
            request.ends_here = partial(self._gives_way, graph)
            request.on_result = self._note_result
            async with self._spending.count():
                await self._stream(graph, request)
            self._values = visible_values(graph, request.last_values)

    @property
    def _graph(self) -> str:
        return self.run["graph_id"]

    def _seconds_since_due(self) -> float:
        # Both times are of the database; what comes after, this process measures.
        waited = seconds_between(max(self.run["created_at"], self.run["due_at"]), self.run["updated_at"])
        return waited + time.monotonic() - self._began

    def _count_begin(self) -> None:
        if self.run["attempt"] == 1:
            self._metrics.run_wait.labels(self._graph).observe(self._seconds_since_due())
        else:
            self._metrics.run_restarts.labels(self._graph).inc()
        _log.info("Run %s of %r begins, attempt %d", self.run_id, self._graph, self.run["attempt"])

    def _count_end(self, outcome: Outcome) -> None:
        seconds = time.monotonic() - self._began
        self._metrics.run_seconds.labels(self._graph, outcome.status).observe(seconds)
        if outcome.error:
            self._metrics.run_errors.labels(self._graph, outcome.error["error"]).inc()
        _log.info("Run %s ended after %.3f s: %s", self.run_id, seconds, outcome.status)

    async def _gives_way(self, graph: Graph) -> bool:
        """Tell whether a message waits for this run, and no tool call for its result."""
        if not self.steered:
            return False
        state = await graph.aget_state(self._thread_config())
        self.gave_way = not has_open_calls(state.values)
        return self.gave_way

    async def _note_result(self) -> None:
        await self._events.flush(self.run_id)
        await self._spending.note()

    def _is_kept(self) -> bool:
        wanted = self.kwargs.get("stream_resumable") or (
            self._database.is_shared and self.kwargs.get("streamed")
        )
        return bool(wanted) or self._events.is_watched(self.run["thread_id"])

    async def _stream(self, graph: Graph, request: Request) -> None:
        waiting = self._metrics.first_event.labels(self._graph) if self.run["attempt"] == 1 else None
        async with aclosing(stream_graph(graph, request)) as events:
            async for name, data in events:
                if waiting:
                    waiting.observe(self._seconds_since_due())
                    waiting = None
                if self._events.wanted(self.run_id):
                    await self._events.put(self.run_id, name, data)

    async def _is_stuck(self) -> bool:
        """Tell whether none of the last attempts has saved a step."""
        saved = await self._database.saver.aget_tuple(cast(Any, self._thread_config()))
        # Each attempt has the next number, and a checkpoint that of the attempt which wrote it.
        before: Any = saved.metadata.get("lease", 0) if saved else 0
        return self.token - before > _ATTEMPTS

    def _prepare_again(self, request: Request, state: StateSnapshot) -> bool:
        """Go on from the last checkpoint; `False` if the run waits for an answer.

        If all is done, the graph only shows its state again: the events of that may be missing.
        """
        if (state.metadata or {}).get("run_id") != self.run_id:
            # The former attempt was lost before its first checkpoint.
            return True
        if any(task.interrupts for task in state.tasks):
            return False
        request.input = None
        request.config = {**request.config, "configurable": dict(request.config["configurable"])}
        for name in ("checkpoint_id", "checkpoint_ns", "checkpoint_map"):
            request.config["configurable"].pop(name, None)
        return True

    def _config(self) -> dict[str, Any]:
        given: dict[str, Any] = self.kwargs.get("config") or {}
        named = {
            "run_id": self.run_id,
            "thread_id": self.run["thread_id"],
            "assistant_id": self.run["assistant_id"],
            "graph_id": self.run["graph_id"],
        }
        checkpoint: dict[str, Any] = self.kwargs.get("checkpoint") or {}
        chosen: dict[str, Any] = given.get("configurable") or {}
        configurable = {
            **chosen,
            **{key: value for key, value in checkpoint.items() if value and key != "thread_id"},
            **named,
            # With the id of a tool call, `run_id` is a key under which a tool may find that it ran before.
            "run_attempt": self.run["attempt"],
        }
        own: dict[str, Any] = given.get("metadata") or {}
        metadata = {**own, **self.run["metadata"], **named, "lease": self.token}
        return {**given, "configurable": configurable, "metadata": metadata, "run_id": UUID(self.run_id)}

    def _thread_config(self) -> dict[str, Any]:
        return {"configurable": {"thread_id": self.run["thread_id"], "checkpoint_ns": ""}}

    async def outcome(self, status: Ending, error: BaseException | None = None) -> Outcome:
        """Look at what the thread holds now."""
        if status == "success" and self._values is not None:
            return _judge(Outcome("success", "idle", self._values, {}))
        try:
            async with self._graphs.open(self.run["graph_id"], self._config()) as graph:
                state = await graph.aget_state(self._thread_config())
                values = visible_values(graph, state.values)
        except Exception as failure:
            if self._database.is_away(failure):
                raise
            # A run ends here, also one whose graph could not even be made; its thread stays as it was.
            _log.warning("The state of thread %s cannot be read: %r", self.run["thread_id"], failure)
            return Outcome("error", "error", None, {}, show_error(error or failure))
        interrupts = show_interrupts(state)
        waits = "interrupted" if state.tasks else "idle"
        thread_status = "error" if status == "error" else waits
        return _judge(
            Outcome(status, thread_status, values, interrupts, show_error(error) if error else None)
        )

    async def undo(self) -> Outcome:
        """Delete the checkpoints of the run; return what the thread holds without them."""
        states, writes = tables_of_savers(is_file=not self._database.is_shared)[:2]
        made = sa.text(_MADE_BY[self._database.engine.dialect.name]).bindparams(run_id=self.run_id)
        of_run = sa.and_(states.c.thread_id == self.run["thread_id"], made)
        chosen = sa.select(states.c.checkpoint_id).where(of_run)
        of_thread = writes.c.thread_id == self.run["thread_id"]
        await self._database.execute(
            sa.delete(writes).where(of_thread, writes.c.checkpoint_id.in_(chosen)),
            sa.delete(states).where(of_run),
        )
        return replace(await self.outcome("interrupted"), rolled_back=True)

    async def settle(self, outcome: Outcome, here: Here) -> Taken | None:
        """Write how the run ended, and let its readers go, unless another worker has it now.

        Returned is the next run of its thread, if that begins here.
        """
        await self._spending.note()
        try:
            return await self._settle(outcome, here)
        except DataError as failure:
            # Such as values of more than a gigabyte: no further attempt could write them either.
            reason = show_error(failure.orig or failure)
            return await self._settle(Outcome("error", "error", None, {}, reason), here)

    async def _settle(self, outcome: Outcome, here: Here) -> Taken | None:
        error = dump_text(outcome.error) if outcome.error else None
        values: dict[str, Any] = {"status": outcome.thread_status, "error": error}
        if outcome.values is not None:
            values |= {
                "values": dump_text(outcome.values),
                "interrupts": dump_text(outcome.interrupts),
                "state_updated_at": server_time(),
            }
        ended = {"status": outcome.status, "error": error}
        batch = self._events.last_batch(self.run_id, outcome.error)
        done, following = await finish(
            self._database,
            self.run,
            self.token,
            ended,
            values,
            events=batch,
            webhook=self._webhook(ended, outcome),
            rolled_back=outcome.rolled_back,
            here=here,
        )
        if done:
            self._count_end(outcome)
        kept = batch["seq"] if batch and done else 0
        await self._events.close(self.run_id, self.token, ended=done, error=outcome.error, kept=kept)
        return following

    def _webhook(self, ended: Row, outcome: Outcome) -> Row | None:
        """Write what is to be posted about the end of the run, if somebody wants that."""
        if not (address := self.kwargs.get("webhook")):
            return None
        shown = show_run({**self.run, **ended, "updated_at": now()})
        body = dump_text({**shown, "values": outcome.values})
        return {"run_id": self.run_id, "address": address, "body": body, "due_at": ""}

    async def leave(self) -> None:
        """Stop without an end: the run goes on elsewhere, or after a restart."""
        await self._events.close(self.run_id, self.token, ended=False)


def _judge(outcome: Outcome) -> Outcome:
    """Return an outcome as an error where the last answer of an agent broke off."""
    values: Any = outcome.values
    held = cast(dict[str, Any], values) if isinstance(values, dict) else {}
    last: Any = (held.get("messages") or [None])[-1]
    kind = break_of(last) if isinstance(last, BaseMessage) else None
    if outcome.status != "success" or kind is None:
        return outcome
    error = show_error(BrokenAnswer(kind, f"The answer {describe_break(kind)}."))
    return replace(outcome, status="error", thread_status="error", error=error)


def visible_values(graph: Graph, values: Any) -> Any:
    """Return what a graph shows of its state: the keys that it also returns."""
    shown = graph.output_channels
    if isinstance(shown, str) or not isinstance(values, dict):
        return values
    return {key: value for key, value in cast(dict[str, Any], values).items() if key in shown}


def has_open_calls(values: Any) -> bool:
    """Tell whether the last message of a model has tool calls without results."""
    held = cast(dict[str, Any], values) if isinstance(values, dict) else {}
    messages: list[Any] = held.get("messages") or []
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return any(call["id"] not in answered for call in message.tool_calls)
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return False


def show_error(error: BaseException) -> dict[str, str]:
    """Name an error for clients, without its trace."""
    if isinstance(error, GraphRecursionError):
        return {"error": "GraphRecursionError", "message": str(error).split("\n", 1)[0]}
    kind = {"kind": error.kind} if isinstance(error, BrokenAnswer) else {}
    return {"error": type(error).__name__, "message": str(error)[:2000], **kind}

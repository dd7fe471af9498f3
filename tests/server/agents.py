"""The graphs that the tests serve."""

from __future__ import annotations

import asyncio
import math
import operator
import os
import signal
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID

import psycopg
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, AnyMessage, UsageMetadata
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.channels import DeltaChannel
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import interrupt
from langgraph_sdk import get_client
from langgraph_sdk.errors import NotFoundError

from deepagents import Limits, Price, create_deep_agent
from deepagents.backends import LocalSandbox, LocalShellBackend
from deepagents.testing import Asked, ScriptedModel, call, calls


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    steps: Annotated[list[str], operator.add]


GATES: dict[str, asyncio.Event] = {}
"""What nodes wait for, by the name in the message: `wait NAME`."""


async def answer(state: State, config: RunnableConfig) -> dict[str, Any]:
    said = str(state["messages"][-1].content)
    match said.split(" ", 1):
        case ["ask", question]:
            return _say(f"You said {interrupt(question)}.")
        case ["fail" | "query" as kind, text]:
            raise psycopg.OperationalError(text) if kind == "query" else ValueError(text)
        case ["wait" | "linger" | "ignore" as kind, name]:
            await _wait_at_gate(name, {"wait": 0, "linger": 1}.get(kind, math.inf))
        case ["who"]:
            user = config.get("configurable", {}).get("langgraph_auth_user") or {}
            return _say(f"{user.get('identity')} of {user.get('org')}")
        case ["tone", _]:
            return _say(str(config.get("configurable", {}).get("tone")))
        case ["look", thread_id]:
            return _say(await _look_up(thread_id))
        case ["progress", text]:
            _tell_progress(text)
        case _:
            pass
    return _say(f"Echo: {said}")


async def _wait_at_gate(name: str, swallowed: float) -> None:
    """Wait until a gate is open, or the run is cancelled once more than is swallowed."""
    get_stream_writer()({"waiting": name})
    opened = GATES.setdefault(name, asyncio.Event())
    while not opened.is_set():
        try:
            await opened.wait()
        except asyncio.CancelledError:
            swallowed -= 1
            if swallowed < 0:
                raise


def _tell_progress(text: str) -> None:
    """Write an event, or so many large ones as the text says."""
    large = range(int(text)) if text.isdigit() else ()
    for each in [{"number": number, "text": "x" * 100_000} for number in large] or [{"progress": text}]:
        get_stream_writer()(each)


async def _look_up(thread_id: str) -> str:
    """Ask the server that runs this for a thread."""
    async with get_client() as client:
        try:
            return f"It is {(await client.threads.get(thread_id))['status']}."
        except NotFoundError:
            own = await client.threads.create()
            return f"There is none; mine is {own['thread_id']}."


def _say(text: str) -> dict[str, Any]:
    return {"messages": [AIMessage(text)], "steps": ["answered"]}


async def open_gate(state: State) -> dict[str, Any]:
    """Let the nodes and tools go on that wait for a name."""
    name = str(state["messages"][-1].content)
    GATES.setdefault(name, asyncio.Event()).set()
    BLOCKED.setdefault(name, threading.Event()).set()
    return {}


def _graph(node: Any) -> StateGraph[State]:
    builder = StateGraph(State)
    builder.add_node("answer", node)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder


echo = _graph(answer).compile()
gate = _graph(open_gate).compile()


def make_outer() -> StateGraph[State]:
    """Make a graph with another inside, anew for each run."""
    builder = StateGraph(State)
    builder.add_node("inner", echo)
    builder.add_edge(START, "inner")
    builder.add_edge("inner", END)
    return builder


def _append(held: list[str], more: Sequence[list[str]]) -> list[str]:
    return [*(held or []), *(each for some in more for each in some)]


def _die_once(where: str) -> None:
    """Kill the server, the first time that a run comes here."""
    mark = Path(os.environ["LIFTED"]).with_name(where)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Mined:
    """What a node is given: it is made when the step before has been saved, and not been told yet."""

    messages: Annotated[list[AnyMessage], add_messages]

    def __post_init__(self) -> None:
        _die_once("after a step")


def _dig(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage("dug")]}


def _fill(state: Mined) -> dict[str, Any]:
    return {"messages": [AIMessage("filled")]}


class _DyingAtTheEnd(AsyncCallbackHandler):
    """Kills the server when the last step of a run has been saved."""

    async def on_chain_end(self, outputs: Any, *, parent_run_id: UUID | None = None, **_: Any) -> None:
        if parent_run_id is None:
            _die_once("after all steps")


_mining = StateGraph(State)
_mining.add_node("dig", _dig)
_mining.add_node("fill", _fill, input_schema=Mined)
_mining.add_edge(START, "dig")
_mining.add_edge("dig", "fill")
mine = _mining.compile().with_config({"callbacks": [_DyingAtTheEnd()]})


def _send_out(state: State) -> dict[str, Any]:
    if not Path(os.environ["MENDED"]).exists():
        raise ConnectionError("the post office is closed")
    return {"steps": ["sent"]}


_posting = StateGraph(State)
_posting.add_node("write", lambda state: {"steps": ["written"]})
_posting.add_node("send", _send_out)
_posting.add_edge(START, "write")
_posting.add_edge("write", "send")
poster = _posting.compile()


class Notes(TypedDict):
    notes: Annotated[list[str], DeltaChannel(_append, snapshot_frequency=3)]


def _keep_notes(state: Notes) -> dict[str, Any]:
    return {}


_builder = StateGraph(Notes)
_builder.add_node("keep", _keep_notes)
_builder.add_edge(START, "keep")
notes = _builder.compile()
"""Saved as changes; every third state holds all of it."""


@tool
async def lift(stone: str, config: RunnableConfig, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Lift a stone; the heavy one is not lifted at the first try, and the heaviest not at the second."""
    configured = config.get("configurable", {})
    key = f"{configured['run_id']}:{tool_call_id}"
    log = Path(os.environ["LIFTED"])
    _write(log, f"{configured['run_attempt']} {stone} {key} {os.getpid()}")
    if {"heavy": 1, "heaviest": 2}.get(stone) == configured["run_attempt"]:
        get_stream_writer()({"lifting": stone})
        while not log.with_name("go").exists():
            await asyncio.sleep(0.05)
    return f"lifted {stone}"


def _write(log: Path, line: str) -> None:
    with log.open("a") as opened:
        opened.write(f"{line}\n")


class _TellingOfARefusal(AsyncCallbackHandler):
    """Notes that what a run wanted to save was refused, since another worker has its thread."""

    async def on_chain_error(
        self, error: BaseException, *, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        if parent_run_id is None and "lease lost" in str(error):
            _write(Path(os.environ["LIFTED"]), "refused")


def _lift_all(asked: Any) -> Any:
    """Lift two stones, or those that a person names: `up: STONE STONE`."""
    done = [message for message in asked.messages if message.type == "tool"]
    order = next(message.text for message in reversed(asked.messages) if message.type == "human")
    stones = order.partition(": ")[2].split() or ["light", "heavy"]
    return call("lift", stone=stones[len(done)]) if len(done) < len(stones) else "Both are up."


@tool
async def wait_for(name: str) -> str:
    """Wait until something happens."""
    get_stream_writer()({"waiting": name})
    await GATES.setdefault(name, asyncio.Event()).wait()
    return f"{name} happened"


def _wait_then_tell(asked: Any) -> Any:
    texts = [str(message.content) for message in asked.messages if message.type in ("human", "tool")]
    return call("wait_for", name=texts[0]) if len(texts) == 1 else f"I know: {', '.join(texts)}"


BLOCKED: dict[str, threading.Event] = {}
"""What blocking tools wait for."""


@tool
def block(name: str) -> str:
    """Block a thread until something happens."""
    get_stream_writer()({"blocked": name})
    BLOCKED.setdefault(name, threading.Event()).wait(60)
    return f"{name} happened"


def _obey(asked: Any) -> Any:
    """Call the tool that is named: `block NAME` or `execute COMMAND`."""
    last = asked.messages[-1]
    if last.type == "tool":
        return f"I saw: {last.text}"
    name, _, argument = last.text.partition(" ")
    return call("block", name=argument) if name == "block" else call("execute", command=argument)


_shell = LocalSandbox(tempfile.gettempdir()) if LocalSandbox.available() else LocalShellBackend()
obedient = create_deep_agent(ScriptedModel(always=_obey), tools=[block], backend=_shell)
waiter = create_deep_agent(ScriptedModel(always=_wait_then_tell), tools=[wait_for])
lifter = create_deep_agent(ScriptedModel(always=_lift_all), tools=[lift]).with_config(
    {"callbacks": [_TellingOfARefusal()]}
)
priced = create_deep_agent(
    ScriptedModel(always=lambda asked: "Two guineas."),
    limits=Limits(model_calls=9, prices={"*": Price(1000, 1000)}),
)


def _answer_tides(asked: Asked) -> AIMessage | str:
    match asked.last:
        case "How long is the tale?":
            return AIMessage("Once upon a", response_metadata={"finish_reason": "length"})
        case "What of the wreck?":
            return AIMessage("It", response_metadata={"finish_reason": "content_filter"})
        case _:
            return "Thirteen metres."


deep = create_deep_agent(ScriptedModel(always=_answer_tides))
_used = UsageMetadata(input_tokens=1_000_000, output_tokens=1_000_000, total_tokens=2_000_000)
metered = create_deep_agent(
    ScriptedModel(
        model_name="claude-sonnet-4-6",
        provider="anthropic",
        always=lambda asked: AIMessage("A lot.", usage_metadata=_used),
    )
)


def _note(asked: Any) -> Any:
    if seen := [each.text for each in asked.messages if each.type == "tool"]:
        return f"Saw: {seen}"
    last = asked.messages[-1]
    return calls(
        *[("write_file", {"file_path": f"/{name}.md", "content": name}) for name in last.text.split()]
    )


careful = create_deep_agent(ScriptedModel(always=_note), interrupt_on={"write_file": True})


def make_broken() -> Any:
    raise RuntimeError("secret of the factory")

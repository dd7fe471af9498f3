"""Faults for many agents at once: what each agent and subagent will meet, drawn from a seed."""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import FilesystemBackend, StateBackend, StoreBackend
from deepagents.backends.results import WriteResult
from deepagents.testing import Asked, ScriptedModel, call, calls

CHILDREN: Final = 5
_EDITORS: Final = 3
"""So many of them edit one file at the same time."""
_STALLED: Final = "/stalled.txt"
_SHARED: Final = "/shared.txt"
_TOOLS: Final[Any] = ("read_file", "write_file", "edit_file", "grep")
_MOST_ROUNDS: Final = 60
_MOST_TRIES: Final = 30
_MAY_FAIL: Final = frozenset({"flaky", "send", _STALLED})
_FATES: Final = {"works": 4, "tool fails": 2, "times out": 1, "asks": 4, "asks beside": 2, "model fails": 2}
_TURNS: Final = {"plain": 6, "model fails": 2, "cut": 4}


class ModelDown(RuntimeError):
    """A provider that does not answer."""


@tool
def flaky(what: str) -> str:
    """Try something."""
    raise ConnectionError(f"{what} cannot be reached")


@tool
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


class Stalling:
    """Mixed into a backend: a write of one path does not come back before `released` is set."""

    released: threading.Event

    def write(self, file_path: str, content: str, **options: Any) -> WriteResult:
        """Write, or stall."""
        if file_path == _STALLED:
            self.released.wait(60)
        backend: Any = super()
        return backend.write(file_path, content, **options)

    async def awrite(self, file_path: str, content: str, **options: Any) -> WriteResult:
        """Write, or stall until cancelled."""
        if file_path == _STALLED:
            await asyncio.Event().wait()
        backend: Any = super()
        return await backend.awrite(file_path, content, **options)


class StallingStore(Stalling, StoreBackend):
    """Files in a store."""


class StallingDisk(Stalling, FilesystemBackend):
    """Files on disk."""


@dataclass
class World:
    """What all agents of one test share, and what was seen of them."""

    seed: int
    root: Path
    saver: InMemorySaver = field(default_factory=InMemorySaver)
    store: InMemoryStore = field(default_factory=InMemoryStore)
    released: threading.Event = field(default_factory=threading.Event)
    mixed: list[str] = field(default_factory=list[str])
    met: Counter[str] = field(default_factory=Counter[str])

    def chance(self, *what: object) -> random.Random:
        """Draw from the seed, the same for the same question."""
        return random.Random(f"{self.seed} {what!r}")

    def backend(self, number: int) -> Any:
        """Make the backend of an agent: one kind after the other."""
        place = self.root / f"agent-{number}"
        place.mkdir(parents=True)
        if number % 3 == 0:
            return StateBackend()
        in_store = StallingStore(store=self.store, namespace=("chaos", str(number)))
        backend = in_store if number % 3 == 1 else StallingDisk(place)
        backend.released = self.released
        return backend


@dataclass
class Life:
    """One agent with its subagents: what will go wrong, and what happened."""

    world: World
    number: int
    backend: Any
    turn: str
    cut_at: int
    fates: Sequence[str]
    at_cut: Callable[[], object] = lambda: None
    asked: int = 0
    is_down: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, world: World, number: int) -> Life:
        """Draw the life of an agent."""
        chance = world.chance(number)
        turn = _drawn(chance, _TURNS)
        fates = [_drawn(chance, _FATES) for _ in range(CHILDREN)]
        return cls(world, number, world.backend(number), turn, chance.randint(1, 22), fates)

    @property
    def me(self) -> str:
        """The name that stands in all that the agent writes."""
        return f"agent-{self.number}."

    @cached_property
    def agent(self) -> Any:
        """The agent, made once."""
        files = FilesystemMiddleware(backend=self.backend, backend_timeout=30, tools=_TOOLS)
        own = [FilesystemMiddleware(backend=self.backend, backend_timeout=0.2, tools=_TOOLS)]
        helper: Any = {"name": "helper", "description": "helps"}
        if "times out" in self.fates:
            helper |= {"middleware": own}
        else:
            helper |= {"mode": "fork"} if self.number % 2 else {"middleware": [files]}
        return create_deep_agent(
            ScriptedModel(always=self.answer),
            tools=[flaky, send],
            middleware=[files],
            subagents=[helper],
            backend=self.backend,
            interrupt_on={"send": True},
            checkpointer=self.world.saver,
        )

    def answer(self, asked: Asked) -> AIMessage | str:
        """Answer for the agent, or for whichever of its subagents asks."""
        with self._lock:
            self.asked += 1
            if self.asked == self.cut_at:
                self.at_cut()
        messages = [each for each in asked.messages if each.type != "system"]
        self._look_for_others(messages)
        begins = max(at for at, each in enumerate(messages) if each.type == "human")
        child = re.search(r"child-(\d)", messages[begins].text)
        return self._work(int(child[1]), messages[begins:]) if child else self._lead(messages)

    def _look_for_others(self, messages: Sequence[BaseMessage]) -> None:
        said = " ".join(f"{each.text} {getattr(each, 'tool_calls', '')}" for each in messages)
        others = {name for name in re.findall(r"agent-\d+\.", said) if name != self.me}
        if others:
            self.world.mixed.append(f"{self.me} reads of {sorted(others)}")

    def _lead(self, messages: Sequence[BaseMessage]) -> AIMessage | str:
        made = [each["name"] for message in messages for each in getattr(message, "tool_calls", ())]
        if "write_file" not in made:
            return call("write_file", file_path=_SHARED, content=self.shared(()))
        if "task" not in made:
            return calls(*(("task", self._task(child)) for child in range(CHILDREN)))
        if self.turn == "model fails" and self.is_down:
            self.is_down = False
            raise ModelDown(self.me)
        return f"done {self.me}"

    def _task(self, child: int) -> Mapping[str, str]:
        kind = "helper" if self.fates[child] == "times out" or child % 2 else "general-purpose"
        return {"description": f"Work, {self.me} child-{child}", "subagent_type": kind}

    def shared(self, done: Sequence[int]) -> str:
        """Say what the file that all subagents edit holds when these are done."""
        return "\n\n".join(self._line(child, child in done) for child in range(_EDITORS))

    def _line(self, child: int, done: bool) -> str:
        return f"<{child}> {self.me} {'done' if done else 'open'}"

    def _work(self, child: int, messages: Sequence[BaseMessage]) -> AIMessage | str:
        fate = self.fates[child]
        self.note_failures(messages[-1:])
        results = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
        tried = [
            (made["name"] if path is None else path, results[made["id"]].status == "success")
            for message in messages
            for made in getattr(message, "tool_calls", ())
            for path in [made["args"].get("file_path")]
        ]
        if fate == "model fails" and tried:
            raise ModelDown(f"{self.me} child-{child}")
        if len(tried) > _MOST_TRIES:
            return f"{self.me} gives up"
        for step in self._steps(child):
            wanted = [each for each in step if not _is_done(each[1].get("file_path", each[0]), tried)]
            if wanted:
                return _with_a_look(wanted, tried)
        return f"report {self.me} child-{child}"

    def _steps(self, child: int) -> Sequence[Sequence[tuple[str, Mapping[str, Any]]]]:
        own = ("write_file", {"file_path": self.own(child), "content": f"{self.me} child-{child}"})
        edit = (
            "edit_file",
            {
                "file_path": _SHARED,
                "old_string": self._line(child, False),
                "new_string": self._line(child, True),
            },
        )
        letter = ("send", {"to": f"{self.me} child-{child}"})
        edits = [edit] if child < _EDITORS else []
        both = [own, *edits]
        first: Mapping[str, Sequence[Any]] = {
            "tool fails": [[("flaky", {"what": self.me})], both],
            "times out": [[("write_file", {"file_path": _STALLED, "content": self.me})], both],
            "asks": [[letter], both],
            "asks beside": [[own, letter], edits],
        }
        return first.get(self.fates[child], [both])

    def own(self, child: int) -> str:
        """Name the file of one subagent."""
        return f"/child-{child}.txt"

    def note_failures(self, messages: Sequence[BaseMessage]) -> None:
        """Count what the agent was told of failures, by code."""
        codes = [each.additional_kwargs.get("error_code") for each in messages if each.type == "tool"]
        self.world.met.update(code for code in codes if code)

    def is_reported(self, child: int, messages: Sequence[BaseMessage]) -> bool:
        """Tell whether the agent was told that a subagent has done all its work."""
        said = f"report {self.me} child-{child}"
        return any(each.type == "tool" and each.text == said for each in messages)

    def files(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return all files that the agent has now."""
        if isinstance(self.backend, StateBackend):
            return {path: data["content"] for path, data in values.get("files", {}).items()}
        paths = [_SHARED, *map(self.own, range(CHILDREN))]
        found = self.backend.download_files(paths)
        return {each.path: each.content.decode() for each in found if each.content is not None}

    def lost(self, done: Sequence[int], files: Mapping[str, str]) -> list[str]:
        """Name the files that lack what subagents did that reported success."""
        own = {self.own(child): f"{self.me} child-{child}" for child in done}
        lost = [path for path, content in own.items() if files.get(path) != content]
        shared = files.get(_SHARED, "")
        edited = all(self._line(child, True) in shared for child in done if child < _EDITORS)
        return lost if edited else [*lost, _SHARED]

    def story(self) -> Generator[tuple[Any, bool], Any, str]:
        """Yield what to run, and whether it is cut; receive an error, `None` for a cut, or the state."""
        came = yield {"messages": f"Start, {self.me}"}, self.turn == "cut"
        for at in range(_MOST_ROUNDS):
            self.world.met[_what(came)] += 1
            if isinstance(came, ModelDown):
                came = yield (None if at % 2 else {"messages": f"Once more, {self.me}"}), False
            elif isinstance(came, BaseException):
                raise came
            elif came is None and self.number % 3 == 1:
                return "cancelled"
            elif came is None:
                came = yield {"messages": f"Go on, {self.me}"}, False
            elif came.interrupts:
                came = yield Command(resume=self._decisions(came.interrupts, at)), False
            else:
                return "answered"
        return "endless"

    def _decisions(self, interrupts: Sequence[Any], at: int) -> dict[str, Any]:
        chance = self.world.chance(self.number, at)
        some = chance.sample(list(interrupts), chance.randint(1, len(interrupts)))
        return {each.id: self._decision(each.value, chance) for each in some}

    def _decision(self, value: Mapping[str, Any], chance: random.Random) -> Any:
        edited = {"name": "send", "args": {"to": f"{self.me} edited"}}
        one: list[Any] = [
            {"type": "approve"},
            {"type": "edit", "edited_action": edited},
            {"type": "reject", "message": f"not now, {self.me}"},
            {"type": "respond", "message": f"sent by hand, {self.me}"},
        ]
        made = [chance.choice(one) for _ in value["action_requests"]]
        wrong: list[Any] = [{"decisions": [*made, one[0]]}, "yes", {"decisions": [{"type": "aprove"}]}]
        if "error" in value:
            self.world.met["asked again"] += 1
        return chance.choice(wrong) if chance.random() < 0.25 else {"decisions": made}


def _what(came: Any) -> str:
    if came is None or isinstance(came, BaseException):
        return "cut" if came is None else type(came).__name__
    return "asked" if came.interrupts else "answered"


def _is_done(what: str, tried: Sequence[tuple[str, bool]]) -> bool:
    return (what, True) in tried or (what in _MAY_FAIL and (what, False) in tried)


def _with_a_look(wanted: Sequence[Any], tried: Sequence[tuple[str, bool]]) -> AIMessage:
    """Make the calls; look at a file first where the last try of it failed."""
    if tried and wanted[0][0] == "edit_file" and tried[-1] == (_SHARED, False):
        return call("grep", pattern="open", path="/")
    return calls(*wanted)


def _drawn(chance: random.Random, weights: Mapping[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]


def in_thread(life: Life) -> str:
    """Live blocking; a cut closes the stream of a run."""
    agent, story = life.agent, life.story()
    config: Any = {"configurable": {"thread_id": life.me}}
    came: Any = None
    try:
        while True:
            given, cut = story.send(came)
            came = _ran(agent, given, config, life.cut_at if cut else None)
    except StopIteration as ended:
        return ended.value


def _ran(agent: Any, given: Any, config: Any, cut_at: int | None) -> Any:
    stream = agent.stream(given, config, stream_mode="updates", subgraphs=True)
    try:
        for at, _ in enumerate(stream):
            if at == cut_at:
                return None
    except ModelDown as error:
        return error
    finally:
        stream.close()
    return agent.get_state(config)


async def on_loop(life: Life) -> str:
    """Live on an event loop; a cut cancels the task of a run."""
    agent, story = life.agent, life.story()
    config: Any = {"configurable": {"thread_id": life.me}}
    loop = asyncio.get_running_loop()
    came: Any = None
    try:
        while True:
            given, cut = story.send(came)
            running = asyncio.ensure_future(agent.ainvoke(given, config))
            if cut:
                life.at_cut = lambda run=running: loop.call_soon_threadsafe(run.cancel)
            (came,) = await asyncio.gather(running, return_exceptions=True)
            life.at_cut = lambda: None
            came = await _outcome(agent, config, came)
    except StopIteration as ended:
        return ended.value


async def _outcome(agent: Any, config: Any, came: Any) -> Any:
    if isinstance(came, asyncio.CancelledError):
        return None
    return came if isinstance(came, BaseException) else await agent.aget_state(config)


@dataclass
class Handles:
    """What a process holds: files, threads."""

    files: Counter[str]
    threads: set[threading.Thread]

    @classmethod
    def now(cls) -> Handles:
        """Count."""
        return cls(Counter(_open_files()), set(threading.enumerate()))

    def since(self, before: Handles) -> list[str]:
        """Say what is held that was not held before."""
        threads = [each for each in self.threads - before.threads if each.is_alive()]
        return [*(self.files - before.files).elements(), *(f"thread {each.name}" for each in threads)]


def _open_files() -> Generator[str]:
    handles = Path("/proc/self/fd")
    for each in handles.iterdir() if handles.is_dir() else ():
        try:
            yield re.sub(r"\d+", "N", str(each.readlink()))
        except FileNotFoundError:
            continue

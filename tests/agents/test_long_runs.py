"""Two thousand steps in a window of 32,000 tokens: nothing overflows or is lost, and no step costs more."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import pytest
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.middleware.summarization import create_summarization_middleware
from deepagents.middleware.summarization.archive import parse
from deepagents.middleware.summarization.parts import in_order
from deepagents.testing import Asked, PrefixBreak, WindowedModel, assert_prefix_kept
from tests.agents.busy import TOOLS, Busy, Seen, Watcher, last_step, text
from tests.conftest import Colour

WINDOW = 32_000
STEPS = {"state": 2_000, "disk": 1_000}
PARTS = 4
THREAD: Any = {"configurable": {"thread_id": "long"}}
ARCHIVE = "/conversation_history/long.md"
NOTES = text(60_000, "notes")


@dataclass(repr=False)
class Run:
    """A run that has ended: what the model was asked, and what the state held each time."""

    model: WindowedModel
    seen: Sequence[Seen]
    archive: str

    def __repr__(self) -> str:
        return f"<a run of {len(self.seen)} steps>"

    @property
    def turns(self) -> Sequence[Asked]:
        return self.model.turns

    @property
    def messages(self) -> Sequence[AnyMessage]:
        return self.seen[-1].messages

    def compacted(self) -> list[int]:
        """The numbers of the requests before which the context was compacted."""
        return [at for at, (one, other) in enumerate(pairwise(self.seen)) if one.event != other.event]

    def clipped(self, number: int) -> set[str]:
        """The messages that request `number` showed clipped and the one before did not."""
        if number + 1 == len(self.seen):
            return set()
        return set(self.seen[number + 1].clipped) - set(self.seen[number].clipped)


def run(
    colour: Colour,
    steps: int,
    root: Path | None = None,
    *,
    at_step: Callable[[int], None] = lambda _: None,
    cycle: int | None = None,
    token_counter: Callable[..., int] | None = None,
    saver: InMemorySaver | None = None,
) -> Run:
    """Let a busy agent take so many steps, in four parts."""
    model = WindowedModel(always=Busy(steps // PARTS, at_step=at_step, cycle=cycle), window=WINDOW)
    watcher = Watcher()
    backend = FilesystemBackend(root, virtual_mode=True) if root else StateBackend()
    own = (
        [create_summarization_middleware(model, backend, token_counter=token_counter)]
        if token_counter
        else []
    )
    agent = create_deep_agent(
        model,
        tools=[*TOOLS],
        backend=backend,
        middleware=[watcher, *own],
        checkpointer=saver or InMemorySaver(),
    )
    files: dict[str, Any] = {"files": {"/files/notes.txt": {"content": NOTES, "encoding": "utf-8"}}}
    if root:
        (root / "files").mkdir()
        (root / "files/notes.txt").write_text(NOTES)
        files = {}
    for part in range(PARTS):
        asked = {"messages": [{"role": "user", "content": request(part)}]}
        colour.invoke(agent, {**asked, **(files if part == 0 else {})}, THREAD)
    return Run(model, watcher.seen, archive(agent, root))


def request(part: int) -> str:
    """Ask for a part, in words that no step has."""
    return f"Do part {part} and keep in mind: zebra {part} crossing."


def archive(agent: Any, root: Path | None) -> str:
    """Read the archive whole, all parts of it."""
    if root:
        paths = [f"/{path.relative_to(root)}" for path in (root / "conversation_history").glob("*.md")]
        return "".join((root / path[1:]).read_text() for path in in_order(paths, ARCHIVE))
    files = agent.get_state(THREAD).values["files"]
    return "".join(files[path]["content"] for path in in_order(files, ARCHIVE))


@pytest.fixture(scope="module", params=list(STEPS))
def long_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Many steps, blocking."""
    root = tmp_path_factory.mktemp("root") if request.param == "disk" else None
    return run(Blocking(), STEPS[request.param], root)


class Blocking(Colour):
    """The blocking colour, for a fixture that outlives a test."""

    def __init__(self) -> None:
        self.name = "sync"


def check_all(run: Run) -> None:
    check_the_window(run)
    check_the_summaries(run)
    check_the_archive(run)
    check_the_prefix(run)
    check_the_last_request(run)


def check_the_window(run: Run) -> None:
    largest = max(asked.tokens for asked in run.model.asked)
    assert largest <= WINDOW


def check_the_summaries(run: Run) -> None:
    """At most one summary for each 15 % of the window of new text, in all and between any two."""
    apart = 0.15 * WINDOW
    ends = [len(run.seen[at].messages) for at in run.compacted()]
    tokens = [count_tokens_approximately([message]) for message in run.messages]
    new = [sum(tokens[one:other]) for one, other in pairwise(ends)]

    assert len(run.model.summaries) >= 10
    assert len(run.model.summaries) <= 1 + sum(tokens) / apart
    assert min(new) >= apart, sorted(new)[:5]
    assert len(run.model.summaries) == len(run.compacted())


def check_the_archive(run: Run) -> None:
    """Each message that a summary stands for is in the archive as it is in the state, once, in order."""
    hidden = run.seen[-1].hidden
    kept = parse(run.archive)
    evicted = [message for message in run.messages if message.id in hidden]

    assert len(evicted) == len(hidden)
    assert [message.id for message in kept] == [message.id for message in evicted]
    assert [a.id for a, b in zip(kept, evicted, strict=True) if a.model_dump() != b.model_dump()] == []


def check_the_prefix(run: Run) -> None:
    """A request starts with all of the one before, but where the context was compacted or clipped."""
    compacted = set(run.compacted())

    def necessary(broken: PrefixBreak) -> bool:
        before, shared = broken.before, broken.shared
        fixed = shared.parts - shared.messages
        assert fixed == len(before.tools) + len(before.messages[0].content), str(broken)
        if broken.number in compacted:
            return True
        first = before.messages[1 + shared.messages]
        return first.id in run.clipped(broken.number)

    assert_prefix_kept(run.turns, allowed=necessary)


def check_the_last_request(run: Run) -> None:
    shown = "\n".join(message.text for message in run.turns[-1].messages)

    assert request(PARTS - 1) in shown
    assert last_step(run.turns[-1]) > 0


def test_no_request_is_above_the_window(long_run: Run) -> None:
    check_the_window(long_run)
    assert len(long_run.seen) in STEPS.values()


def test_summaries_stay_apart(long_run: Run) -> None:
    check_the_summaries(long_run)


def test_every_evicted_message_is_in_the_archive_as_it_was(long_run: Run) -> None:
    check_the_archive(long_run)


def test_no_shared_prefix_is_shorter_than_it_has_to_be(long_run: Run) -> None:
    check_the_prefix(long_run)


def test_the_last_request_of_the_user_is_shown_to_the_end(long_run: Run) -> None:
    check_the_last_request(long_run)


@pytest.mark.parametrize("place", ["state", "disk"])
def test_it_is_the_same_when_awaited(place: str, tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        check_all(run(Colour("async", runner), 300, tmp_path if place == "disk" else None))


CYCLE = 40
EARLY, LATE = range(40, 80), range(360, 400)
PROBED = 400


class Costs:
    """What each step costs: messages counted, functions of ours that were called, bytes saved."""

    def __init__(self) -> None:
        self.step = 0
        self.counted: Counter[int] = Counter()
        self.called: Counter[int] = Counter()
        self.saved: Counter[int] = Counter()

    def at_step(self, number: int) -> None:
        """Begin a step; those that are compared are watched."""
        self.step = number
        sys.setprofile(self._call if number in EARLY or number in LATE else None)

    def count(self, messages: Any, **options: Any) -> int:
        """Count tokens, and the messages that were counted."""
        self.counted[self.step] += len(messages)
        return count_tokens_approximately(messages, **options)

    def saver(self) -> InMemorySaver:
        """Make a saver that says how much it was given."""
        return InMemorySaver(serde=Weighing(self))

    def grows(self, costs: Counter[int]) -> float:
        """Return by how much a step costs more late than early."""
        return median(costs[step] for step in LATE) / median(costs[step] for step in EARLY)

    def _call(self, frame: FrameType, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and "/deepagents/" in path and "/testing/" not in path:
            self.called[self.step] += 1


class Weighing(JsonPlusSerializer):
    """Notes the bytes of what is saved."""

    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self._costs = costs

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Save."""
        kind, made = super().dumps_typed(obj)
        self._costs.saved[self._costs.step] += len(made)
        return kind, made


@pytest.fixture
def costs() -> Iterator[Costs]:
    """Measure, and stop when the test ends."""
    yield Costs()
    sys.setprofile(None)


def test_a_late_step_calls_no_more_functions_and_saves_no_more_bytes(costs: Costs) -> None:
    run(Blocking(), PROBED, cycle=CYCLE, at_step=costs.at_step, saver=costs.saver())

    assert median(costs.called[step] for step in EARLY) > 100
    assert costs.grows(costs.called) < 1.3
    assert median(costs.saved[step] for step in EARLY) > 100
    assert costs.grows(costs.saved) < 1.3


def test_a_counter_of_the_callers_own_counts_no_more_messages_late_than_early(costs: Costs) -> None:
    long = run(Blocking(), PROBED, cycle=CYCLE, at_step=costs.at_step, token_counter=costs.count)

    assert median(costs.counted[step] for step in EARLY) > 10
    assert costs.grows(costs.counted) < 1.3
    check_the_window(long)

"""Long runs in a window of 32,000 tokens, and what holds for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.middleware.summarization import create_summarization_middleware
from deepagents.testing import Asked, PrefixBreak, WindowedModel, assert_prefix_kept
from tests.agents.busy import TOOLS, Busy, Seen, Watcher, last_step, text
from tests.conftest import CallMode
from tests.middleware.archives import in_order, parse

WINDOW = 32_000
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
    call_mode: CallMode,
    steps: int,
    root: Path | None = None,
    *,
    at_step: Callable[[int], None] = lambda _: None,
    token_counter: Callable[..., int] | None = None,
    saver: InMemorySaver | None = None,
) -> Run:
    """Let a busy agent take so many steps, in four parts."""
    model = WindowedModel(always=Busy(steps // PARTS, at_step=at_step), window=WINDOW)
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
        given = {**asked, **(files if part == 0 else {})}
        # Saved before the next step begins, so that each step's bytes count for it on a busy machine too.
        call_mode.invoke(agent, given, THREAD, durability="sync")
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


def check_the_window(run: Run) -> None:
    largest = max(asked.tokens for asked in run.model.asked)
    assert largest <= WINDOW


def check_the_summaries(run: Run) -> None:
    """At most one summary for each 15 % of the window of new text, in all and between any two."""
    apart = 0.15 * WINDOW
    ends = [len(run.seen[at].messages) for at in run.compacted()]
    tokens = [count_tokens_approximately([message]) for message in run.messages]
    new = [sum(tokens[one:other]) for one, other in pairwise(ends)]

    assert len(run.model.summaries) >= len(run.seen) // 50
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
        if broken.number == min(compacted):
            # From then on there is a history to search, with a tool that stands before the system prompt.
            added = broken.after.tools[len(before.tools) :]
            assert (fixed, len(added)) == (len(before.tools), 1), str(broken)
            return True
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

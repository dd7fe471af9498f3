"""A run with summaries is killed at any moment: another process ends it as if it had not been killed."""

from __future__ import annotations

import os
import random
import re
import select
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.postgres import PostgresSaver

from deepagents.testing import history_faults
from tests.agents.crashes import MADE, REQUEST, STEP, STEPS, SUMMARY, Child, Thread, go_on, model
from tests.middleware.archives import parse

pytestmark = pytest.mark.slow

CRASHES = int(os.environ.get("CRASHES", "2"))
LONGEST = 0.03


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Say where checkpoints are kept."""
    if request.param == "sqlite":
        return str(tmp_path / "checkpoints.sqlite")
    connection: str = request.getfixturevalue("postgres")
    with PostgresSaver.from_conn_string(connection) as made:
        made.setup()
    return connection


@pytest.fixture
def children() -> Iterator[list[Child]]:
    """Collect children, and leave none behind."""
    started: list[Child] = []
    yield started
    for child in started:
        child.close()


def let_it_work(seconds: float) -> None:
    select.select([], [], [], seconds)


def whole(place: str, name: str, tmp_path: Path) -> Thread:
    """Make a thread with a directory of its own."""
    root = tmp_path / name
    (root / "files").mkdir(parents=True)
    return Thread(f"{tmp_path.name}-{name}", place, root)


def work(thread: Thread) -> dict[str, str]:
    """Read the files that the run was to write."""
    return {path.name: path.read_text() for path in (thread.root / "files").glob("[0-9]*.txt")}


def check_the_end(thread: Thread, expected: dict[str, str], note: str) -> None:
    """The files are those of a run that was not killed, the history is valid, the archive whole."""
    with thread.agent(model()) as agent:
        state = agent.get_state(thread.config)
    messages: list[BaseMessage] = state.values["messages"]
    steps = [int(found[1]) for each in messages if (found := re.match(r"Step (\d+)\.", each.text))]

    assert work(thread) == expected, note
    assert state.tasks == (), note
    assert messages[-1].text == "All is done.", note
    assert messages[0].text == REQUEST, note
    assert steps == list(range(1, STEPS + 1)), note
    assert history_faults(messages) == [], note
    check_the_archive(thread, state.values, note)


def check_the_archive(thread: Thread, values: dict[str, Any], note: str) -> None:
    (file,) = (thread.root / "conversation_history").glob("*.md")
    written = file.read_text()
    begun = re.findall(r"^<!-- section (\w+),", written, re.MULTILINE)
    ended = re.findall(r"<!-- end of section (\w+):", written)
    hidden = set(values["_summarized_ids"])
    kept = [message.id for message in parse(written)]

    assert len(ended) == len(set(ended)), note
    assert set(ended) <= set(begun), note
    assert len(begun) <= len(ended) + 1, f"{note}: a kill can tear the one section that is being written"
    assert len(kept) == len(set(kept)), note
    assert hidden <= set(kept), note


def test_a_run_killed_at_any_moment_ends_as_if_it_had_not_been(
    place: str, tmp_path: Path, children: list[Child]
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    unharmed = whole(place, "unharmed", tmp_path)
    with unharmed.agent(model()) as agent:
        go_on(agent, unharmed.config)
    expected = work(unharmed)
    check_the_end(unharmed, expected, "unharmed")

    killed = 0
    for number in range(3 * CRASHES):
        if killed == CRASHES:
            break
        note = f"seed {seed}, moment {number}"
        thread = whole(place, f"{number}", tmp_path)
        children.append(child := Child(thread))
        mark, times = chance.choice(
            [(MADE, 1), (STEP, chance.randint(1, STEPS)), (SUMMARY, chance.randint(1, 4))]
        )
        if child.wait_for(mark, times):
            let_it_work(chance.uniform(0, LONGEST))
            killed += child.kill()
        children.append(again := Child(thread))
        assert again.end() == 0, note
        check_the_end(thread, expected, note)
    assert killed == CRASHES, f"seed {seed}"

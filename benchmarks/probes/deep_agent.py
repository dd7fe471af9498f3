"""A deep agent, with all that is on by default."""

from __future__ import annotations

from typing import Any

from benchmarks.probes.model import WritingModel
from deepagents import create_deep_agent


def build(model: WritingModel, workers: int = 0, checkpointer: Any = None, **options: Any) -> Any:
    """Make an agent with so many subagents beside its own."""
    subagents: list[Any] = [_worker(number) for number in range(workers)]
    return create_deep_agent(model=model, subagents=subagents, checkpointer=checkpointer, **options)


def _worker(number: int) -> dict[str, Any]:
    return {
        "name": f"worker-{number}",
        "description": f"Runs errands of kind {number}.",
        "system_prompt": "You run errands.",
    }

"""The bare loop: one tool that pretends to write."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool

from benchmarks.probes.model import WritingModel


@tool
def write_file(file_path: str, content: str) -> str:
    """Write a file."""
    return f"Wrote {len(content)} characters to {file_path}"


def build(model: WritingModel, workers: int = 0, checkpointer: Any = None) -> Any:
    """Make an agent; it has no subagents."""
    return create_agent(model, tools=[write_file], checkpointer=checkpointer)

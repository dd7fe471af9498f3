"""Approval in a terminal: nothing is written before a person has said yes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent


def main(model: str | BaseChatModel, ask: Callable[[str], str] = input) -> dict[str, Any]:
    """Run one task, asking before each write; return the files."""
    agent = create_deep_agent(
        model, interrupt_on={"write_file": True, "edit_file": True}, checkpointer=InMemorySaver()
    )
    thread: Any = {"configurable": {"thread_id": "1"}}
    result = agent.invoke({"messages": "Write a haiku about rain to /haiku.md"}, thread)
    while "__interrupt__" in result:
        requests = result["__interrupt__"][0].value["action_requests"]
        decisions = [_decide(request, ask) for request in requests]
        result = agent.invoke(Command(resume={"decisions": decisions}), thread)
    return result.get("files", {})


def _decide(request: dict[str, Any], ask: Callable[[str], str]) -> dict[str, str]:
    answer = ask(f"{request['name']} {request['args']} - do it? [y/N] ")
    return {"type": "approve" if answer.strip().lower() == "y" else "reject"}


if __name__ == "__main__":
    from deepagents.models import default_model

    for path, data in main(default_model()).items():
        sys.stdout.write(f"{path}\n{data['content']}\n")

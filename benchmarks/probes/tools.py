"""Milliseconds of a run in which an agent calls glob or grep once, without rules and with three."""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import Field

from benchmarks.probes.files import NEEDLE, timed
from benchmarks.probes.model import WritingModel, tool_call
from benchmarks.probes.rules import RULES
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend


class SearchingModel(WritingModel):
    """Call one tool, once."""

    tool: str
    arguments: dict[str, str] = Field(default_factory=dict)

    def _next(self, last: BaseMessage) -> AIMessage:
        if last.type == "human":
            return tool_call(self.tool, "call_1", **self.arguments)
        return AIMessage("Done.")


def run(tool: str, root: str, rules: list[Any], **arguments: str) -> float:
    """Return the milliseconds of one run."""
    backend: Any = FilesystemBackend(root_dir=root, virtual_mode=True)
    model = SearchingModel(tool=tool, arguments=arguments)
    agent = create_deep_agent(model=model, backend=backend, permissions=rules)

    def search() -> int:
        state = agent.invoke({"messages": [{"role": "user", "content": "Begin."}]})
        return len(state["messages"][2].text)

    spent, characters = timed(search)
    assert characters, "nothing was found"
    return spent


if __name__ == "__main__":
    where = sys.argv[1]
    measured = {
        f"{name}{tool}": run(tool, where, rules, pattern=pattern)
        for tool, pattern in (("glob", "*.txt"), ("grep", NEEDLE))
        for name, rules in (("", []), ("ruled_", RULES))
    }
    print(json.dumps(measured))

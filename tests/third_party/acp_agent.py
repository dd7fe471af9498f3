"""An agent behind the ACP server of `deepagents-acp`, on standard input and output."""

from __future__ import annotations

import asyncio

from acp import run_agent
from deepagents_acp.server import AgentServerACP, AgentSessionContext
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend
from deepagents.testing import ScriptedModel, call, calls

PLAN = {"todos": [{"content": "Greet the reader", "status": "in_progress"}]}
EDIT = {"file_path": "/notes.md", "old_string": "hello", "new_string": "good morning"}

saver = InMemorySaver()
model = ScriptedModel(
    call("write_todos", **PLAN),
    "I leave the plan.",
    calls(("read_file", {"file_path": "/notes.md"}), ("ls", {"path": "/"})),
    call("edit_file", **EDIT),
    call("task", description="Count the words of /notes.md.", subagent_type="general-purpose"),
    call("write_file", file_path="/words.txt", content="2"),
    "There are 2 words.",
    "The reader is greeted.",
)


def build(session: AgentSessionContext) -> object:
    """Make the agent of one session, in its working directory."""
    return create_deep_agent(
        model,
        checkpointer=saver,
        backend=CompositeBackend(
            default=FilesystemBackend(root_dir=session.cwd, virtual_mode=True),
            routes={"/memories/": StateBackend()},
        ),
        interrupt_on={"write_todos": True, "edit_file": True, "write_file": True},
    )


if __name__ == "__main__":
    asyncio.run(run_agent(AgentServerACP(agent=build)))

"""What a person puts in the place of a call counts for skills: it ran, and the model's own did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware.skills import SkillsMiddleware
from deepagents.testing import ScriptedModel, call
from tests.middleware.skilled import THREAD, put, skill

TIDES = skill("tides", "Computes tides.", "metadata: {include_tools: tide}")
READ = call("read_file", file_path="/skills/tides/SKILL.md")
ELSEWHERE = call("read_file", file_path="/notes.md")


def tide(place: str) -> str:
    """Tell the tide."""
    return "13 m"


def edit(tool: str, **arguments: Any) -> Any:
    return {"type": "edit", "edited_action": {"name": tool, "args": arguments}}


def decided(root: Path, wanted: AIMessage, decision: Any, *then: Any) -> ScriptedModel:
    """Run an agent whose file calls a person decides about, then once more on the same thread."""
    backend = FilesystemBackend(root_dir=put(root, "skills", tides=TIDES))
    (root / "notes.md").write_text("Nothing.")
    own = SkillsMiddleware(backend=backend, sources=["/skills"], tools=[tide])
    asking: Any = dict.fromkeys(("read_file", "write_file", "ls"), True)
    with ScriptedModel(wanted, "Done.", "Again.") as model:
        agent: Any = create_deep_agent(
            model, backend=backend, middleware=[own], interrupt_on=asking, checkpointer=InMemorySaver()
        )
        agent.invoke({"messages": "Go"}, THREAD)
        agent.invoke(Command(resume={"decisions": [decision]}), THREAD)
        agent.invoke({"messages": "Go on"}, THREAD)
    return model


@pytest.mark.parametrize(
    ("wanted", "decision", "opens"),
    [
        (READ, {"type": "approve"}, True),
        (READ, edit("ls", path="/"), False),
        (READ, edit("read_file", file_path="/notes.md"), False),
        (READ, {"type": "respond", "message": "Do not use that skill."}, False),
        (READ, {"type": "reject", "message": "No."}, False),
        (ELSEWHERE, edit("read_file", file_path="/skills/tides/SKILL.md"), True),
        (call("ls", path="/"), edit("read_file", file_path="/skills/tides/SKILL.md"), True),
    ],
)
def test_what_ran_opens_a_skill(wanted: AIMessage, decision: Any, opens: bool, tmp_path: Path) -> None:
    model = decided(tmp_path, wanted, decision)

    assert ["tide" in asked.tool_names for asked in model.asked] == [False, opens, opens]


@pytest.mark.parametrize(
    ("path", "instead", "listed"),
    [
        ("/o.md", "/skills/new/SKILL.md", True),
        ("/skills/new/SKILL.md", "/o.md", False),
    ],
)
def test_what_ran_changes_the_list(path: str, instead: str, listed: bool, tmp_path: Path) -> None:
    text = skill("new", "Brand new.")
    wanted = call("write_file", file_path=path, content=text)
    model = decided(tmp_path, wanted, edit("write_file", file_path=instead, content=text))

    assert ["Brand new." in asked.system for asked in model.asked] == [False, listed, listed]

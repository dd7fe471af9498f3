"""The parts of the system prompt stand in one order, are the same in every request, and stay small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents._agent.prompt import BASE_PROMPT
from deepagents.backends import FilesystemBackend, LocalShellBackend
from deepagents.middleware.filesystem.prompt import FILESYSTEM_PROMPT
from deepagents.middleware.subagents.middleware import SUBAGENT_PROMPT
from deepagents.middleware.todos import TODO_PROMPT
from deepagents.testing import Asked, ScriptedModel, assert_prefix_kept, call
from tests.tokens import count_tokens

REMEMBERED = "Prefer tabs to spaces."
SKILLED = "Brews coffee when it is needed."
OWN, CALLERS = "You work for a zoo.", "Speak like a pirate."


class Pirate(AgentMiddleware[Any, Any, Any]):
    """A caller's own part of the prompt."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Add it."""
        standing = request.system_message
        blocks = [*standing.content_blocks, {"type": "text", "text": f"\n\n{CALLERS}"}]
        return handler(request.override(system_message=standing.model_copy(update={"content": blocks})))


@pytest.fixture
def everything(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "AGENTS.md").write_text(REMEMBERED)
    skill = tmp_path / "skills" / "coffee"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: coffee\ndescription: {SKILLED}\n---\nGrind, then pour.\n")
    return {
        "backend": FilesystemBackend(tmp_path, virtual_mode=True),
        "memory": ["/AGENTS.md"],
        "skills": ["/skills"],
        "system_prompt": OWN,
        "middleware": [Pirate()],
        "interrupt_on": {"execute": True},
        "checkpointer": InMemorySaver(),
    }


FRAGMENTS = [TODO_PROMPT, FILESYSTEM_PROMPT, SUBAGENT_PROMPT]
PARTS = [OWN, BASE_PROMPT, TODO_PROMPT, REMEMBERED, SKILLED, FILESYSTEM_PROMPT, SUBAGENT_PROMPT, CALLERS]
THREAD: Any = {"configurable": {"thread_id": "1"}}


def test_the_parts_stand_in_their_order(everything: dict[str, Any]) -> None:
    with ScriptedModel("Arr.") as model:
        create_deep_agent(model, **everything).invoke({"messages": "Hi"}, THREAD)
    system = model.asked[0].system
    places = [system.find(part) for part in PARTS]

    assert -1 not in places
    assert places == sorted(places)
    assert [system.count(part) for part in PARTS] == [1] * len(PARTS)


@pytest.mark.parametrize("missing", ["memory", "skills", "system_prompt", "middleware"])
def test_a_part_that_is_off_leaves_the_others_in_their_order(
    everything: dict[str, Any], missing: str
) -> None:
    del everything[missing]
    with ScriptedModel("Arr.") as model:
        create_deep_agent(model, **everything).invoke({"messages": "Hi"}, THREAD)
    places = [model.asked[0].system.find(part) for part in PARTS]

    assert places.count(-1) == 1
    assert [each for each in places if each >= 0] == sorted(each for each in places if each >= 0)


def test_steps_and_turns_keep_the_whole_prompt(everything: dict[str, Any]) -> None:
    steps = [call("write_file", file_path=f"/{number}.txt", content="x") for number in range(3)]
    with ScriptedModel(*steps, "Arr.", call("ls", path="/"), "Arr.") as model:
        agent = create_deep_agent(model, **everything)
        agent.invoke({"messages": "Write"}, THREAD)
        agent.invoke({"messages": "Look"}, THREAD)

    assert_prefix_kept(model.asked)


def test_a_memory_that_changes_moves_no_part(everything: dict[str, Any], tmp_path: Path) -> None:
    changed = call("write_file", file_path="/AGENTS.md", content="Prefer spaces.")
    with ScriptedModel(call("read_file", file_path="/AGENTS.md"), changed, "Arr.") as model:
        create_deep_agent(model, **everything).invoke({"messages": "Change it"}, THREAD)
    before, after = model.asked[0].system, model.asked[-1].system

    assert after == before.replace(REMEMBERED, "Prefer spaces.")


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """What a model is asked by default."""
    with ScriptedModel("Hello.") as model:
        create_deep_agent(model, backend=LocalShellBackend(root_dir=tmp_path)).invoke({"messages": "Hi"})
    return model.asked[0]


def test_everything_a_model_reads_by_default_stays_small(asked: Asked) -> None:
    assert count_tokens("The quick brown fox jumps over the lazy dog.") == 10
    assert {"execute", "task", "write_todos"} <= set(asked.tool_names)
    schemas = json.dumps([tool["function"] for tool in asked.tools])
    assert count_tokens(asked.system) + count_tokens(schemas) < 2300
    assert count_tokens(BASE_PROMPT) <= 250
    assert [count_tokens(fragment) for fragment in FRAGMENTS if count_tokens(fragment) > 80] == []


def test_no_description_repeats_a_fragment(asked: Asked) -> None:
    for sentence in " ".join(FRAGMENTS).split(". "):
        assert all(sentence not in tool["function"]["description"] for tool in asked.tools)

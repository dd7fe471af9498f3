"""The profiles that come with the library."""

from __future__ import annotations

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.testing import ScriptedModel


def test_the_small_local_model_gets_few_tools_and_few_words() -> None:
    model = ScriptedModel("Done.", provider="local", model_name="tiny")
    create_deep_agent(model, backend=StateBackend()).invoke({"messages": "Go"})
    asked = model.asked[0]

    assert asked.tool_names == ["ls", "read_file", "write_file", "edit_file", "glob", "grep"]
    assert len(asked.system) < 600

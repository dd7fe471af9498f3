"""What a model reads by default is counted, so that it cannot grow unnoticed."""

from __future__ import annotations

import json
from pathlib import Path

import bpe_openai
import pytest

from deepagents import create_deep_agent
from deepagents._agent.prompt import BASE_PROMPT
from deepagents.backends import LocalShellBackend
from deepagents.middleware.filesystem.middleware import FILESYSTEM_PROMPT
from deepagents.middleware.subagents.middleware import SUBAGENT_PROMPT
from deepagents.middleware.todos import TODO_PROMPT
from deepagents.testing import Asked, ScriptedModel

ENCODING = bpe_openai.get_encoding("o200k_base")


def tokens(text: str) -> int:
    return len(ENCODING.encode(text))


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    with ScriptedModel("Hello.") as model:
        create_deep_agent(model, backend=LocalShellBackend(root_dir=tmp_path)).invoke({"messages": "Hi"})
    return model.asked[0]


def test_the_counter_counts() -> None:
    assert tokens("The quick brown fox jumps over the lazy dog.") == 10


def test_everything_a_model_reads_by_default_stays_small(asked: Asked) -> None:
    assert {"execute", "task", "write_todos"} <= set(asked.tool_names)
    schemas = json.dumps([tool["function"] for tool in asked.tools])
    assert tokens(asked.system) + tokens(schemas) < 2300


def test_the_base_prompt_stays_small() -> None:
    assert tokens(BASE_PROMPT) <= 250


@pytest.mark.parametrize("fragment", [TODO_PROMPT, FILESYSTEM_PROMPT, SUBAGENT_PROMPT])
def test_each_fragment_stays_small(fragment: str) -> None:
    assert tokens(fragment) <= 80


def test_no_description_repeats_a_fragment(asked: Asked) -> None:
    for fragment in (TODO_PROMPT, FILESYSTEM_PROMPT, SUBAGENT_PROMPT):
        for sentence in fragment.split(". "):
            assert all(sentence not in tool["function"]["description"] for tool in asked.tools)

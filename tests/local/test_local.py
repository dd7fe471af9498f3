"""With the real weights, where they are: pull them with `deepagents models pull`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from deepagents_local import ChatLocal, find_weights
from tests.local.engines import read_file

pytestmark = [pytest.mark.local_model, pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _weights(_clean_environment: None) -> Path:
    pytest.importorskip("xllamacpp")
    found = find_weights()
    if found is None:
        pytest.skip("the weights are not on this machine")
    return found


def chat(**options: Any) -> ChatLocal:
    """One thread: several wait for each other by spinning, which takes the time of the tests beside."""
    return ChatLocal(n_threads=1, **options)


def test_it_answers_and_counts_its_tokens() -> None:
    answer = chat(max_tokens=16).invoke("What is 2 + 2? Answer with the number only.")

    assert "4" in answer.text
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["output_tokens"] > 0


def test_a_second_turn_reads_only_what_is_new() -> None:
    model = chat().bind_tools([read_file])
    asked = HumanMessage("What does /notes.txt say?")
    first = model.invoke([asked])
    further = [AIMessage("It says hello."), HumanMessage("And /other.txt?")]
    second = model.invoke([asked, *further], max_tokens=1)

    assert first.tool_calls
    usage = second.usage_metadata
    assert usage is not None
    cached = usage.get("input_token_details", {}).get("cache_read", 0)
    assert usage["input_tokens"] - cached < 40 < cached


def test_leaving_a_stream_frees_the_model() -> None:
    model = chat()
    for _ in model.stream("Write a very long story."):
        break
    started = perf_counter()
    model.invoke("Say hi.", max_tokens=2)

    assert perf_counter() - started < 30

"""What counts against the window is what is sent: memory, skills and tools too; one trigger decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.testing import WindowedModel, call
from tests.agents.busy import look_up, text

THREAD: Any = {"configurable": {"thread_id": "1"}}


def looking(many: int, size: int) -> list[Any]:
    return [call("look_up", topic=f"{number}", size=size) for number in range(many)]


@pytest.mark.parametrize("honesty", [1.0, None])
def test_memory_skills_and_tools_are_counted(tmp_path: Path, honesty: float | None) -> None:
    (tmp_path / "AGENTS.md").write_text(text(16_000, "memory"))
    for number in range(40):
        skill = tmp_path / "skills" / f"skill-{number}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(
            f"---\nname: skill-{number}\ndescription: {'what it does ' * 12}\n---\nDo it.\n"
        )
    backend = FilesystemBackend(tmp_path, virtual_mode=True)
    with WindowedModel(*looking(20, 2_000), "Done.", window=14_000, honesty=honesty) as model:
        agent = create_deep_agent(
            model,
            tools=[look_up],
            backend=backend,
            memory=["/AGENTS.md"],
            skills=["/skills"],
            checkpointer=InMemorySaver(),
        )
        result = agent.invoke({"messages": "Look."}, THREAD)

    fixed = model.turns[0].tokens
    assert result["messages"][-1].text == "Done."
    assert fixed > 14_000 / 2
    assert model.refused == []
    assert model.summaries != []


@pytest.mark.parametrize(
    "limits",
    [
        {"max_output_tokens": 8_000},
        {"max_output_tokens": 7_900},
        {"max_output_tokens": 64_000},
        {"max_output_tokens": 2_000},
    ],
)
def test_what_a_model_may_say_moves_no_threshold(limits: dict[str, Any]) -> None:
    def first_summary(profile: dict[str, Any]) -> int:
        with WindowedModel(*looking(16, 1_500), "Done.", window=8_000, profile=profile) as model:
            agent = create_deep_agent(model, tools=[look_up])
            assert agent.invoke({"messages": "hello"})["messages"][-1].text == "Done."
        return next(at for at, asked in enumerate(model.asked) if asked in model.summaries)

    assert first_summary(limits) == first_summary({}) > 3


def honest(messages: Sequence[BaseMessage], tools: Any = ()) -> int:
    """Count four characters as a token, those of arguments too, whatever form the content has."""
    said = [(each.content, getattr(each, "tool_calls", None)) for each in messages]
    return (len(repr(said)) + len(repr(tools))) // 4


@pytest.mark.parametrize("blocks", [False, True])
def test_clipping_old_arguments_puts_a_summary_off(blocks: bool) -> None:
    def writing(number: int) -> AIMessage:
        said = call("write_file", file_path=f"/{number}.txt", content=text(6_000, f"{number}"))
        return said.model_copy(update={"content": [{"type": "text", "text": "Writing."}]}) if blocks else said

    def run(**settings: Any) -> WindowedModel:
        steps = [writing(number) for number in range(12)]
        backend = StateBackend()
        with WindowedModel(*steps, "Done.", window=16_000, counter=honest) as model:
            own = SummarizationMiddleware(model, backend=backend, trigger=("fraction", 0.85), **settings)
            agent = create_deep_agent(model, middleware=[own], backend=backend, checkpointer=InMemorySaver())
            agent.invoke({"messages": "Go"}, THREAD)
        return model

    clipped = run(truncate_args_settings={"trigger": ("fraction", 0.5), "keep": ("fraction", 0.1)})
    assert clipped.summaries == []
    assert clipped.turns[-1].tokens < 0.85 * 16_000
    assert run().summaries != []


def characters(messages: Sequence[BaseMessage]) -> int:
    return sum(len(each.text) for each in messages)


def compacted_by_characters(history: list[BaseMessage], **when: Any) -> list[BaseMessage]:
    """Ask an agent whose context is counted in characters of messages; return what the model was shown."""
    model = WindowedModel("Done.", window=10_000_000, honesty=None, strict=False)
    own = SummarizationMiddleware(model=model, backend=StateBackend(), token_counter=characters, **when)
    agent: Any = create_agent(model, [look_up], middleware=[FilesystemMiddleware(system_prompt=""), own])
    agent.invoke({"messages": history})
    return model.turns[-1].messages


@pytest.mark.parametrize("keep", [201, 401, 1601, 5001])
def test_a_counter_of_messages_alone_keeps_what_it_was_asked_to(keep: int) -> None:
    history: list[BaseMessage] = [
        kind(f"{at:03}{'x' * 97}") for at in range(100) for kind in (HumanMessage, AIMessage)
    ]
    summary, *kept = compacted_by_characters(history, trigger=("tokens", 10_000), keep=("tokens", keep))

    assert "Summary" in summary.text
    assert keep - 200 <= characters(kept) <= keep


def test_a_short_history_is_compacted_when_its_own_counter_says_so() -> None:
    history: list[BaseMessage] = [HumanMessage("a" * 40), AIMessage("b" * 40), HumanMessage("c" * 40)]
    shown = compacted_by_characters(history, trigger=("tokens", 100), keep=("messages", 1))

    assert [each.text for each in shown[1:]] == ["c" * 40]

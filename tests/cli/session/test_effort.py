"""How much a model reasons is chosen where its class has a field for that, and kept with the session."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_openai import ChatOpenAI

from deepagents.testing import ScriptedModel
from deepagents_cli.errors import CommandError
from deepagents_cli.protocol import Close, Status
from deepagents_cli.session.agent.effort import effort_levels, set_effort
from tests.cli.conftest import Command
from tests.cli.openai_server import OpenAIServer
from tests.cli.session.conftest import OPENING, StartWorker, Worker


class GoogleLike(FakeListChatModel):
    """A model whose class takes a number of tokens for thinking."""

    thinking_budget: int | None = None


def anthropic(name: str, **more: Any) -> ChatAnthropic:
    return ChatAnthropic(model_name=name, api_key="none", **more)  # type: ignore[arg-type] # pydantic makes a secret


def openai(name: str) -> ChatOpenAI:
    return ChatOpenAI(model=name, api_key="none")  # type: ignore[arg-type] # pydantic makes a secret


@pytest.mark.parametrize(
    ("model", "level", "fields"),
    [
        (openai("gpt-5"), "minimal", {"reasoning_effort": "minimal"}),
        (openai("o3"), "high", {"reasoning_effort": "high"}),
        (anthropic("claude-opus-4-7"), "xhigh", {"reasoning_effort": "xhigh"}),
        (
            anthropic("claude-sonnet-4-5"),
            "medium",
            {"thinking": {"type": "enabled", "budget_tokens": 16_000}, "reasoning_effort": None},
        ),
        (
            anthropic("claude-sonnet-4-5", max_tokens=8_000),
            "high",
            {"thinking": {"type": "enabled", "budget_tokens": 4_000}},
        ),
        (GoogleLike(responses=["Hi."]), "low", {"thinking_budget": 4_000}),
    ],
)
def test_each_class_is_asked_by_the_field_that_it_has(
    model: BaseChatModel, level: str, fields: dict[str, Any]
) -> None:
    chosen = set_effort(model, level, "it")

    assert {name: getattr(chosen, name) for name in fields} == fields
    assert model.model_dump() != chosen.model_dump(), "the model itself stays as it was"


@pytest.mark.parametrize("model", [openai("gpt-4.1"), ScriptedModel("Hi.")])
def test_a_model_without_levels_says_so(model: BaseChatModel) -> None:
    assert not effort_levels(model)
    with pytest.raises(CommandError, match="it has no levels of effort to choose from"):
        set_effort(model, "high", "it")


def test_a_level_of_others_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        CommandError, match="'xhigh' is not an effort of it; write minimal, low, medium, high"
    ):
        set_effort(openai("gpt-5"), "xhigh", "it")


def test_an_effort_reaches_the_model_and_stays_with_the_session(
    worker: Worker, start: StartWorker, server: OpenAIServer
) -> None:
    server.then("One.", "Two.", "Three.", "Four.")
    ready = worker.open()
    worker.turn("Go.")
    assert "reasoning_effort" not in server.requests[-1].body
    assert [each.value for each in worker.command("effort").choices] == ["default", "low", "medium", "high"]
    worker.command("effort", "high")
    worker.status(model="local-server:scripted", effort="high")
    worker.turn("Go.")
    assert server.requests[-1].body["reasoning_effort"] == "high"
    worker.send(Close())
    worker.wait_for_end()

    again = start()
    again.open(thread=ready.thread)
    assert again.wait(Status).effort == "high"
    again.turn("Go on.")
    assert server.requests[-1].body["reasoning_effort"] == "high"
    again.command("effort", "default")
    again.turn("Go on.")
    assert "reasoning_effort" not in server.requests[-1].body


def test_an_effort_that_is_typed_at_the_start_comes_before_the_kept_one(
    worker: Worker, start: StartWorker, server: OpenAIServer
) -> None:
    server.then("One.", "Two.")
    thread = worker.open().thread
    worker.command("effort", "high")
    worker.turn("Go.")
    worker.send(Close())
    worker.wait_for_end()

    again = start()
    again.open(thread=thread, options={**OPENING.options, "effort": "low"})
    again.turn("Go on.")
    assert server.requests[-1].body["reasoning_effort"] == "low"


def test_a_task_whose_model_has_no_levels_is_refused(cli: Command) -> None:
    ended = cli.run("Hi.", "--effort", "high", model=ScriptedModel("Hello."))

    assert ended.code == 2
    assert "has no levels of effort to choose from" in ended.err

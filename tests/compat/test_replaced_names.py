"""Other programs put functions of their own in the place of these names, and the library calls those."""

from __future__ import annotations

from typing import Any

import pytest

import deepagents.graph
from deepagents import (
    HarnessProfile,
    SubAgentMiddleware,
    _models,
    create_deep_agent,
    graph,
    register_harness_profile,
)
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from deepagents.testing import ScriptedModel, call


class Maker:
    """Makes a scripted model of whatever is asked for, and remembers it."""

    def __init__(self, *script: Any) -> None:
        self.model = ScriptedModel(*script)
        self.asked: list[Any] = []

    def __call__(self, *names: Any, **settings: Any) -> ScriptedModel:
        self.asked.append((*names, settings))
        return self.model


def test_one_function_goes_by_both_names() -> None:
    assert graph.resolve_model is _models.resolve_model


def test_a_replaced_init_chat_model_makes_the_models_of_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Maker("Hello.")
    monkeypatch.setattr("deepagents._models.init_chat_model", maker)

    agent = create_deep_agent("acme:road-runner")

    assert agent.invoke({"messages": "Hi"})["messages"][-1].text == "Hello."
    assert maker.asked == [("acme:road-runner", {})]


def test_the_name_that_a_model_is_asked_for_by_finds_its_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    register_harness_profile("roster:main", HarnessProfile(system_prompt_suffix="Lead."))
    register_harness_profile("roster:helper", HarnessProfile(system_prompt_suffix="Follow."))
    maker = Maker(call("task", subagent_type="helper", description="Go"), "Helped.", "Done.")
    monkeypatch.setattr("deepagents._models.init_chat_model", maker)
    helper: Any = {"name": "helper", "description": "Helps.", "model": "roster:helper"}

    agent_messages(create_deep_agent("roster:main", subagents=[helper]))

    said = [[word for word in ("Lead.", "Follow.") if word in asked.system] for asked in maker.model.asked]
    assert said == [["Lead."], ["Follow."], ["Lead."]]


def test_it_is_given_what_the_profile_of_the_provider_says(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Maker()
    monkeypatch.setattr("deepagents._models.init_chat_model", maker)

    _models.resolve_model("openai:gpt-5")

    assert maker.asked == [("openai:gpt-5", {"use_responses_api": True})]


def test_it_makes_the_default_model_too(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Maker()
    monkeypatch.setattr("deepagents._models.init_chat_model", maker)
    monkeypatch.setenv("DEEPAGENTS_MODEL", "acme:road-runner")

    with pytest.warns(DeprecationWarning, match="model=None"):
        create_deep_agent()

    assert maker.asked == [("acme:road-runner", {})]


def test_a_replaced_resolve_model_of_the_graph_makes_the_main_model(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Maker("Hello.")
    monkeypatch.setattr(deepagents.graph, "resolve_model", maker)

    agent = create_deep_agent("anything at all")

    assert agent.invoke({"messages": "Hi"})["messages"][-1].text == "Hello."


def test_a_replaced_resolve_model_makes_the_models_of_subagents_and_summaries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main = ScriptedModel(call("task", subagent_type="helper", description="Go"), "Done.")
    maker = Maker("Helped.")
    monkeypatch.setattr(_models, "resolve_model", maker)

    agent = create_deep_agent(
        main, subagents=[{"name": "helper", "description": "Helps.", "model": "anything"}]
    )
    summarization = SummarizationMiddleware(model="at all", backend=StateBackend())

    assert [message.text for message in agent_messages(agent)][-2:] == ["Helped.", "Done."]
    assert summarization.model is maker.model
    assert [name for name, _ in maker.asked if isinstance(name, str)] == ["anything", "at all"]


def test_it_makes_the_models_of_a_middleware_that_delegates(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Maker()
    monkeypatch.setattr(_models, "resolve_model", maker)
    helper: Any = {"name": "helper", "description": "Helps.", "model": "anything", "tools": []}

    SubAgentMiddleware(backend=StateBackend(), subagents=[helper])

    assert maker.asked == [("anything", {})]


def test_a_replaced_create_agent_of_the_graph_compiles_agents_and_subagents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str | None] = []
    create_agent: Any = vars(graph)["create_agent"]

    def compiling(*args: Any, **options: Any) -> Any:
        made.append(options["name"])
        return create_agent(*args, **options)

    monkeypatch.setattr(deepagents.graph, "create_agent", compiling)
    model = ScriptedModel(call("task", subagent_type="helper", description="Go"), "Helped.", "Done.")
    helper: Any = {"name": "helper", "description": "Helps."}

    assert agent_messages(create_deep_agent(model, subagents=[helper], name="main"))[-1].text == "Done."
    assert made == ["main", "helper"]


def test_a_replaced_resolve_model_of_the_graph_makes_the_models_to_fall_back_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, maker = ScriptedModel(TimeoutError("busy")), Maker("Hello.")
    monkeypatch.setattr(
        deepagents.graph, "resolve_model", lambda given: model if given is model else maker(given)
    )

    agent = create_deep_agent(model, fallback_models=["anything at all"])

    assert agent_messages(agent)[-1].text == "Hello."


def agent_messages(agent: Any) -> list[Any]:
    return agent.invoke({"messages": "Hi"})["messages"]

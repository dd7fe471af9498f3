"""Older spellings still work and say so: once each, at the line of whoever wrote them."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from deepagents import FilesystemMiddleware, SubAgentMiddleware, create_deep_agent
from deepagents.backends import FilesystemBackend, StateBackend
from deepagents.backends.protocol import BACKEND_TYPES, BackendFactory
from deepagents.testing import ScriptedModel, call
from tests.conftest import CallMode

QUESTION = {"messages": [{"role": "user", "content": "Go"}]}


@contextmanager
def one_warning(about: str, at: str) -> Generator[None]:
    with pytest.warns(DeprecationWarning, match=about) as warned:
        yield
    [only] = warned
    assert only.filename == __file__
    assert at in linecache.getline(only.filename, only.lineno)


def write(path: str = "/a.txt") -> AIMessage:
    return call("write_file", file_path=path, content="A")


def hand_to(name: str) -> AIMessage:
    return call("task", subagent_type=name, description="Go")


def from_a_function(runtime: Any) -> StateBackend:
    return StateBackend(runtime)


FACTORIES: dict[str, BackendFactory] = {
    "lambda": lambda rt: StateBackend(rt),
    "function": from_a_function,
    "class": StateBackend,
    "no runtime": lambda _: StateBackend(),
}


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES)
def test_a_function_that_makes_the_backend(call_mode: CallMode, make: BackendFactory) -> None:
    with ScriptedModel(write(), call("read_file", file_path="/a.txt"), "Done.") as model:
        with one_warning("backend factory", at="create_deep_agent"):
            agent = create_deep_agent(model, backend=make)
        result = call_mode.invoke(agent, QUESTION)

    assert result["files"]["/a.txt"]["content"] == "A"


@pytest.mark.parametrize("to", ["general-purpose", "clerk"])
def test_a_factory_serves_subagents_without_another_word(
    call_mode: CallMode, tmp_path: Path, to: str
) -> None:
    own: Any = {"name": "clerk", "description": "d"}
    with ScriptedModel(hand_to(to), write(), "written", "Done.") as model:
        with one_warning("backend factory", at="create_deep_agent"):
            agent = create_deep_agent(
                model, backend=lambda _: FilesystemBackend(root_dir=tmp_path), subagents=[own]
            )
        call_mode.invoke(agent, QUESTION)

    assert (tmp_path / "a.txt").read_text() == "A"


@dataclass
class Tenant:
    root: Path


def test_a_factory_sees_the_context_of_each_run(call_mode: CallMode, tmp_path: Path) -> None:
    def of_the_tenant(runtime: Any) -> FilesystemBackend:
        return FilesystemBackend(root_dir=runtime.context.root)

    for name in ("ada", "bob"):
        (tmp_path / name).mkdir()
    with ScriptedModel(write(), "Done.", write(), "Done.") as model:
        with one_warning("backend factory", at="create_deep_agent"):
            agent = create_deep_agent(model, backend=of_the_tenant, context_schema=Tenant)
        for name in ("ada", "bob"):
            call_mode.invoke(agent, QUESTION, context=Tenant(tmp_path / name))

    assert [(tmp_path / name / "a.txt").read_text() for name in ("ada", "bob")] == ["A", "A"]


def test_a_factory_for_the_middleware_alone(call_mode: CallMode) -> None:
    with ScriptedModel(write(), "Done.") as model:
        with one_warning("backend factory", at="FilesystemMiddleware"):
            files = FilesystemMiddleware(backend=lambda rt: StateBackend(rt))
        result = call_mode.invoke(create_agent(model, middleware=[files]), QUESTION)

    assert result["files"]["/a.txt"]["content"] == "A"


def test_a_backend_that_can_be_called_is_a_backend(call_mode: CallMode) -> None:
    class Callable_(StateBackend):
        def __call__(self) -> None:
            raise AssertionError("nobody should call this")

    with ScriptedModel(write(), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model, backend=Callable_()), QUESTION)

    assert "/a.txt" in result["files"]


def test_a_runtime_given_to_the_state_backend() -> None:
    with one_warning("StateBackend", at="StateBackend(object())"):
        StateBackend(object())


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_file_format_given_to_the_state_backend(version: str) -> None:
    with one_warning("file_format", at="StateBackend(file_format"):
        StateBackend(file_format=version)


def test_files_given_as_lists_of_lines(call_mode: CallMode) -> None:
    older = {"/a.txt": {"content": ["one", "two"], "created_at": "", "modified_at": ""}}
    with ScriptedModel(call("read_file", file_path="/a.txt"), "Done.") as model:
        result = call_mode.invoke(create_deep_agent(model), {**QUESTION, "files": older})

    assert result["messages"][-2].text.split() == ["1", "one", "2", "two"]


def test_the_key_prompt(call_mode: CallMode) -> None:
    own = ScriptedModel("Read.")
    spec: Any = {"name": "reader", "description": "Reads", "prompt": "You read.", "tools": [], "model": own}
    with ScriptedModel(hand_to("reader"), "Done.") as model:
        with one_warning("'prompt'", at="create_deep_agent"):
            agent = create_deep_agent(model, subagents=[spec])
        call_mode.invoke(agent, QUESTION)

    assert own.asked[0].system.startswith("You read.")
    assert spec["prompt"] == "You read."


def test_system_prompt_wins_over_prompt(call_mode: CallMode) -> None:
    own = ScriptedModel("Read.")
    spec: Any = {"name": "a", "description": "d", "prompt": "old", "system_prompt": "new", "model": own}
    with ScriptedModel(hand_to("a"), "Done.") as model:
        with one_warning("'prompt'", at="create_deep_agent"):
            agent = create_deep_agent(model, subagents=[spec])
        call_mode.invoke(agent, QUESTION)

    assert own.asked[0].system.startswith("new")


SETTINGS: Any = {"model": "gpt-4o", "model_provider": "openai", "temperature": 0}


def build_main() -> object:
    return create_deep_agent(SETTINGS)


def build_subagent() -> object:
    return create_deep_agent(
        ScriptedModel(), subagents=[{"name": "a", "description": "d", "model": SETTINGS}]
    )


def build_standing_alone() -> object:
    return SubAgentMiddleware(subagents=[{"name": "a", "description": "d", "model": SETTINGS, "tools": []}])


@pytest.mark.parametrize("build", [build_main, build_subagent, build_standing_alone])
def test_a_model_as_a_dict_of_settings(build: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "fake")
    with one_warning("dict of settings", at="return "):
        build()


def test_default_arguments_of_the_subagent_middleware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "fake")
    monkeypatch.setenv("OPENAI_API_KEY", "fake")
    spec: Any = {"name": "weather", "description": "d", "tools": [], "model": "gpt-4o", "middleware": []}
    with one_warning(r"SubAgentMiddleware\(default_model, default_tools\)", at="SubAgentMiddleware"):
        middleware = SubAgentMiddleware(
            default_model="claude-sonnet-4-5-20250929", default_tools=[], subagents=[spec]
        )

    assert middleware.subagent_names == {"general-purpose", "weather"}


def test_current_forms_say_nothing(tmp_path: Path) -> None:
    spec: Any = {"name": "a", "description": "d", "system_prompt": "s", "model": ScriptedModel(), "tools": []}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        create_deep_agent(ScriptedModel(), backend=FilesystemBackend(root_dir=tmp_path), subagents=[spec])
        SubAgentMiddleware(subagents=[spec], backend=StateBackend())
        FilesystemMiddleware(backend=StateBackend())


def test_the_names_of_the_older_types_can_be_imported() -> None:
    assert BACKEND_TYPES is not None
    assert BackendFactory is not None

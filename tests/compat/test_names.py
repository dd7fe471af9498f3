"""Every documented name can be imported from its documented path, and is one object on all paths."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import pytest
from langchain_core.tools import BaseTool

import deepagents
from deepagents import FilesystemMiddleware, SubAgentMiddleware
from deepagents._compat import LEGACY_NAMES, names_on
from deepagents.backends import CompositeBackend, FilesystemBackend, LocalShellBackend, StateBackend
from deepagents.middleware import filesystem, subagents
from deepagents.middleware.summarization import (
    SummarizationToolMiddleware,
    create_summarization_middleware,
)
from deepagents.testing import ScriptedModel
from deepagents.tools._video import video_dependencies_available
from tests.compat.documented_names import MEMBERS, NAMES

FRONT_DOORS = ("deepagents", "deepagents.middleware", "deepagents.backends")


def missing(holder: Any, names: str) -> list[str]:
    """Say which names are not there; older ones may warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return [name for name in names.split() if not hasattr(holder, name)]


def test_a_documented_name_can_be_imported() -> None:
    gone = {module: missing(import_module(module), names) for module, names in NAMES.items()}

    assert {module: names for module, names in gone.items() if names} == {}


def test_a_documented_name_is_promised_or_honoured() -> None:
    """Public names stand in `__all__`, private ones in the table of honoured names or in their module."""
    unsaid: dict[str, set[str]] = {}
    for module, names in NAMES.items():
        promised: list[str] | None = getattr(import_module(module), "__all__", None)
        if promised is not None:
            public = {name for name in names.split() if not name.startswith("_")}
            older = {*LEGACY_NAMES.get(module, ()), *names_on(module)}
            known = {*promised, *older, *NOT_PROMISED.get(module, ())}
            unsaid[module] = public - known

    assert {module: names for module, names in unsaid.items() if names} == {}


NOT_PROMISED = {
    "deepagents.graph": {"create_agent", "resolve_model"},
}
"""Names of private modules, and names that are there to be replaced."""


@pytest.mark.parametrize("door", FRONT_DOORS)
def test_a_name_is_one_object_on_every_path(door: str) -> None:
    front = import_module(door)
    offered: list[str] = front.__all__
    homes = {
        name: module
        for module, names in NAMES.items()
        for name in names.split()
        if name in offered and name not in LEGACY_NAMES.get(module, ())
    }

    assert homes
    assert [
        name for name, home in homes.items() if getattr(import_module(home), name) is not getattr(front, name)
    ] == []


def made(kind: Any, root: Any) -> Any:
    """Make one of the classes that others subclass, or return the class if it is abstract."""
    model = ScriptedModel()
    ways = {
        "CompositeBackend": lambda: CompositeBackend(StateBackend(), {}),
        "FilesystemBackend": lambda: kind(root_dir=root),
        "FilesystemMiddleware": kind,
        "LangSmithSandbox": lambda: kind(sandbox=object()),
        "LocalShellBackend": lambda: kind(root_dir=root),
        "RubricMiddleware": lambda: kind(model=model),
        "SkillsMiddleware": lambda: kind(backend=StateBackend(), sources=["/skills"]),
        "SummarizationToolMiddleware": lambda: SummarizationToolMiddleware(
            create_summarization_middleware(model, StateBackend())
        ),
    }
    return ways.get(kind.__name__, lambda: kind)()


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_a_member_that_subclasses_use_is_there(tmp_path: Any) -> None:
    for home, members in MEMBERS.items():
        module, _, name = home.partition(":")

        assert (home, missing(made(getattr(import_module(module), name), tmp_path), members)) == (home, [])


def test_a_subclass_makes_a_file_tool_of_its_own() -> None:
    class Mine(FilesystemMiddleware):
        def _create_glob_tool(self) -> Any:
            return super()._create_glob_tool().model_copy(update={"description": "Mine."})

    tools = {each.name: each for each in Mine().tools}

    assert tools["glob"].description == "Mine."
    assert tools["grep"].description == filesystem.GREP_TOOL_DESCRIPTION


def test_a_name_that_never_was_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'create_shallow_agent'"):
        _ = deepagents.create_shallow_agent


def test_a_description_is_what_the_model_reads() -> None:
    tools: dict[str, BaseTool] = {each.name: each for each in FilesystemMiddleware().tools}
    read = "READ_FILE_VIDEO" if video_dependencies_available() else "READ_FILE"
    constants = {name: name.upper() for name in tools} | {"ls": "LIST_FILES", "read_file": read}
    documented = NAMES["deepagents.middleware.filesystem"].split()
    described = {
        name: f"{constant}_TOOL_DESCRIPTION"
        for name, constant in constants.items()
        if f"{constant}_TOOL_DESCRIPTION" in documented
    }

    assert described
    assert {name: getattr(filesystem, constant) for name, constant in described.items()} == {
        name: tools[name].description for name in described
    }


def test_the_general_purpose_agent_can_be_built_upon() -> None:
    spec: Any = {**subagents.GENERAL_PURPOSE_SUBAGENT, "model": ScriptedModel(), "tools": []}

    assert SubAgentMiddleware(subagents=[spec]).subagent_names == {"general-purpose"}


def test_a_backend_tells_whether_it_runs_commands(tmp_path: Any) -> None:
    assert not filesystem.supports_execution(StateBackend())
    assert not filesystem.supports_execution(FilesystemBackend(root_dir=tmp_path))
    assert filesystem.supports_execution(LocalShellBackend(root_dir=tmp_path))

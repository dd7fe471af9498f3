"""What an agent knows of its skills: the list that it shows, and what was pinned, opened and disclosed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NotRequired, cast

from langchain.agents import AgentState
from langchain.agents.middleware.types import OmitFromSchema, PrivateStateAttr
from langchain_core.messages import BaseMessage
from langgraph.channels.untracked_value import UntrackedValue
from typing_extensions import TypedDict

from deepagents._state.schema import FORKS_ONLY, NOT_SHARED
from deepagents.middleware.skills.kept import (
    KeptChannel,
    checked_names,
    checked_skills,
    joined_texts,
    latest_skills,
    latest_texts,
)

OmitFromOutput = OmitFromSchema(input=False, output=True)


class SkillMetadata(TypedDict):
    """One skill, as its SKILL.md describes it."""

    path: str
    name: str
    description: str
    license: str | None
    compatibility: str | None
    metadata: dict[str, str]
    allowed_tools: list[str]


class Loaded(TypedDict):
    """What the list of skills was made from: the listing of each source, the texts, and the list itself."""

    listings: dict[str, str]
    contents: str
    skills: str


class SkillsStateUpdate(TypedDict, total=False):
    """What loading and pinning change."""

    messages: list[BaseMessage]
    skills_metadata: list[SkillMetadata]
    skills_load_errors: list[str]
    pinned_skills: None
    _skills_loaded: Loaded
    _skills_opened: list[str]


def joined_pins(standing: list[str] | None, given: str | Iterable[str] | None) -> list[str]:
    """Add names to those that wait to be pinned; `None` forgets them.

    Raises:
        TypeError: for what is no list of names.
    """
    return [] if given is None else [*(standing or ()), *checked_names(given)]


def latest(standing: Any, given: Any) -> Any:
    """Keep the last of several writes."""
    return given


class SkillsState(AgentState[Any]):
    """State of agents with skills.

    `skills_metadata` is loaded while it is missing or `None`; a list that a caller gives stays as it is.
    """

    skills_metadata: NotRequired[
        Annotated[list[SkillMetadata] | None, KeptChannel(latest_skills), OmitFromOutput, FORKS_ONLY]
    ]
    pinned_skills: NotRequired[Annotated[list[str], NOT_SHARED, OmitFromOutput, joined_pins]]
    skills_load_errors: NotRequired[Annotated[list[str], KeptChannel(latest_texts), PrivateStateAttr]]
    _skills_loaded: NotRequired[Annotated[Loaded, PrivateStateAttr]]
    _skills_changed: NotRequired[Annotated[bool, PrivateStateAttr, latest]]
    _skills_opened: NotRequired[Annotated[list[str], KeptChannel(joined_texts), PrivateStateAttr]]
    _skill_tools_disclosed: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]
    _skill_tools_run: NotRequired[
        Annotated[str, UntrackedValue(str, guard=False), PrivateStateAttr, NOT_SHARED]
    ]


def listed(state: Mapping[str, Any]) -> Sequence[SkillMetadata]:
    """Return the skills that a state knows.

    Raises:
        TypeError: for what is no list of skills.
    """
    return cast("Sequence[SkillMetadata]", checked_skills(state.get("skills_metadata")) or ())


def disclosed(state: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the tools that skills disclosed, in order, each with the name under which it was asked for."""
    record: object = state.get("_skill_tools_disclosed")
    if not isinstance(record, Mapping):
        return {}
    items = cast("Mapping[object, object]", record).items()
    return {tool: include for tool, include in items if isinstance(tool, str) and isinstance(include, str)}


def disclosed_skill_tool_names(state: Mapping[str, Any]) -> frozenset[str]:
    """Name the tools that opened skills made available; a record that cannot be read names none."""
    return frozenset(disclosed(state))

"""Define the state of skills: the list that is shown, and what was pinned, opened and disclosed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Final, NotRequired, cast

from langchain.agents import AgentState
from langchain.agents.middleware.types import OmitFromSchema, PrivateStateAttr
from langchain_core.messages import BaseMessage
from langgraph.channels.untracked_value import UntrackedValue
from typing_extensions import TypedDict

from deepagents._state.channels import SNAPSHOT_AFTER, GrowingChannel
from deepagents._state.schema import FORKS_ONLY, NOT_SHARED, keep_latest, merge_unique

OmitFromOutput = OmitFromSchema(input=False, output=True)
_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {"license": None, "compatibility": None, "metadata": {}, "allowed_tools": []}
)
_KINDS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        **dict.fromkeys(("path", "name", "description"), str),
        **dict.fromkeys(("license", "compatibility"), str | None),
        "metadata": dict,
        "allowed_tools": list,
    }
)


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
    """Digests of what the list of skills was made from: each source's listing, the files, and the list."""

    listings: dict[str, str]
    contents: str
    skills: str


class SkillsStateUpdate(TypedDict, total=False):
    """The state keys that loading and pinning write."""

    messages: list[BaseMessage]
    skills_metadata: list[SkillMetadata]
    skills_load_errors: list[str]
    pinned_skills: None
    _skills_loaded: Loaded
    _skills_opened: list[str]


class OptionalChannel(GrowingChannel):
    """A channel that holds `None` before its first write, and is saved as changes after it."""

    def __init__(
        self, reducer: Any, typ: type[Any] | None = None, *, snapshot_frequency: int = SNAPSHOT_AFTER
    ) -> None:
        super().__init__(reducer, NoneType, snapshot_frequency=snapshot_frequency)


def fold_skills(known: Any, writes: Sequence[Any]) -> list[dict[str, Any]] | None:
    """Return the last list written, or `None`.

    Raises:
        TypeError: for a write that is not a list of skills.
    """
    return validate_skills(writes[-1]) if writes else known


def fold_latest(known: Any, writes: Sequence[Any]) -> Any:
    """Return the last list written."""
    return writes[-1] if writes else known


def fold_pins(known: list[str] | None, given: str | Iterable[str] | None) -> list[str]:
    """Add names to those that wait to be pinned; `None` clears them.

    Raises:
        TypeError: for a write that is not a list of names.
    """
    if given is None:
        return []
    names = cast("object", [given] if isinstance(given, str) else given)
    if isinstance(names, Iterable) and not isinstance(names, Mapping | bytes):
        found = list(cast("Iterable[object]", names))
        if all(isinstance(each, str) for each in found):
            return [*(known or ()), *cast("list[str]", found)]
    raise TypeError(f"pinned_skills must be a list of names, such as ['tides']; got {given!r}")


class SkillsState(AgentState[Any]):
    """State of agents with skills.

    `skills_metadata` is loaded while it is missing or `None`; a list that a caller gives stays as it is.
    """

    skills_metadata: NotRequired[
        Annotated[list[SkillMetadata] | None, OptionalChannel(fold_skills), OmitFromOutput, FORKS_ONLY]
    ]
    pinned_skills: NotRequired[Annotated[list[str], NOT_SHARED, OmitFromOutput, fold_pins]]
    skills_load_errors: NotRequired[Annotated[list[str], OptionalChannel(fold_latest), PrivateStateAttr]]
    _skills_loaded: NotRequired[Annotated[Loaded, PrivateStateAttr]]
    _skills_changed: NotRequired[Annotated[bool, PrivateStateAttr, keep_latest]]
    _skills_opened: NotRequired[Annotated[list[str], OptionalChannel(merge_unique), PrivateStateAttr]]
    _skill_tools_disclosed: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]
    # Untracked, because answers of a resolver hold for one run: a resumed one asks anew.
    _skill_tools_run: NotRequired[
        Annotated[str, UntrackedValue(str, guard=False), PrivateStateAttr, NOT_SHARED]
    ]


def find_known_skills(state: Mapping[str, Any]) -> Sequence[SkillMetadata]:
    """Return the skills of a state.

    Raises:
        TypeError: when it holds no list of skills.
    """
    return cast("Sequence[SkillMetadata]", validate_skills(state.get("skills_metadata")) or ())


def find_disclosed_tools(state: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the tools that skills disclosed, in order, each with the name under which it was included."""
    record: object = state.get("_skill_tools_disclosed")
    if not isinstance(record, Mapping):
        return {}
    items = cast("Mapping[object, object]", record).items()
    return {tool: include for tool, include in items if isinstance(tool, str) and isinstance(include, str)}


def disclosed_skill_tool_names(state: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the tools that opened skills made available; none where the record is malformed."""
    return frozenset(find_disclosed_tools(state))


def validate_skills(given: Any) -> list[dict[str, Any]] | None:
    """Return a list of skills with every key in each; `None` stays `None`.

    Raises:
        TypeError: for anything else.
    """
    if given is None:
        return None
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"skills_metadata must be a list of skills, or None to load them; got {given!r}")
    return [_validate_skill(each) for each in cast("Sequence[Any]", given)]


def _validate_skill(given: object) -> dict[str, Any]:
    skill = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else dict[str, Any]()
    # Given keys stay in their order: the digest that tells a loaded list from a given one depends on it.
    whole = {**skill, **{key: value for key, value in _DEFAULTS.items() if key not in skill}}
    for key, kind in _KINDS.items():
        if not isinstance(whole.get(key), kind):
            raise TypeError(f"a skill of skills_metadata has no {key!r} of the right type; got {given!r}")
    return whole

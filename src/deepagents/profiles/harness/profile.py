"""Describe how the agent around a kind of model is shaped, in code and in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, cast

from langchain.agents.middleware import AgentMiddleware

from deepagents._values import field, frozenclass, replace
from deepagents.errors import ProfileError
from deepagents.middleware._base import Middleware
from deepagents.tools import EDIT_TOOLS, EditForm

T = TypeVar("T")
Extra: TypeAlias = Sequence[Middleware] | Callable[[], Sequence[Middleware]]

REQUIRED: Final = frozenset({"FilesystemMiddleware", "SubAgentMiddleware"})
"""Middleware that an agent cannot be without."""
_OURS: Final = "deepagents."
_STOOD_FOR: Final = ("deepagents.", "langchain.", "langchain_")


@frozenclass
class GeneralPurposeSubagentProfile:
    """What to change about the general-purpose subagent; `None` leaves a field as it is."""

    enabled: bool | None = None
    description: str | None = None
    system_prompt: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return what is set, for a file."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> GeneralPurposeSubagentProfile:
        """Read what `to_dict` returned.

        Raises:
            TypeError: for unknown keys, and values of a wrong type.
        """
        found = _read_keys("general_purpose_subagent", data, cls.__annotations__)
        for key, kind in (("enabled", bool), ("description", str), ("system_prompt", str)):
            _check_type(key, found.get(key), kind)
        return cls(**cast("dict[str, Any]", found))


@frozenclass
class HarnessProfile:
    """Changes to an agent that suit one provider or model.

    Args:
        base_system_prompt: replaces the built-in prompt; `""` leaves none.
        system_prompt_suffix: comes after it.
        tool_description_overrides: descriptions by the names of tools; `{available_agents}` in that of
            `task` becomes the list of subagents.
        excluded_tools: names of tools that the model is not offered. This is not a security boundary.
        excluded_middleware: names of middleware, or exact classes, that the agent goes without.
        extra_middleware: further middleware, or a function that makes it anew for each agent.
        general_purpose_subagent: changes to the general-purpose subagent.
        edit_form: how the model changes a part of a file: `replace`, `anchors` or `patch`; `None` leaves it.
        web_search: the tool by which the model's provider searches the web itself, as its package takes it.

    Raises:
        ProfileError: when excluded middleware is required, or named in a form that names nothing; for an
            edit_form that does not exist.
        TypeError: for values of a wrong type.
    """

    base_system_prompt: str | None = None
    system_prompt_suffix: str | None = None
    tool_description_overrides: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    excluded_tools: frozenset[str] = frozenset()
    excluded_middleware: frozenset[str | type] = frozenset()
    extra_middleware: Extra = ()
    general_purpose_subagent: GeneralPurposeSubagentProfile | None = None
    edit_form: EditForm | None = None
    web_search: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        _check_fields(self, classes=True)
        object.__setattr__(self, "extra_middleware", _check_middleware(self.extra_middleware))

    def materialize_extra_middleware(self) -> list[Middleware]:
        """Return the extra middleware for one more stack.

        Raises:
            ProfileError: when the function that makes it returns something else.
        """
        return list(_make_extra(self.extra_middleware))

    def excludes(self, middleware: Middleware) -> bool:
        """Return whether this is left out, by its name, its exact class or the one it stands for."""
        return any(leaves_out(entry, middleware) for entry in self.excluded_middleware)


@frozenclass
class HarnessProfileConfig:
    """The part of a `HarnessProfile` that can be written to YAML or JSON.

    Args:
        base_system_prompt: replaces the built-in prompt; `""` leaves none.
        system_prompt_suffix: comes after it.
        tool_description_overrides: descriptions by the names of tools.
        excluded_tools: names of tools that the model is not offered.
        excluded_middleware: names of middleware that the agent goes without.
        general_purpose_subagent: changes to the general-purpose subagent.
        edit_form: how the model changes a part of a file: `replace`, `anchors` or `patch`; `None` leaves it.
        web_search: the tool by which the model's provider searches the web itself, as its package takes it.

    Raises:
        ProfileError: when excluded middleware is required, or named in a form that names nothing; for an
            edit_form that does not exist.
        TypeError: for values of a wrong type.
    """

    base_system_prompt: str | None = None
    system_prompt_suffix: str | None = None
    tool_description_overrides: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    excluded_tools: frozenset[str] = frozenset()
    excluded_middleware: frozenset[str] = frozenset()
    general_purpose_subagent: GeneralPurposeSubagentProfile | None = None
    edit_form: EditForm | None = None
    web_search: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        _check_fields(self, classes=False)

    def to_dict(self) -> dict[str, object]:
        """Return what is set, in types that YAML and JSON know; sets become sorted lists."""
        general = self.general_purpose_subagent
        found: dict[str, object] = {
            "base_system_prompt": self.base_system_prompt,
            "system_prompt_suffix": self.system_prompt_suffix,
            "tool_description_overrides": dict(self.tool_description_overrides) or None,
            "excluded_tools": sorted(self.excluded_tools) or None,
            "excluded_middleware": sorted(self.excluded_middleware) or None,
            "general_purpose_subagent": None if general is None else general.to_dict(),
            "edit_form": self.edit_form,
            "web_search": None if self.web_search is None else dict(self.web_search),
        }
        return {key: value for key, value in found.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> HarnessProfileConfig:
        """Read what `to_dict` returned, or what stands in a file.

        Raises:
            ProfileError: when excluded middleware is required, or named in a form that names nothing; for an
                edit_form that does not exist.
            TypeError: for unknown keys, and values of a wrong type.
        """
        found = cast("dict[str, Any]", _read_keys("a harness profile", data, cls.__annotations__))
        general = found.pop("general_purpose_subagent", None)
        read = None if general is None else GeneralPurposeSubagentProfile.from_dict(general)
        return cls(**found, general_purpose_subagent=read)

    def to_harness_profile(self) -> HarnessProfile:
        """Return the profile that this stands for."""
        return HarnessProfile(**{each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def from_harness_profile(cls, profile: HarnessProfile) -> HarnessProfileConfig:
        """Return the file form of a profile.

        Raises:
            ProfileError: when the profile holds what only code can say.
        """
        if profile.extra_middleware:
            raise ProfileError(
                f"extra_middleware cannot be written to a file, got {profile.extra_middleware!r}; register "
                "the profile in code"
            )
        written: dict[str, Any] = {each.name: getattr(profile, each.name) for each in fields(cls)}
        written["excluded_middleware"] = frozenset(map(_write_entry, profile.excluded_middleware))
        return cls(**written)


def leaves_out(entry: str | type, middleware: Middleware) -> bool:
    """Return whether an entry of `excluded_middleware` means this middleware."""
    if isinstance(entry, str):
        return middleware.name == entry
    kind = type(middleware)
    stands_in = kind.__module__.startswith(_OURS) and entry.__name__ == middleware.name
    return kind is entry or (stands_in and entry.__module__.startswith(_STOOD_FOR))


def merge_profiles(base: HarnessProfile, override: HarnessProfile) -> HarnessProfile:
    """Lay a profile over another: what it sets wins, exclusions add up, middleware goes by class."""
    return HarnessProfile(
        base_system_prompt=_set(override.base_system_prompt, base.base_system_prompt),
        system_prompt_suffix=_set(override.system_prompt_suffix, base.system_prompt_suffix),
        tool_description_overrides={**base.tool_description_overrides, **override.tool_description_overrides},
        excluded_tools=base.excluded_tools | override.excluded_tools,
        excluded_middleware=base.excluded_middleware | override.excluded_middleware,
        extra_middleware=_merge_extra(base.extra_middleware, override.extra_middleware),
        general_purpose_subagent=_merge_general(
            base.general_purpose_subagent, override.general_purpose_subagent
        ),
        edit_form=_set(override.edit_form, base.edit_form),
        web_search=_set(override.web_search, base.web_search),
    )


def _set(over: T | None, under: T | None) -> T | None:
    return under if over is None else over


def _merge_general(
    base: GeneralPurposeSubagentProfile | None, override: GeneralPurposeSubagentProfile | None
) -> GeneralPurposeSubagentProfile | None:
    if base is None or override is None:
        return override or base
    return replace(base, **cast("dict[str, Any]", override.to_dict()))


def _merge_extra(base: Extra, override: Extra) -> Extra:
    if not base or not override:
        return override or base
    # A function, so that each agent gets instances of its own.
    return lambda: _merge_by_class(_make_extra(base), _make_extra(override))


def _merge_by_class(base: Sequence[Middleware], override: Sequence[Middleware]) -> list[Middleware]:
    """Replace the first instance of each overriding one's exact class, or append it."""
    waiting = {type(each): each for each in override}
    replaced = frozenset(waiting)
    merged: list[Middleware] = []
    for each in base:
        over = waiting.pop(type(each), None)
        if over or type(each) not in replaced:
            merged.append(over or each)
    return [*merged, *(each for each in override if waiting.get(type(each)) is each)]


def _check_fields(profile: HarnessProfile | HarnessProfileConfig, *, classes: bool) -> None:
    _check_type("base_system_prompt", profile.base_system_prompt, str)
    _check_type("system_prompt_suffix", profile.system_prompt_suffix, str)
    if profile.edit_form not in (None, *EDIT_TOOLS):
        forms = ", ".join(map(repr, EDIT_TOOLS))
        raise ProfileError(f"edit_form must be one of {forms}, got {profile.edit_form!r}")
    _check_type("web_search", profile.web_search, Mapping)
    _check_type("general_purpose_subagent", profile.general_purpose_subagent, GeneralPurposeSubagentProfile)
    checked = {
        "tool_description_overrides": _check_words(profile.tool_description_overrides),
        "excluded_tools": _set_of("excluded_tools", profile.excluded_tools, (str,), "strings"),
        "excluded_middleware": _check_exclusions(profile.excluded_middleware, classes=classes),
    }
    for name, value in checked.items():
        object.__setattr__(profile, name, value)


def _write_entry(entry: str | type) -> str:
    alias: object = entry if isinstance(entry, str) else getattr(entry, "serialized_name", None)
    if not isinstance(alias, str):
        raise ProfileError(
            f"excluded_middleware holds the class {entry!r}, which has no serialized_name to be written by; "
            "exclude it by its name"
        )
    return alias


def _check_exclusions(given: object, *, classes: bool) -> frozenset[str | type]:
    """Return the middleware to leave out as a set of names, and of classes where those are allowed.

    Raises:
        TypeError: for what is neither.
        ProfileError: for a name that can name no middleware, or required middleware.
    """
    kinds, wanted = ((str, type), "names or classes") if classes else ((str,), "names")
    entries = cast("frozenset[str | type]", _set_of("excluded_middleware", given, kinds, wanted))
    for entry in entries:
        if isinstance(entry, str):
            _check_name(entry)
    needed = sorted({entry if isinstance(entry, str) else entry.__name__ for entry in entries} & REQUIRED)
    if needed:
        raise ProfileError(
            f"excluded_middleware names {needed!r}, which are scaffolding that no agent can be without"
        )
    return entries


def _check_words(given: object) -> Mapping[str, str]:
    """Return descriptions by the names of tools, as a copy that cannot be changed.

    Raises:
        TypeError: for anything but strings by strings.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"tool_description_overrides must be a mapping of strings to strings, got {given!r}")
    copied = dict(cast("Mapping[object, object]", given))
    for item in copied.items():
        if not all(isinstance(half, str) for half in item):
            raise TypeError(f"tool_description_overrides must map strings to strings, got {item!r}")
    return MappingProxyType(cast("dict[str, str]", copied))


def _check_middleware(given: object) -> object:
    """Return extra middleware as a tuple, or the function that makes it.

    Raises:
        TypeError: for anything else; a class of middleware is neither.
    """
    if callable(given) and not (isinstance(given, type) and issubclass(given, AgentMiddleware)):
        return cast(object, given)
    if isinstance(given, str | type) or not isinstance(given, Iterable):
        raise TypeError(f"extra_middleware must be a list, or a function that makes one, got {given!r}")
    found = tuple(cast("Iterable[object]", given))
    for each in found:
        if not isinstance(each, AgentMiddleware):
            raise TypeError(f"extra_middleware must hold instances of middleware, got {each!r}")
    return found


def _make_extra(extra: Sequence[Middleware] | Callable[[], Sequence[Middleware]]) -> Sequence[Middleware]:
    """Return the middleware itself, made by its function if there is one.

    Raises:
        ProfileError: naming the function that made something else.
    """
    if not callable(extra):
        return extra
    returned: object = extra()
    if not isinstance(returned, list | tuple) or not all(
        isinstance(each, AgentMiddleware) for each in cast("Sequence[object]", returned)
    ):
        raise ProfileError(
            f"extra_middleware is made by {extra!r}, which must return a list of instances of middleware, "
            f"got {returned!r}"
        )
    return cast("Sequence[Middleware]", returned)


def _read_keys(kind: str, given: object, allowed: Iterable[str]) -> dict[str, object]:
    """Return a mapping of the file form as a dict, without keys that have nothing after them.

    Raises:
        TypeError: for what is not a mapping, or has a key that means nothing.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{kind} is read from a mapping, got {given!r}")
    found = dict(cast("Mapping[str, object]", given))
    known = sorted(allowed)
    if unknown := sorted(map(repr, found.keys() - set(known))):
        raise TypeError(f"Unknown keys in {kind}: {', '.join(unknown)}; there are {', '.join(known)}")
    return {key: value for key, value in found.items() if value is not None}


def _check_type(key: str, value: object, kind: type) -> None:
    """Check that a value of the file form is `None` or of its kind.

    Raises:
        TypeError: naming the key.
    """
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{key} must be {kind.__name__}, got {value!r}")


def _set_of(name: str, given: object, kinds: tuple[type, ...], wanted: str) -> frozenset[object]:
    if not isinstance(given, list | tuple | set | frozenset):
        raise TypeError(f"{name} must be a list or set of {wanted}, got {given!r}")
    entries = list(cast("Iterable[object]", given))
    for entry in entries:
        if not isinstance(entry, kinds):
            raise TypeError(f"{name} must hold {wanted}, got {entry!r}")
    return frozenset(entries)


def _check_name(entry: str) -> None:
    if not entry.strip():
        raise ProfileError(f"excluded_middleware must hold non-empty names, got {entry!r}")
    if ":" in entry:
        raise ProfileError(
            f"excluded_middleware holds {entry!r}: import paths are not currently supported; give the name "
            "that the middleware goes by, or its class"
        )
    if entry.startswith("_"):
        raise ProfileError(f"excluded_middleware holds {entry!r}: a name cannot start with '_'")

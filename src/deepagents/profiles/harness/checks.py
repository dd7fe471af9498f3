"""The checks that the parts of a harness profile pass when one is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, cast

from langchain.agents.middleware import AgentMiddleware

from deepagents.errors import ProfileError
from deepagents.middleware._base import Middleware

REQUIRED: Final = frozenset({"FilesystemMiddleware", "SubAgentMiddleware"})
"""Middleware that an agent cannot be without."""


def strings(name: str, given: object) -> frozenset[str]:
    """Return names as a set.

    Raises:
        TypeError: for anything else, a single string included.
    """
    return cast("frozenset[str]", _set_of(name, given, (str,), "strings"))


def exclusions(given: object, *, classes: bool) -> frozenset[str | type]:
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


def words(given: object) -> Mapping[str, str]:
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


def middleware(given: object) -> object:
    """Return extra middleware as a tuple, or the function that makes it.

    Raises:
        TypeError: for anything else; a class of middleware is neither.
    """
    if callable(given) and not _is_middleware_class(given):
        return given
    if isinstance(given, str | type) or not isinstance(given, Iterable):
        raise TypeError(f"extra_middleware must be a list, or a function that makes one, got {given!r}")
    found = tuple(cast("Iterable[object]", given))
    for each in found:
        if not isinstance(each, AgentMiddleware):
            raise TypeError(f"extra_middleware must hold instances of middleware, got {each!r}")
    return found


def make(extra: Sequence[Middleware] | Callable[[], Sequence[Middleware]]) -> Sequence[Middleware]:
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


def read_keys(kind: str, given: object, allowed: Iterable[str]) -> dict[str, object]:
    """Return a mapping of the file form as a dict, without keys that have nothing after them.

    Raises:
        TypeError: for what is no mapping, or has a key that means nothing.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{kind} is read from a mapping, got {given!r}")
    found = dict(cast("Mapping[str, object]", given))
    known = sorted(allowed)
    if unknown := sorted(map(repr, found.keys() - set(known))):
        raise TypeError(f"Unknown keys in {kind}: {', '.join(unknown)}; there are {', '.join(known)}")
    return {key: value for key, value in found.items() if value is not None}


def check_type(key: str, value: object, kind: type) -> None:
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


def _is_middleware_class(given: object) -> bool:
    return isinstance(given, type) and issubclass(given, AgentMiddleware)


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

"""Find out once for each class of backend how its methods are to be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from deepagents._deprecation import warn_caller
from deepagents._values import valueclass

_PROTOCOL = "deepagents.backends.protocol"
_PACKAGE = "deepagents."
_OPTIONS = (
    *("allowed", "expected_version", "max_count", "regex", "context_lines"),
    *("timeout", "max_capture_bytes", "on_output"),
)
_POSITIONAL = frozenset(("offset", "limit", "replace_all", "path", "glob"))
"""The protocol's own parameters that it also allows by position, in the order in which it has them."""


@valueclass
class Signature:
    """The parameters of one function of a backend class."""

    names: frozenset[str]
    takes_any: bool

    def takes(self, name: str) -> bool:
        """Return whether an argument can be given by this name."""
        return self.takes_any or name in self.names

    def call(
        self,
        function: Callable[..., Any],
        positional: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Any:
        """Call a function with arguments by name.

        Parameters of the protocol that it has under other names are given by position, in their order.
        """
        # By name where possible: an option must never land in a parameter of another meaning.
        if self.takes_any or self.names >= keywords.keys():
            return function(*positional, **keywords)
        renamed = [value for name, value in keywords.items() if name in _POSITIONAL]
        options = {name: value for name, value in keywords.items() if name not in _POSITIONAL}
        return function(*positional, *renamed, **options)


@valueclass
class MethodFacts:
    """Facts about a method of a class of backends and its awaiting twin: how each is called.

    `blocking` and `awaiting` are `None` where the newest class has only the other form: a newer `write`
    serves awaiting callers too, in a thread, and a newer `awrite` serves no blocking caller. `options` are
    those that every form takes, of which older backends lack some. With `is_described`, the class that says
    what the backend can do has this definition, and no older one.
    """

    blocking: Signature | None
    awaiting: Signature | None
    options: frozenset[str]
    is_described: bool
    enforces: bool


# Inspecting a signature takes longer than a call on files in memory, so each class is looked at once.
@lru_cache(maxsize=1024)
def method_facts(kind: type[Any], method: str) -> MethodFacts:
    """Return how a method of a class of backends is called."""
    twin = f"a{method}"
    newest = _newest(kind, method)
    own = [name for name in (method, twin) if overrides(kind, name)] or [method]
    forms = [signature_of(kind, name) for name in own]
    newer = {name: signature_of(kind, name) for name in own if newest and name in vars(newest)}
    return MethodFacts(
        blocking=newer.get(method) if newest else forms[0],
        awaiting=newer.get(twin),
        options=frozenset(each for each in _OPTIONS if all(_takes(form, each) for form in forms)),
        is_described=newest is None or issubclass(_definer(kind, "capabilities") or kind, newest),
        enforces=any("allowed" in form.names for form in newer.values())
        and all(form.takes("allowed") for form in forms),
    )


def _takes(form: Signature, option: str) -> bool:
    # What a method passes on as `**options` may leave this process, and a function cannot.
    return option in form.names if option == "on_output" else form.takes(option)


def _newest(kind: type, method: str) -> type | None:
    """Return the class that last wrote a method or its twin; the protocol does not count."""
    names = {method, f"a{method}"}
    return next(
        (each for each in kind.__mro__ if each.__module__ != _PROTOCOL and names & vars(each).keys()), None
    )


def is_written_anew(kind: type, method: str) -> bool:
    """Return whether a class of other people last wrote a method or its twin."""
    newest = _newest(kind, method)
    return newest is not None and not newest.__module__.startswith(_PACKAGE)


def appends(kind: type) -> bool:
    """Return whether a class adds to files itself.

    An `append` that it only inherits would bypass a `write` of its own.
    """
    appending, writing = _newest(kind, "append"), _newest(kind, "write")
    order = kind.__mro__
    return appending is not None and (writing is None or order.index(appending) <= order.index(writing))


@lru_cache(maxsize=1024)
def signature_of(kind: type[Any], name: str) -> Signature:
    """Return what a function of a class takes: nothing by name, where that cannot be found out."""
    function = getattr(kind, name, None)
    parameters: Mapping[str, inspect.Parameter] = {}
    try:
        if callable(function):
            parameters = inspect.signature(function).parameters
    # Some functions written in C have no signature to look at.
    except (TypeError, ValueError):
        warn_caller(f"Could not inspect signature of {kind.__name__}.{name}; it is given no options.")
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return Signature(
        frozenset(each.name for each in parameters.values() if each.kind in by_name),
        any(each.kind is each.VAR_KEYWORD for each in parameters.values()),
    )


def overrides(kind: type, method: str) -> bool:
    """Return whether a class has a method of its own, and not only the protocol's default."""
    definer = _definer(kind, method)
    return definer is not None and definer.__module__ != _PROTOCOL


def _definer(kind: type, method: str) -> type | None:
    return next((each for each in kind.__mro__ if method in vars(each)), None)


def execute_accepts_timeout(cls: type[Any]) -> bool:
    """Return whether this class's `execute` names a `timeout` parameter; `**options` alone do not count."""
    forms = [name for name in ("execute", "aexecute") if overrides(cls, name)] or ["execute"]
    return all("timeout" in signature_of(cls, name).names for name in forms)


def accepts(backend: type[Any], method: str, option: str) -> bool:
    """Return whether a method of this class and its twin take an option; older backends lack some."""
    return option in method_facts(backend, method).options

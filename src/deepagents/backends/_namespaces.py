"""Find the part of a store that belongs to a backend, for each operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from langgraph.config import get_config
from langgraph.runtime import Runtime, get_runtime

from deepagents._deprecation import warn_legacy
from deepagents._state.runtime import read_state
from deepagents.errors import ConfigError

Namespace: TypeAlias = tuple[str, ...]
NamespaceFactory: TypeAlias = Callable[[Runtime[Any]], Namespace]
"""Called for each operation with the runtime of the run."""

_LABEL = re.compile(r"[A-Za-z0-9\-_.@+:~]+")
_RESERVED = "langgraph"
_OUTSIDE = (
    "The namespace of this StoreBackend comes from the run, and this is outside a LangGraph graph execution. "
    'Call it from a run, or give a namespace that needs none: namespace=("user", "filesystem").'
)


class BackendContext:
    """The `Runtime` with which a namespace factory is called, and what older factories expect as well."""

    def __init__(self, runtime: Any, state: Callable[[], Any]) -> None:
        self._runtime = runtime
        self._state = state

    def __getattr__(self, name: str) -> Any:
        """Look anything else up in the runtime."""
        return getattr(self._runtime, name)

    def __repr__(self) -> str:
        return f"BackendContext({self._runtime!r})"

    @property
    def runtime(self) -> Any:
        """The runtime itself; older factories reached it so."""
        warn_legacy(
            "ctx.runtime in a namespace factory is deprecated: what it is called with is the runtime."
        )
        return self._runtime

    @property
    def state(self) -> Any:
        """The state of the run; older factories used it."""
        warn_legacy(
            "ctx.state in a namespace factory is deprecated: take what tells namespaces apart from the "
            "context of the run, runtime.context."
        )
        return self._state()


def validate_namespace(namespace: Any) -> Namespace:
    """Return a namespace that any store can keep apart from all others.

    Raises:
        TypeError: for anything but a tuple of strings.
        ConfigError: when it is empty, or a label has disallowed characters.
    """
    if not isinstance(namespace, tuple):
        raise TypeError(
            f'A namespace must be a tuple of strings, such as ("user", "files"), got {namespace!r}'
        )
    labels = cast("tuple[object, ...]", namespace)
    if not labels:
        raise ConfigError('A namespace must not be empty: name at least one part, such as ("filesystem",)')
    valid = tuple(_label(each, labels) for each in labels)
    if valid[0] == _RESERVED:
        raise ConfigError(f"A namespace must not start with {_RESERVED!r}, which stores keep for themselves")
    return valid


def _label(label: object, namespace: tuple[object, ...]) -> str:
    if not isinstance(label, str):
        raise TypeError(f"Each part of a namespace must be a string, got {label!r} in {namespace!r}")
    if not label:
        raise ConfigError(f"No part of a namespace must be empty, got {namespace!r}")
    if not _LABEL.fullmatch(label):
        raise ConfigError(
            f"A part of a namespace has disallowed characters: {label!r} in {namespace!r}. Use letters, "
            "digits and - _ . @ + : ~"
        )
    return label


def escape_dots(namespace: Namespace) -> Namespace:
    """Escape the dots in a namespace: stores take none, and e-mail addresses have them."""
    return tuple(each.replace(".", "%2E") for each in namespace)


def call_factory(factory: NamespaceFactory, given: Any) -> Namespace:
    """Call a factory with the runtime of this run, or the one that was given, or `None`.

    Raises:
        RuntimeError: outside a run, when the factory needs one.
    """
    runtime = current_runtime() or given
    if runtime is None:
        try:
            return factory(cast("Runtime[Any]", None))
        except AttributeError as error:
            raise RuntimeError(_OUTSIDE) from error
    context = BackendContext(runtime, lambda: getattr(given, "state", None) or read_state())
    return factory(cast("Runtime[Any]", context))


def assistant_namespace(given: Any) -> Namespace:
    """Return the namespace of the assistant that runs, or the one that all without a name share."""
    for config in (getattr(given, "config", None), _current_config()):
        metadata: Mapping[str, Any] = (config or {}).get("metadata") or {}
        if assistant := metadata.get("assistant_id"):
            return (str(assistant), "filesystem")
    return ("filesystem",)


def current_runtime() -> Runtime[Any] | None:
    """Return the runtime of the run that this code is part of."""
    try:
        return get_runtime()
    # LangGraph raises either of them outside a run, depending on what of a run there is.
    except (RuntimeError, KeyError):
        return None


def _current_config() -> Mapping[str, Any]:
    try:
        return cast("Mapping[str, Any]", get_config())
    except RuntimeError:
        return {}

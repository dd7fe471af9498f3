"""Resolve whatever is given as a backend to one of today, and read what older ones answer."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any, Final, cast

from deepagents._deprecation import already_warned, warn_legacy
from deepagents._state.runtime import has_channel, in_graph, write_channel
from deepagents.backends._older import OLDER_NAME, coerce, complete_transfer, is_older
from deepagents.backends._signatures import overrides
from deepagents.backends.operations import METHODS, Download, Execute, Operation, Upload
from deepagents.backends.protocol import BACKEND_TYPES, BackendProtocol, SandboxBackendProtocol
from deepagents.errors import BackendError, ConfigError

_FILES: Final = "files"
_BLOCKING: Final = (*METHODS, Execute.method, *OLDER_NAME.values())
_METHODS: Final = (*_BLOCKING, *(f"a{name}" for name in _BLOCKING), "capabilities", "real_path", "id")


def is_factory(backend: BACKEND_TYPES) -> bool:
    """Return whether this is a callable that makes a backend, and not a backend that can be called."""
    return callable(backend) and not isinstance(backend, BackendProtocol) and not _is_alike(backend)


def resolve_backend(backend: BACKEND_TYPES, runtime: Any) -> BackendProtocol:
    """Return the backend itself, or what its factory makes for this runtime.

    Raises:
        ConfigError: for what is neither.
    """
    if isinstance(backend, BackendProtocol):
        return backend
    if _is_alike(backend):
        return _adopt(backend)
    if not callable(cast(object, backend)):
        raise ConfigError(
            f"backend must be a BackendProtocol, got {backend!r}; for files on disk pass "
            "FilesystemBackend(root_dir=...)"
        )
    with already_warned():
        made = backend(runtime)
    return _adopt(made) if _is_alike(made) else made


def warn_form(backend: BACKEND_TYPES) -> None:
    """Warn once, at the caller's line, about a deprecated way of giving a backend."""
    if is_factory(backend):
        warn_factory()
    elif _is_alike(backend):
        name = type(backend).__name__
        warn_legacy(f"A backend that is no BackendProtocol is deprecated: let {name} inherit from it.")


def warn_factory() -> None:
    """Warn once, at the caller's line, that a backend is now given as an instance."""
    warn_legacy(
        "A backend factory is deprecated: pass the backend itself, for example backend=StateBackend()."
    )


def as_current_result(backend: BackendProtocol, op: Operation, answer: Any) -> Any:
    """Return an answer as today's result, and put files that it hands back into the graph's state.

    Raises:
        BackendError: `io_error` for what no version answers, and for files that there is no channel for.
    """
    if isinstance(op, (Upload, Download)):
        return complete_transfer(op.method, op.files, answer)
    if is_older(op.method, answer):
        _warn_answer(type(backend), op.method)
    result = coerce(op.method, answer)
    files: object = getattr(result, "files_update", None)
    if not isinstance(files, Mapping) or not in_graph():
        return result
    if not has_channel(_FILES):
        raise BackendError(
            "io_error",
            f"{op.method} handed back files for the graph's state, which keeps none: let the backend's "
            "capabilities say state_files=True.",
        )
    write_channel(_FILES, dict(cast("Mapping[str, Any]", files)))
    return replace(result, files_update=None)


@lru_cache(maxsize=256)
def _warn_answer(kind: type[BackendProtocol], method: str) -> None:
    """Warn once for each method of a class, at the line where it is written."""
    text = f"{kind.__name__}.{method}() answers with a list or text: answer with a result."
    function: Any = inspect.unwrap(getattr(kind, method if overrides(kind, method) else f"a{method}"))
    # A compiled function has no line of its own, so the warning points at the caller.
    code = getattr(function, "__code__", None)
    if code is None:
        warn_legacy(text)
        return
    warnings.warn_explicit(text, DeprecationWarning, code.co_filename, code.co_firstlineno, kind.__module__)


def _is_alike(backend: object) -> bool:
    """Return whether an object has the methods of a backend, or gives out files, without being one."""
    if isinstance(backend, (type, BackendProtocol)):
        return False
    has = {name for name in _METHODS if callable(getattr(type(backend), name, None))}
    reads, lists = {"read", "aread"} & has, {"ls", "als", "ls_info", "als_info"} & has
    return bool((reads and lists) or {"download_files", "adownload_files"} & has)


def _adopt(backend: object) -> BackendProtocol:
    adopted = _adopting_class(type(backend))()
    vars(adopted)["adopted"] = backend
    return adopted


@lru_cache(maxsize=256)
def _adopting_class(kind: type[Any]) -> type[BackendProtocol]:
    """Make a class of backend that passes each method which a foreign class has on to an object of it."""
    own = {name: _pass_on(name, getattr(kind, name)) for name in _METHODS if hasattr(kind, name)}
    runs = not {"execute", "aexecute"}.isdisjoint(own)
    with already_warned():
        base = SandboxBackendProtocol if runs else BackendProtocol
        # A real class, so that capabilities and signatures are found as for any backend.
        made = type(kind.__name__, (base,), {**own, "__module__": kind.__module__})
    return cast("type[BackendProtocol]", made)


def _pass_on(name: str, member: Any) -> Any:
    if not callable(member):
        return property(lambda self: getattr(self.adopted, name))

    @wraps(member)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(self.adopted, name)(*args, **options)

    return method

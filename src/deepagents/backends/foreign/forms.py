"""Resolve whatever is given as a backend: one of today, a factory, or an object that only looks like one."""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import Any, Final, cast

from deepagents._deprecation import already_warned, warn_legacy
from deepagents.backends.operations import METHODS, Execute
from deepagents.backends.protocol import BACKEND_TYPES, OLDER_NAMES, BackendProtocol, SandboxBackendProtocol
from deepagents.errors import ConfigError

_BLOCKING: Final = (*METHODS, Execute.method)
_METHODS: Final = (
    *(*_BLOCKING, *(f"a{name}" for name in _BLOCKING)),
    *(*OLDER_NAMES, "capabilities", "real_path", "id"),
)


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
        warn_legacy(f"A backend that is not a BackendProtocol is deprecated: let {name} inherit from it.")


def warn_factory() -> None:
    """Warn once, at the caller's line, that a backend is now given as an instance."""
    warn_legacy(
        "A backend factory is deprecated: pass the backend itself, for example backend=StateBackend()."
    )


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

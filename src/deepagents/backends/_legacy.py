"""Older shapes of a backend become the current one, here and nowhere else."""

from __future__ import annotations

from typing import Any, cast

from deepagents._deprecation import already_warned, warn_legacy
from deepagents.backends.protocol import BACKEND_TYPES, BackendProtocol
from deepagents.errors import ConfigError


def is_factory(backend: BACKEND_TYPES) -> bool:
    """Tell whether this is a callable that makes a backend, and not a backend that can be called."""
    return callable(backend) and not isinstance(backend, BackendProtocol)


def resolve(backend: BACKEND_TYPES, runtime: Any) -> BackendProtocol:
    """Return the backend itself, or what its factory makes for this runtime.

    Raises:
        ConfigError: for what is neither.
    """
    if isinstance(backend, BackendProtocol):
        return backend
    if not callable(cast(object, backend)):
        raise ConfigError(
            f"backend must be a BackendProtocol, got {backend!r}; for files on disk pass "
            "FilesystemBackend(root_dir=...)"
        )
    with already_warned():
        return backend(runtime)


def coerce(method: str, answer: Any) -> Any:
    """Return what a method answered as the result that it answers today."""
    return answer


def warn_factory() -> None:
    """Say once, at the caller's line, that a backend is now given as an instance."""
    warn_legacy(
        "A backend factory is deprecated: pass the backend itself, for example backend=StateBackend()."
    )

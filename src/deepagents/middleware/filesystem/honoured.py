"""Names under which other packages look into `FilesystemMiddleware`: they work, and say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from deepagents._deprecation import warn_legacy
from deepagents.backends._legacy import is_factory
from deepagents.backends.calls import Files

_TODAY: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "_permissions": lambda files: list(files.permissions),
        "_custom_system_prompt": lambda files: files.system_prompt,
        "_large_tool_results_prefix": lambda files: f"{_root(files.backend)}/large_tool_results",
        "_conversation_history_prefix": lambda files: f"{_root(files.backend)}/conversation_history",
    }
)


class HonouredNames:
    """What an instance answers to beside its own names."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in _TODAY:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warn_legacy(f"{name} of FilesystemMiddleware is deprecated.")
            return _TODAY[name](self)


def _root(backend: Any) -> str:
    """Name where files of the harness go; a factory says that only in a run."""
    return "" if is_factory(backend) else Files.of(backend, None).capabilities().artifacts_root.rstrip("/")

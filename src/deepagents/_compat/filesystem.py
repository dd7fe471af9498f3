"""Names under which other packages look into `FilesystemMiddleware`: they work, and say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from deepagents._deprecation import warn_legacy
from deepagents.backends._legacy import is_factory
from deepagents.backends.calls import Files
from deepagents.backends.results import FileInfo
from deepagents.permissions import FilesystemOperation, FilesystemPermission, Mode, Rules

_TODAY: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "_permissions": lambda files: list(files.permissions),
        "_custom_system_prompt": lambda files: files.system_prompt,
        "_large_tool_results_prefix": lambda files: f"{_root(files.backend)}/large_tool_results",
        "_conversation_history_prefix": lambda files: f"{_root(files.backend)}/conversation_history",
    }
)


class HonouredNames:
    """What an instance answers to beside its own names, and what a subclass may override."""

    def _create_tool(self, name: str) -> Any:
        raise NotImplementedError

    def _create_ls_tool(self) -> Any:
        return self._create_tool("ls")

    def _create_glob_tool(self) -> Any:
        return self._create_tool("glob")

    def _create_grep_tool(self) -> Any:
        return self._create_tool("grep")

    def _made(self, name: str) -> Any:
        """Make a tool, by the method of a subclass if it has one."""
        make = getattr(self, f"_create_{name}_tool", None)
        return self._create_tool(name) if make is None else make()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in _TODAY:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warn_legacy(f"{name} of FilesystemMiddleware is deprecated.")
            return _TODAY[name](self)


def _root(backend: Any) -> str:
    """Name where files of the harness go; a factory says that only in a run."""
    return "" if is_factory(backend) else Files.of(backend, None).capabilities().artifacts_root.rstrip("/")


def check_fs_permission(
    rules: Sequence[FilesystemPermission], operation: FilesystemOperation, path: str
) -> Mode:
    """Say what rules hold for a path."""
    return Rules(rules).decide(operation, path)


def filter_paths_by_permission(
    rules: Sequence[FilesystemPermission], operation: FilesystemOperation, paths: Sequence[str]
) -> list[str]:
    """Leave out the paths that rules deny."""
    known = Rules(rules)
    return [path for path in paths if known.decide(operation, path) != "deny"]


def apply_permissions_to_glob_results(
    rules: Sequence[FilesystemPermission], found: Sequence[FileInfo]
) -> list[FileInfo]:
    """Leave out the files that may not be read."""
    known = Rules(rules)
    return [each for each in found if known.decide("read", each["path"]) != "deny"]


def find_delete_deny_patterns(rules: Sequence[FilesystemPermission], path: str) -> list[str]:
    """Name the patterns that forbid to delete a directory."""
    return Rules(rules).deletion_blockers(path)


def all_paths_scoped_to_routes(rules: Sequence[FilesystemPermission], backend: Any) -> bool:
    """Tell whether each path that rules name lies below a route of a composite backend."""
    routes = tuple(f"{route.rstrip('/')}/" for route in getattr(backend, "routes", ()))
    return bool(routes) and all(path.startswith(routes) for rule in rules for path in rule.paths)

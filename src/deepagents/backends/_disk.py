"""Ask a backend where its files lie on the disk of this machine, if they do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from deepagents.backends.protocol import Allowed


def find_disk_roots(backend: object) -> list[Path]:
    """Return the directories in which tools and commands of a backend change files, if it has any."""
    find: Callable[[], list[Path]] | None = getattr(backend, "_disk_roots", None)
    return find() if find else []


def find_disk_paths(backend: object, path: str) -> list[Path]:
    """Return where a path of a backend lies on disk, and where it leads; none where it is elsewhere."""
    find: Callable[[str], list[Path]] | None = getattr(backend, "_disk_paths", None)
    return find(path) if find else []


def find_disk_name(backend: object, path: Path) -> str | None:
    """Return how a backend names what lies at a path on disk; `None` where that is not its own."""
    find: Callable[[Path], str | None] | None = getattr(backend, "_disk_name", None)
    return find(path) if find else None


def may_restore(backend: object, path: Path, allowed: Allowed) -> bool:
    """Return whether what lies at a path on disk may be put back, under rules about paths of the backend."""
    may: Any = getattr(backend, "_may_restore", None)
    return bool(may and may(path, allowed))

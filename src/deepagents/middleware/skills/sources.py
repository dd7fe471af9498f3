"""Where skills are looked for: a directory of the backend, and what people call it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from deepagents._paths import is_within, normalise, overlap
from deepagents.errors import BackendError, ConfigError

SkillSource: TypeAlias = str | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Source:
    """One directory of skills."""

    path: str
    label: str

    def holds(self, path: str) -> bool:
        """Tell whether a normalised path lies in this directory, or is it."""
        try:
            return is_within(path, normalise(self.path))
        except BackendError:
            return False

    def meets(self, path: str) -> bool:
        """Tell whether a normalised path lies in this directory, or this directory in it."""
        try:
            return overlap(path, normalise(self.path))
        except BackendError:
            return False


def sources_of(given: Sequence[SkillSource]) -> tuple[Source, ...]:
    """Read the sources that a caller gives.

    Raises:
        TypeError: for one that is neither a path nor a pair of path and label.
        ConfigError: for one below a home directory, which no backend knows.
    """
    if isinstance(given, str):
        raise TypeError(f"expected a list of skill sources, got {given!r}; write [{given!r}]")
    return tuple(Source(_checked(source_path(each)), _label(each)) for each in given)


def source_path(source: SkillSource) -> str:
    """Return the path of a source.

    Raises:
        TypeError: for what is neither a path nor a pair of path and label.
    """
    match cast("object", source):
        case str() as path:
            return path
        case (str() as path, str()) if isinstance(source, tuple):
            return path
        case _:
            raise TypeError(f"expected str or (str, str) tuple for a skill source, got {source!r}")


def derive_source_label(path: str) -> str:
    """Name a source after its directory; one called `skills` after the directory that holds it."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    if not parts:
        return "Unnamed"
    leaf = parts[-1]
    if leaf == "built_in_skills":
        return "Built-in"
    holder = parts[-2].lstrip(".").replace("_", " ").replace("-", " ").strip() if len(parts) > 1 else ""
    return holder.title() if leaf == "skills" and holder else leaf.capitalize()


def _label(source: SkillSource) -> str:
    return source[1] if isinstance(source, tuple) else derive_source_label(source)


def _checked(path: str) -> str:
    if path.startswith("~"):
        raise ConfigError(
            f"the skill source {path!r} names a home directory, which a backend does not know; give a "
            "backend whose root is there, such as FilesystemBackend(root_dir=Path.home()), and the path "
            "below that root"
        )
    return path

"""Hold what undo knows of one agent: where its tools change files, and what they may change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from deepagents._paths import ARTIFACT_FOLDERS
from deepagents._values import valueclass
from deepagents.backends._disk import find_disk_name, find_disk_paths, find_disk_roots, may_restore
from deepagents.backends.capabilities import Capabilities
from deepagents.backends.handle import BackendHandle
from deepagents.permissions import Rules
from deepagents.tools._tool import SpecTool
from deepagents.undo.steps import Directories, is_below

NOT_ON_DISK: Final = "the agent has no files on the disk of this machine"
_WITH_CONVERSATION: Final = "{path} is kept with the conversation, and goes back only together with that"
_ELSEWHERE: Final = "{path} lies in none of the directories that go back, and stays as it is"


class AgentFiles:
    """The files of one agent: its backend, its rules, and whether `task` hands work to foreign agents."""

    def __init__(self, handle: BackendHandle, rules: Rules, *, runs_anything: bool, foreign: bool) -> None:
        self.handle = handle
        self.runs_anything = runs_anything
        self._rules = rules
        self._foreign = foreign
        self._backend: Any = None if handle.is_factory else handle.files(None).backend
        roots = sorted({str(each.resolve()) for each in find_disk_roots(self._backend)}, key=len)
        inner = {each for each in roots for other in roots if each != other and is_below(each, other)}
        artifacts = self.capabilities().artifacts_root.rstrip("/")
        folders = [f"{artifacts}/{name}" for name in ARTIFACT_FOLDERS]
        passed_over = [str(path) for each in folders for path in find_disk_paths(self._backend, each)]
        self.places = Directories(tuple(each for each in roots if each not in inner), frozenset(passed_over))

    def capabilities(self) -> Capabilities:
        """Return what the backend can do."""
        return self.handle.capabilities()

    def kind_of(self, tool: Any) -> Literal["all", "files"] | None:
        """Return what a tool may change: anything, the paths that it names, or no file."""
        if not isinstance(tool, SpecTool):
            return "all" if tool is not None else None
        spec = tool.spec
        if spec.effect == "run" or (spec.name == "task" and self._foreign):
            return "all"
        return "files" if spec.changes_files else None

    def tells_of_others(self, tool: Any) -> bool:
        """Return whether what a tool returns is the work of agents whose own calls are recorded."""
        return isinstance(tool, SpecTool) and tool.spec.shows_delegated_work

    def paths_in(self, tool: Any, arguments: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Return where the files lie on this machine that a call names, and say what becomes of others."""
        named = {each: find_disk_paths(self._backend, each) for each in tool.spec.paths_in(arguments)}
        notes = [note for each, found in named.items() if not found for note in self._describe(each)]
        return [*dict.fromkeys(str(path) for found in named.values() for path in found)], notes

    def _describe(self, path: str) -> list[str]:
        """Say what becomes of a file that has no place on this disk, unless the backend refuses its path."""
        can = self.handle.capabilities(path)
        if can.host:
            return []
        return [(_WITH_CONVERSATION if can.state_files else _ELSEWHERE).format(path=path)]

    def find_virtual(self, known: Mapping[str, Any], paths: set[str]) -> list[str]:
        """Return which of the agent's own paths lie at one of these on disk."""
        return [
            each for each in known if any(str(path) in paths for path in find_disk_paths(self._backend, each))
        ]

    def name_of(self, path: Path) -> str:
        """Return how the agent's tools name what lies at a path on disk; the path itself if they do not."""
        return find_disk_name(self._backend, path) or str(path)

    def may_restore(self, path: str) -> bool:
        """Return whether protection and rules let a path be put back."""
        return may_restore(self._backend, Path(path), _Allowed(self._rules))


@valueclass
class _Allowed:
    """An `Allowed` for changes under rules; a person who goes back need not be asked."""

    rules: Rules

    def __call__(self, path: str) -> bool:
        return self.rules.decide("write", path) != "deny"

    def all_below(self, directory: str) -> bool:
        return not self.rules.has("deny", "write")

"""Show what a call of a file tool has changed: the files are read before and after it."""

from __future__ import annotations

import os
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.tools.tool_node import ToolCallRequest

from deepagents._values import valueclass
from deepagents.events import ApprovalRequest
from deepagents_cli.approval.guarded import kind_of
from deepagents_cli.approval.policy import Policy
from deepagents_cli.diffs import name_in, text_diff
from deepagents_cli.project.hooks import Result, ToolHandler
from deepagents_cli.project.project import read_bytes
from deepagents_cli.protocol import FileChange
from deepagents_cli.text import clean, one_line

_LARGEST: Final = 500_000
"""Bytes of a file: more takes a comparison too long, and shows nobody anything."""
_MOST_FILES: Final = 500
"""Of one call, which may delete a directory."""
_MOST_LINES: Final = 1_000
"""Of the diff of one call."""


@valueclass
class Held:
    """The text of a file, `None` without one; `known` is false for what is not text, or too large."""

    text: str | None
    known: bool = True


class CallDiffs(AgentMiddleware[Any, Any, Any]):
    """Reads files around the calls that change them, of the agent and of its subagents."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self._policy = policy
        self._seen: dict[str, tuple[list[str], list[FileChange]]] = {}

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> Result:
        """Compare what the files of a call hold before and after it."""
        call = request.tool_call
        spec = self._policy.specs.get(call["name"])
        places: list[str] = []
        if spec and spec.changes_files:
            places = self._policy.places_of(ApprovalRequest("", call["name"], call["args"]))
        if not places:
            return await handler(request)
        before = await to_thread(self._hold_all, places)
        result = await handler(request)
        self._seen[str(call["id"])] = await to_thread(self._compare, before)
        return result

    def take(self, call_id: str) -> tuple[list[str], list[FileChange]]:
        """Return what a call has changed, once: as lines, and what its files held before and after it."""
        return self._seen.pop(call_id, ([], []))

    def _compare(self, before: Mapping[str, Held]) -> tuple[list[str], list[FileChange]]:
        lines: list[str] = []
        changes: list[FileChange] = []
        for path, held in before.items():
            after = self._hold(path)
            lines += _diff(held, after, name_in(path, str(self._policy.directory)))
            if held != after and held.known and after.known:
                changes.append(FileChange(path, held.text, after.text))
        left = len(lines) - _MOST_LINES
        shown = [clean(each) for each in lines[:_MOST_LINES]]
        return [*shown, *([f"... {left:,} more lines"] if left > 0 else [])], changes

    def _hold_all(self, paths: Sequence[str]) -> dict[str, Held]:
        """Return what the files of a call hold."""
        return {place: held for path in paths for place, held in self._hold_below(path).items()}

    def _hold_below(self, path: str) -> dict[str, Held]:
        """Return what a file holds, or those below a directory that is to be deleted."""
        if Path(path).is_symlink() or not Path(path).is_dir():
            return {path: self._hold(path)}
        found: dict[str, Held] = {}
        for place, _, files in os.walk(path):
            found |= {each: self._hold(each) for each in (f"{place}/{name}" for name in files)}
            if len(found) > _MOST_FILES:
                break
        return found

    def _hold(self, path: str) -> Held:
        if not os.path.lexists(path):
            return Held(None)
        real = Path(path).resolve()
        place = next((each for each in self._policy.places if real.is_relative_to(each)), None)
        # A link out of the directories may lead to any file of this person.
        if place is None or "secrets" in {kind_of(each, writes=False) for each in (path, str(real))}:
            return Held(None, known=False)
        try:
            content = read_bytes(real, place, _LARGEST)
        except OSError:
            return Held(None, known=False)
        is_text = b"\0" not in content
        return Held(content.decode("utf-8", "backslashreplace") if is_text else None, known=is_text)


def _diff(before: Held, after: Held, name: str) -> list[str]:
    if before.known and after.known:
        return text_diff(before.text, after.text, name)
    return [f"{one_line(name)}: a secret, no text, or too large to be shown"]

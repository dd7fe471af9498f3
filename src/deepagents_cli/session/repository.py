"""Ask git how many files of a repository have changed, which only git itself can tell.

A repository can name programs that git runs. Those that are known are turned off, and git runs in a sandbox
here in which nothing can be changed and no network is reached; of what comes out only two numbers are taken.
"""

from __future__ import annotations

import os
import re
from asyncio import Task, create_task, shield, wait_for
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from deepagents import FilesystemPermission
from deepagents.errors import BackendError, ConfigError
from deepagents.permissions import CommandAccess, Rules
from deepagents_cli.project.project import Project
from deepagents_cli.session.agents import find_no_sandbox
from deepagents_sandbox import LocalSandbox

_SECONDS: Final = 1
_COUNT: Final = """
n=0
while IFS= read -r key; do
  export "GIT_CONFIG_KEY_$n=$key" "GIT_CONFIG_VALUE_$n="
  n=$((n + 1))
done <<END
$(echo core.fsmonitor; git config --name-only --get-regexp '^filter[.]')
END
export GIT_CONFIG_COUNT=$n GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1
git status --porcelain --ignore-submodules=all >/tmp/status 2>/dev/null || exit 3
grep -vc '^??' /tmp/status; grep -c '^??' /tmp/status; exit 0
"""
"""Without the filters of attributes: what one returns could tell, by the count, what is in a secret."""


class Repository:
    """Looks in the background, once after another; `state` is what was found last, in words."""

    def __init__(self, project: Project, changed: Callable[[], None]) -> None:
        self._project = project
        self._changed = changed
        self._task: Task[None] | None = None
        self._first: Task[None] | None = None
        self.state: str | None = None
        self._at_first: str | None = None

    def look(self) -> None:
        """Begin to look, unless that is under way."""
        if self._task is None:
            self._task = create_task(self._look())
            self._first = self._first or self._task

    async def at_first(self) -> str | None:
        """Return what was found when the conversation began: later changes are the agent's to know."""
        if self._first is not None:
            await shield(self._first)
        return self._at_first

    async def close(self) -> None:
        """Wait for the end of what is under way."""
        if self._task is not None:
            await self._task

    async def _look(self) -> None:
        try:
            before, self.state = self.state, await _read_state(self._project)
        finally:
            self._task = None
        self._at_first = self._at_first or self.state
        if self.state != before:
            self._changed()


async def _read_state(project: Project) -> str | None:
    root = project.root
    if not (root / ".git").is_dir() or find_no_sandbox(root):
        return None
    with suppress(BackendError, ConfigError, OSError, TimeoutError):
        path = os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath)))
        with LocalSandbox(root, env={"PATH": path}, timeout=_SECONDS) as sandbox:
            nothing = FilesystemPermission(["write"], [f"{root}/"], "deny")
            access = CommandAccess(Rules([nothing]), False)
            ended = await wait_for(sandbox.aexecute(_COUNT, allowed=access), 2 * _SECONDS)
        if found := re.fullmatch(r"(\d{1,9})\n(\d{1,9})\s*", ended.output):
            changed, untracked = map(int, found.groups())
            parts = [f"{changed:,} changed"] * bool(changed) + [f"{untracked:,} untracked"] * bool(untracked)
            return ", ".join(parts) or "clean"
    return None

"""Ask git how many files of a repository have changed, which only git itself can tell.

A repository can name programs that git runs. Those that are known are turned off, and git runs in a sandbox
here in which nothing can be changed and no network is reached; of what comes out only two numbers are taken.
"""

from __future__ import annotations

import re
from asyncio import Task, create_task, shield, timeout
from contextlib import suppress
from typing import Final

from deepagents import FilesystemPermission
from deepagents.errors import BackendError, ConfigError
from deepagents.permissions import CommandAccess, Rules
from deepagents_cli.approval.backends import search_path
from deepagents_cli.project.project import Project
from deepagents_cli.session.agent.agents import find_no_sandbox
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
    """Looks in the background, once: what changes later is the agent's to know."""

    def __init__(self) -> None:
        self._looking: Task[str | None] | None = None

    def look(self, project: Project) -> None:
        """Begin to look."""
        self._looking = create_task(_read_state(project))

    async def at_first(self) -> str | None:
        """Return what has changed, in words; `None` if that is not known."""
        return await shield(self._looking) if self._looking else None

    async def close(self) -> None:
        """Wait for the end of what is under way."""
        if self._looking is not None:
            await self._looking


async def _read_state(project: Project) -> str | None:
    root = project.root
    if not (root / ".git").is_dir() or find_no_sandbox(root):
        return None
    with suppress(BackendError, ConfigError, OSError, TimeoutError):
        with LocalSandbox(root, env={"PATH": search_path()}, timeout=_SECONDS) as sandbox:
            nothing = FilesystemPermission(["write"], [f"{root}/"], "deny")
            access = CommandAccess(Rules([nothing]), False)
            async with timeout(2 * _SECONDS):
                ended = await sandbox.aexecute(_COUNT, allowed=access)
        if found := re.fullmatch(r"(\d{1,9})\n(\d{1,9})\s*", ended.output):
            changed, untracked = map(int, found.groups())
            parts = [f"{changed:,} changed"] * bool(changed) + [f"{untracked:,} untracked"] * bool(untracked)
            return ", ".join(parts) or "clean"
    return None

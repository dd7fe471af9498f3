"""Make the checks after edits that a person has switched on, or a trusted project brings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from deepagents.errors import ConfigError
from deepagents.middleware import EditCheckMiddleware
from deepagents_cli.approval.policy import Policy
from deepagents_cli.project.settings import Settings
from deepagents_cli.session.agent.access import Access
from deepagents_cli.session.agent.agents import find_no_sandbox, make_sandbox

_PATIENCE: Final = 10.0
"""Seconds that a task waits at its end, where nobody reads the answer and types on."""


def make_edit_checks(
    directory: Path,
    settings: Settings,
    policy: Policy,
    access: Access,
    notify: Callable[[str], None],
    *,
    waits: bool,
) -> EditCheckMiddleware | None:
    """Make what checks files after edits: in a sandbox, since they run unasked and the agent may write them.

    Without a sandbox there are none, and `notify` hears why.
    """
    if not settings.checks:
        return None
    try:
        if problem := find_no_sandbox(directory):
            raise ConfigError(problem)
        shell = make_sandbox(directory, read=access.read, write=access.write)
    except ConfigError as error:
        notify(f"the checks after edits are off: {error}")
        return None
    # Of commands that name nothing: a formatter is given names of files, which the agent chose.
    shell.access_of = lambda _: policy.access_of("")
    return EditCheckMiddleware(
        settings.checks, backend=shell, patience=_PATIENCE if waits else 0, warn=notify
    )

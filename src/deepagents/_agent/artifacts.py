"""Keep archives and moved-out results of agents under other rules apart.

What an agent read stands in its archive and in results that moved to files. An agent that may not read the
originals must not find them there, neither a subagent those of its parent nor the other way round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deepagents._agent.plan import AgentPlan
from deepagents._paths import BLOBS, HISTORY, LARGE_RESULTS
from deepagents.backends.composite import CompositeBackend
from deepagents.backends.handle import open_backend
from deepagents.middleware.subagents.task import Worker
from deepagents.permissions import FilesystemPermission

# Not all of `conversation_history`: the folders of subagents lie in there, each hidden by its own name.
_FOLDERS: Final = (
    f"{HISTORY}/*.md",
    f"{HISTORY}/media/**",
    f"{LARGE_RESULTS}/**",
    f"{BLOBS}/**",
)


def separate_artifacts(
    main: AgentPlan, children: Sequence[AgentPlan | Worker]
) -> Sequence[AgentPlan | Worker]:
    """Separate artifacts: a subagent under other rules than the main agent has a folder of its own."""
    root = _root(main) if any(_is_apart(child, main) for child in children) else None
    if root is None:
        return children

    def separate(child: AgentPlan | Worker) -> AgentPlan | Worker:
        if isinstance(child, Worker) or not _is_apart(child, main):
            return child
        own = _path(root, _rules_name(child))
        return replace(child, backend=CompositeBackend(child.backend, {}, artifacts_root=own))

    return [separate(child) for child in children]


def hide_artifacts(
    plan: AgentPlan, main: AgentPlan, children: Sequence[AgentPlan]
) -> Sequence[FilesystemPermission]:
    """Return rules that keep the artifacts of agents under other rules from an agent of this tree.

    An agent that may read everything may read these too.
    """
    apart = [child for child in children if _is_apart(child, main)]
    is_restricted = any(rule.mode != "allow" and "read" in rule.operations for rule in plan.permissions)
    root = _root(main) if apart and is_restricted else None
    if root is None:
        return ()
    others = dict.fromkeys(map(_rules_name, apart))
    hidden: list[str] = []
    if _is_apart(plan, main):
        hidden = [f"{root}/{each}" for each in _FOLDERS]
        others.pop(_rules_name(plan), None)
    hidden += [f"{_path(root, name)}/**" for name in others]
    return [FilesystemPermission(["read"], hidden, "deny")] if hidden else ()


def _is_apart(plan: AgentPlan | Worker, main: AgentPlan) -> bool:
    """Return whether a subagent may read other files; a fork goes on with what its parent read."""
    if isinstance(plan, Worker) or plan.role != "declared":
        return False
    return _rules_name(plan) != _rules_name(main)


def _rules_name(plan: AgentPlan) -> str:
    # Named by the rules, not by the subagent: agents that may read the same files share a folder.
    reading = [(rule.mode, *rule.paths) for rule in plan.permissions if "read" in rule.operations]
    # A digest and not `hash()`, which differs between processes: a resumed thread must find its files.
    return f"rules-{hashlib.sha256(repr(reading).encode()).hexdigest()[:12]}"


def _path(root: str, name: str) -> str:
    return f"{root}/{HISTORY}/{name}"


def _root(main: AgentPlan) -> str | None:
    """Return where artifacts are; `None` if only a run can tell, or if commands find them anyway."""
    handle = open_backend(main.backend)
    if handle.is_factory:
        return None
    can = handle.capabilities()
    return None if can.execute and not can.ruled else can.artifacts_root.rstrip("/")

"""Skills to test with: their texts, and what tests ask of agents that have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.store.memory import InMemoryStore

from deepagents import create_deep_agent
from deepagents.backends import (
    BackendProtocol,
    CompositeBackend,
    FilesystemBackend,
    StateBackend,
    StoreBackend,
)
from deepagents.testing import ScriptedModel

THREAD: Any = {"configurable": {"thread_id": "one"}}


def skill(name: str, description: str = "Does things.", *more: str, body: str = "Do it.") -> str:
    return "\n".join(["---", f"name: {name}", f"description: {description}", *more, "---", "", body, ""])


def put(root: Path, source: str, *names: str, **texts: str) -> Path:
    """Write skills below a source; a name alone makes a plain one."""
    for name, text in ({each: skill(each) for each in names} | texts).items():
        (root / source / name).mkdir(parents=True, exist_ok=True)
        (root / source / name / "SKILL.md").write_text(text)
    return root


def backend_of(kind: str, root: Path, files: dict[str, str]) -> tuple[BackendProtocol, dict[str, Any]]:
    """Make a backend that holds these files, and what a run must be given beside its message."""
    if kind == "state":
        return StateBackend(), {"files": {path: {"content": text} for path, text in files.items()}}
    store = StoreBackend(store=InMemoryStore(), namespace=("skills",))
    made: BackendProtocol = store if kind == "store" else FilesystemBackend(root_dir=root)
    if kind == "composite":
        made = CompositeBackend(default=StateBackend(), routes={"/skills": store})
    for path, text in files.items():
        assert made.write(path, text).error is None
    return made, {}


def agent_on(model: ScriptedModel, root: Path, **options: Any) -> Any:
    """Make an agent that has the skills below this directory."""
    return create_deep_agent(model, backend=FilesystemBackend(root_dir=root), skills=["/skills"], **options)

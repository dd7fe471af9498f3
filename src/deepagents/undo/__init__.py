"""Take conversations and files back to any step, and forth again: [concepts/undo](docs/concepts/undo.md)."""

from deepagents.errors import PlanOutdated, UndoError
from deepagents.undo.history import FileHistory
from deepagents.undo.plans import Change
from deepagents.undo.results import Coverage, Plan, RewindResult

__all__ = ["Change", "Coverage", "FileHistory", "Plan", "PlanOutdated", "RewindResult", "UndoError"]

"""Take conversations and files back to any step, and forth again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepagents._lazy import lazy

if TYPE_CHECKING:
    from deepagents.errors import PlanOutdated, UndoBusy, UndoError
    from deepagents.undo.history import FileHistory
    from deepagents.undo.plans import Change
    from deepagents.undo.results import Coverage, Plan, RewindResult

__all__ = [
    "Change",
    "Coverage",
    "FileHistory",
    "Plan",
    "PlanOutdated",
    "RewindResult",
    "UndoBusy",
    "UndoError",
]

__getattr__ = lazy(
    __name__,
    {
        ".history": "FileHistory",
        ".plans": "Change",
        ".results": "Coverage Plan RewindResult",
        "deepagents.errors": "PlanOutdated UndoBusy UndoError",
    },
)

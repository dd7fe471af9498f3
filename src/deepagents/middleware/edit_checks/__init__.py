"""Run checkers and formatters after an agent changed files, and show its model what is new."""

from deepagents.middleware.edit_checks.commands import EditCheck
from deepagents.middleware.edit_checks.middleware import EditCheckMiddleware

__all__ = ["EditCheck", "EditCheckMiddleware"]

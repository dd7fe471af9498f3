"""Limits that hold for an agent and for all that works for it."""

from deepagents.middleware._history import LIMIT_REACHED
from deepagents.middleware.limits.middleware import LimitsMiddleware

__all__ = ["LIMIT_REACHED", "LimitsMiddleware"]

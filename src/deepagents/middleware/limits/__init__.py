"""Limits that hold for an agent and for all that works for it."""

from deepagents.middleware.limits.middleware import LimitsMiddleware
from deepagents.middleware.limits.report import LIMIT_REACHED

__all__ = ["LIMIT_REACHED", "LimitsMiddleware"]

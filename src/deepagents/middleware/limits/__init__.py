"""Limits that hold for an agent and for all that works for it."""

from deepagents.middleware._history import LIMIT_REACHED
from deepagents.middleware.limits.middleware import LimitsMiddleware, limits_in
from deepagents.middleware.limits.usage_callback import counting_between_steps, is_used_up

__all__ = ["LIMIT_REACHED", "LimitsMiddleware", "counting_between_steps", "is_used_up", "limits_in"]

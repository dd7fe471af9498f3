"""Limit an agent and all that works for it."""

from deepagents.middleware._history import LIMIT_REACHED
from deepagents.middleware.limits.budget import Budget as Budget
from deepagents.middleware.limits.middleware import LimitsMiddleware
from deepagents.middleware.limits.persistence import open_background as open_background
from deepagents.middleware.limits.persistence import save_background as save_background
from deepagents.middleware.limits.reservation import ReservationMiddleware
from deepagents.middleware.limits.usage_callback import counting as counting
from deepagents.middleware.limits.usage_callback import counting_between_steps as counting_between_steps
from deepagents.middleware.limits.usage_callback import find_tokens as find_tokens
from deepagents.middleware.limits.usage_callback import is_used_up as is_used_up

__all__ = ["LIMIT_REACHED", "LimitsMiddleware", "ReservationMiddleware"]

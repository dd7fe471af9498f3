"""Follow a run as typed events."""

from deepagents.observe.observer import Observer, read_reasoning
from deepagents.observe.stream import STREAM, aobserve, interrupts_to_event, observe, resume_with

__all__ = [
    "STREAM",
    "Observer",
    "aobserve",
    "interrupts_to_event",
    "observe",
    "read_reasoning",
    "resume_with",
]

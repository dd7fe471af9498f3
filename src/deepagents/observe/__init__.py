"""Follow a run as typed events."""

from deepagents.observe.observer import Observer
from deepagents.observe.stream import STREAM, aobserve, interrupts_to_event, observe, resume_with

__all__ = ["STREAM", "Observer", "aobserve", "interrupts_to_event", "observe", "resume_with"]

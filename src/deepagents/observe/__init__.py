"""What a run does, as events."""

from deepagents.observe.stream import Observer, aobserve, interrupts_to_event, observe

__all__ = ["Observer", "aobserve", "interrupts_to_event", "observe"]

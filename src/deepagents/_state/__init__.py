"""What an agent keeps between steps, and how it is saved and shared with subagents."""

from deepagents._state.schema import DeepAgentState

__all__ = ["DeepAgentState"]

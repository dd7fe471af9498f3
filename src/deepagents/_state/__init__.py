"""Hold the state of an agent between steps: how it is saved, and shared with subagents."""

from deepagents._state.schema import DeepAgentState

__all__ = ["DeepAgentState"]

"""What tests of agents need: a scripted model, and the suite that every backend must pass."""

from deepagents.testing.scripted import Asked, ScriptedModel, call, calls

__all__ = ["Asked", "ScriptedModel", "call", "calls"]

"""AGENTS.md files in the system prompt, read again when they change."""

from deepagents.middleware.memory.middleware import MemoryMiddleware
from deepagents.middleware.memory.prompt import MEMORY_SYSTEM_PROMPT
from deepagents.middleware.memory.state import MemoryState, MemoryStateUpdate

__all__ = ["MEMORY_SYSTEM_PROMPT", "MemoryMiddleware", "MemoryState", "MemoryStateUpdate"]

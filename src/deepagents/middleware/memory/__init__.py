"""AGENTS.md files in the system prompt, read again when they change."""

from deepagents.middleware.memory.contents import MemoryState, MemoryStateUpdate
from deepagents.middleware.memory.middleware import MemoryMiddleware
from deepagents.middleware.memory.prompt import MEMORY_SYSTEM_PROMPT

__all__ = ["MEMORY_SYSTEM_PROMPT", "MemoryMiddleware", "MemoryState", "MemoryStateUpdate"]

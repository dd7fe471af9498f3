"""The middleware that a deep agent is made of; each also works with LangChain's `create_agent`."""

from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.subagents import CompiledSubAgent, SubAgent, SubAgentMiddleware
from deepagents.middleware.todos import TodoListMiddleware

__all__ = ["CompiledSubAgent", "FilesystemMiddleware", "SubAgent", "SubAgentMiddleware", "TodoListMiddleware"]

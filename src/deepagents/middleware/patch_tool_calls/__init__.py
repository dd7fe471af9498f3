"""Answer tool calls that were left without a result."""

from deepagents.middleware.patch_tool_calls.middleware import PatchToolCallsMiddleware

__all__ = ["PatchToolCallsMiddleware"]

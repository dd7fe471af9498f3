"""Keep the path at which middleware of other packages imports what adds to a system prompt."""

from deepagents.middleware._requests import with_section as append_to_system_message

__all__ = ["append_to_system_message"]

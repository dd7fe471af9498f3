"""The older path of the middleware in `deepagents.middleware.tool_exclusion`."""

from deepagents._deprecation import legacy

__getattr__ = legacy(__name__)

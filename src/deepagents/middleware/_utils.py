"""The older path of what middleware of other packages adds to a system prompt with."""

from deepagents._deprecation import legacy

__getattr__ = legacy(__name__)

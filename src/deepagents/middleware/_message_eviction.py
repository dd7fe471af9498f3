"""The older path of what takes the place of a text that is too large."""

from deepagents._deprecation import legacy

__getattr__ = legacy(__name__)

"""Keep the older import path for helpers for text, paths and globs."""

from deepagents._deprecation import legacy

__getattr__ = legacy(__name__)

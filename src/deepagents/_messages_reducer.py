"""The older place of what folds messages into those that there are."""

from deepagents._deprecation import legacy

__getattr__ = legacy(__name__)

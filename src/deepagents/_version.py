"""The one place the version is written."""

from deepagents._deprecation import legacy

__version__ = "0.7.100"

__getattr__ = legacy(__name__)

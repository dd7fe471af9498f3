"""The older path of what names the private keys of states."""

from deepagents._deprecation import legacy

__getattr__ = legacy(__name__)

"""Say the version: the one place where it is written."""

__version__ = "0.7.100"

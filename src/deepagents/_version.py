"""The one place the version is written."""

__version__ = "0.7.100"

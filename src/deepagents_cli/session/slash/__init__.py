"""Carry out slash commands, in the worker."""

from deepagents_cli.session.slash.table import carry_out, list_commands

__all__ = ["carry_out", "list_commands"]

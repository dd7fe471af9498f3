"""Carry out slash commands, in the worker."""

from deepagents_cli.session.slash.project import find_skills
from deepagents_cli.session.slash.table import carry_out, list_commands

__all__ = ["carry_out", "find_skills", "list_commands"]

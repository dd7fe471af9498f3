"""The slash commands that the worker carries out."""

from deepagents_cli.worker.commands.table import COMMANDS, carry_out, list_commands

__all__ = ["COMMANDS", "carry_out", "list_commands"]

"""The `deepagents` command."""

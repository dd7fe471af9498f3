"""Run agents in a terminal: the `deepagents` command."""

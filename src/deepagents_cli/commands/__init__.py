"""The commands, one per file."""

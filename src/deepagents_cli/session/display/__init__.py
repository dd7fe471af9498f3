"""Describe for any view what happens: calls and results in a line, changes as a diff."""

"""Render blocks of a conversation as lines of a terminal."""

"""Show sessions in an editor, by the Agent Client Protocol."""

"""The local model on small tasks with strict checks."""

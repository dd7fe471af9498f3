"""Start runs one at a time on each thread, made durable by DBOS, and drive them to their end."""

from deepagents_server.runs.engine import RunEngine

__all__ = ["RunEngine"]

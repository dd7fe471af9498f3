"""Runs: started one at a time on each thread, made durable by DBOS, driven to their end."""

from deepagents_server.runs.engine import RunEngine

__all__ = ["RunEngine"]

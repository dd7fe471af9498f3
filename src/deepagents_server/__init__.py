"""Serve LangGraph graphs: runs that outlive a process, on SQLite or PostgreSQL."""

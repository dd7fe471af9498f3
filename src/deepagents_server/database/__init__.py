"""Keep the server's rows: SQLite in one process, PostgreSQL in any number."""

from deepagents_server.database.engine import Database, open_database

__all__ = ["Database", "open_database"]

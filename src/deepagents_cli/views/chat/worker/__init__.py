"""Start the process of a session, and exchange messages with it."""

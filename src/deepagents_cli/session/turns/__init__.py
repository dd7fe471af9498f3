"""Let the agent work on what was sent, steer it, and ask the person."""

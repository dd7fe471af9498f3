"""Take a terminal, find out what it can show, and open an editor at it."""

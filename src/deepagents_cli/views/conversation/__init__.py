"""Hold what a conversation shows and asks, whichever view shows it."""

"""Show a session to a person or a program, and ask the person."""

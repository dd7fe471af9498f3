"""Keep one thread open for a person: messages, own commands, what is attached, and what is taken back."""

"""Find what a directory and a person bring and have set."""

"""The commands of the program: the options of each, and what it does."""

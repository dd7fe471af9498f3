"""Carry out the commands of the program: the options of each, and what it does."""

"""Programs that run inside a sandbox: the standard library of Python 3.6 and newer, and nothing else.

Each module has a `main` that takes parameters and returns the answer. Imports from this folder are replaced
by the source of the module when a program is sent.
"""

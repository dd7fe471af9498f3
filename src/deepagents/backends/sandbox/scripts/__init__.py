"""Run inside a sandbox, with the standard library of Python 3.6 and newer, and nothing else.

A function takes the parameters of an operation and returns the answer. Imports from this package are replaced
by the source of the module when a program is sent, so all names share one namespace.
"""

"""Decide which calls of tools need a person's approval: modes, rules and what is guarded."""

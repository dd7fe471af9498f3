"""The older place of helpers for deprecations."""

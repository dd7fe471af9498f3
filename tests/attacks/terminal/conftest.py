"""The places and the command of the tests of the command line."""

from __future__ import annotations

from tests.cli.conftest import cli, directory, nursery, state

__all__ = ["cli", "directory", "nursery", "state"]

"""Savers for the tests of agents that keep their threads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import savers
from tests.conftest import CallMode


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a saver in both call modes, and on each kind of saver."""
    if "saver" in metafunc.fixturenames:
        pairs = pytest.mark.parametrize(("call_mode", "saver"), savers.PAIRS, indirect=True)
        metafunc.definition.add_marker(pairs)


@pytest.fixture
def saver(request: pytest.FixtureRequest, call_mode: CallMode, tmp_path: Path) -> Iterator[Any]:
    """A saver of some kind, open in the call mode of the test."""
    kind: str = request.param
    place = request.getfixturevalue("postgres") if kind == "postgres" else str(tmp_path / "threads.db")
    with savers.opened(kind, call_mode, place) as opened:
        yield opened

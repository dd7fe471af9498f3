"""Where the archives of these tests are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.middleware.archives import PLACES, Place


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A backend of each kind."""
    return Place(request.param, tmp_path)

"""Take ripgrep away for a while."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deepagents._programs import find_ripgrep


@contextmanager
def no_ripgrep(nowhere: Path) -> Generator[None]:
    """Let no `rg` be found: neither on the search path nor beside Python."""
    places = [each for each in os.environ["PATH"].split(os.pathsep) if not shutil.which("rg", path=each)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join(places))
        patch.setattr(sys, "executable", str(nowhere / "python"))
        assert find_ripgrep() is None
        yield

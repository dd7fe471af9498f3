"""Runs the Python examples in README.md and docs/, each page as one story in an empty directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser


def _enter_empty_directory(page: dict[str, Any]) -> None:
    page["_left"] = Path.cwd()
    os.chdir(tempfile.mkdtemp())


def _leave_it(page: dict[str, Any]) -> None:
    shutil.rmtree(Path.cwd())
    os.chdir(page["_left"])


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/**/*.md", "docs/*.md"],
    setup=_enter_empty_directory,
    teardown=_leave_it,
).pytest()

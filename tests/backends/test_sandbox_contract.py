"""A sandbox keeps the contract of every backend, with ripgrep in it and without."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deepagents.backends.protocol import BackendProtocol
from deepagents.testing.contract import BackendContract
from deepagents.testing.contract.searching import SearchingContract
from tests.backends.sandboxes import rooted


class TestSandbox(BackendContract):
    @pytest.fixture(autouse=True)
    def _root(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def make_backend(self) -> BackendProtocol:
        return rooted(self.root)


class TestSandboxWithoutRipgrep(SearchingContract):
    @pytest.fixture(autouse=True)
    def _root(self, tmp_path: Path) -> None:
        self.root = tmp_path / "root"
        self.programs = tmp_path / "programs"
        self.root.mkdir()
        self.programs.mkdir()
        (self.programs / "python3").symlink_to(sys.executable)

    def make_backend(self) -> BackendProtocol:
        sandbox = rooted(self.root)
        sandbox.env["PATH"] = str(self.programs)
        return sandbox

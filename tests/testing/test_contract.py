"""The contract suite finds faults, and a third party can run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.testing.contract.base import ContractBase


class TestOlderNames(ContractBase):
    """Checks that were written when the suite's calls had other names."""

    @pytest.fixture(autouse=True)
    def _root(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def make_backend(self) -> BackendProtocol:
        return FilesystemBackend(self.root)

    def test_older_names_still_work_and_say_the_new_ones(self, files: Any) -> None:
        with pytest.warns(match="Called.wrote is now Called.write_text"):
            files.wrote("/a.txt", "one")
        with pytest.warns(match="Called.uploaded is now Called.upload_all"):
            files.uploaded({"/b.txt": b"two"})
        with pytest.warns(match="Called.text is now Called.read_text"):
            assert files.text("/a.txt") == "one"
        with pytest.warns(match="Called.bytes is now Called.read_bytes"):
            assert files.bytes("/b.txt") == b"two"
        with pytest.warns(match="Called.downloaded is now Called.download_all"):
            assert files.downloaded("/b.txt") == {"/b.txt": b"two"}
        with pytest.warns(match="Called.listed is now Called.list_paths"):
            assert files.listed("/") == ["/a.txt", "/b.txt"]

    def test_a_name_that_never_was_is_an_error(self, files: Any) -> None:
        with pytest.raises(AttributeError, match="'Called' object has no attribute 'raed'"):
            files.raed("/a.txt")


BACKEND = '''
from deepagents.backends.protocol import BackendProtocol
from deepagents.backends.results import *
from deepagents.backends.utils import slice_read_response
from deepagents.testing.contract import BackendContract


class Faulty(BackendProtocol):
    """Deletes by bare prefix, splits lines at form feeds, and never refuses a path."""

    def __init__(self):
        self.files = {}

    def ls(self, path):
        return LsResult(entries=[{"path": each} for each in sorted(self.files)])

    def read(self, file_path, offset=0, limit=2000):
        if file_path not in self.files:
            return ReadResult(error=f"'{file_path}' not found", code="file_not_found")
        text = "\\n".join(self.files[file_path].splitlines()) + "\\n"
        return slice_read_response({"content": text}, offset, limit)

    def write(self, file_path, content):
        self.files[file_path] = content
        return WriteResult(path=file_path)

    def upload_files(self, files):
        return [FileUploadResponse(path=self.write(path, content.decode()).path) for path, content in files]

    def delete(self, file_path):
        self.files = {each: text for each, text in self.files.items() if not each.startswith(file_path)}
        return DeleteResult(path=file_path)


class TestFaulty(BackendContract):
    def make_backend(self):
        return Faulty()


class TestEndsEarly(BackendContract):
    def run(self, work):
        raise KeyError("no place to work")

    async def arun(self, work):
        raise KeyError("no place to work")
'''


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "test_faulty.py").write_text(BACKEND)
    checks = "created or lines_are_counted or replaced_whole or deleted_alone or dangerous or to_the_version"
    chosen = f"TestFaulty and ({checks}) or TestEndsEarly and created"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "-k", chosen, folder]
    # What else pytest finds here is not needed for the checks, and takes longer than they do.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False).stdout


def lines(report: str, verdict: str) -> set[str]:
    found = (line.partition("::")[2] for line in report.splitlines() if line.startswith(verdict))
    return {line.split(" ")[0] for line in found}


def test_what_holds_passes_in_both_colours(report: str) -> None:
    created = "TestFaulty::test_a_file_is_created_with_its_directories"
    assert {f"{created}[sync]", f"{created}[async]"} <= lines(report, "PASSED")


def test_faults_are_found_and_explained(report: str) -> None:
    assert {
        "TestFaulty::test_lines_are_counted_by_newlines_alone[sync]",
        "TestFaulty::test_a_dangerous_path_deletes_nothing[sync]",
    } <= lines(report, "FAILED")
    assert "{'form feed and others': (1, 5, None)} != {'form feed and others': (1, 1, None)}" in report


def test_what_is_not_claimed_is_skipped(report: str) -> None:
    assert "does not claim 'versions'" in report


def test_what_a_backend_raises_is_shown_with_the_call(report: str) -> None:
    assert "in download_files(['/a.txt']" in report


def test_work_that_ends_early_is_told(report: str) -> None:
    assert "run() or arun() ended before the work was done" in report
    assert "no place to work" in report

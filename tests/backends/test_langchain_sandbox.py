"""LangChain's standard tests for sandboxes, as they are; where they ask for another rule, it says so."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_tests.integration_tests import SandboxIntegrationTests

from deepagents.backends.local_shell import LocalShellBackend
from deepagents.backends.protocol import SandboxBackendProtocol
from tests.backends.sandboxes import BIN, DirectorySandbox

pytestmark = pytest.mark.filterwarnings("ignore:Class-scoped fixture")

ABSOLUTE = "glob answers with absolute paths, as every other operation does"
ANOTHER_RULE = {
    "test_glob": ABSOLUTE,
    "test_glob_basic_pattern": ABSOLUTE,
    "test_glob_with_directories": ABSOLUTE,
    "test_glob_hidden_files_explicitly": ABSOLUTE,
    "test_glob_with_character_class": ABSOLUTE,
    "test_glob_with_question_mark": ABSOLUTE,
    "test_write_existing_file_fails": "write replaces what is there; a version guards against surprises",
}
LARGER = "files on this machine come whole up to max_file_size_mb"
FROM_ROOT = "relative paths start at root_dir"
WHOLE_LINES = "a page ends with the newline of its last line, so that pages put together are the file"
ANOTHER_RULE_LOCALLY = {
    **ANOTHER_RULE,
    "test_ls_lists_nested_directories": "directories are listed with a slash at their end",
    "test_aread_large_text_payload_paginated_roundtrip": WHOLE_LINES,
    "test_write_read_download_large_text_with_escaped_content": WHOLE_LINES,
    "test_awrite_aread_adownload_large_text_with_escaped_content": WHOLE_LINES,
    "test_read_binary_file_1_mib_returns_error": LARGER,
    "test_aread_binary_file_1_mib_returns_error": LARGER,
    "test_download_error_invalid_path_relative": FROM_ROOT,
    "test_upload_relative_path_returns_invalid_path": FROM_ROOT,
}


class Standard(SandboxIntegrationTests):
    another_rule = ANOTHER_RULE

    @pytest.fixture(autouse=True)
    def _expect(self, request: pytest.FixtureRequest) -> None:
        if reason := self.another_rule.get(request.node.name):
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))

    @property
    def sandbox_root_dir(self) -> str:
        return f"{tempfile.gettempdir()}/standard-sandbox-{os.getpid()}"

    @pytest.fixture(scope="class")
    def directory(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="standard-sandbox-") as directory:
            yield Path(directory)
        shutil.rmtree(self.sandbox_root_dir, ignore_errors=True)


@pytest.mark.slow
class TestSandboxStandard(Standard):
    @pytest.fixture(scope="class")
    def sandbox(self, directory: Path) -> SandboxBackendProtocol:
        return DirectorySandbox(directory)


class TestLocalShellStandard(Standard):
    another_rule = ANOTHER_RULE_LOCALLY

    @pytest.fixture(scope="class")
    def sandbox(self, directory: Path) -> SandboxBackendProtocol:
        return LocalShellBackend(
            directory, virtual_mode=False, max_output_bytes=1 << 20, env={"PATH": f"{BIN}:/usr/bin:/bin"}
        )

"""The generated tables agree with the source, and an old one is found."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import get_args

import pytest

from deepagents.errors import ErrorCode
from tests.architecture.source import sources
from tests.docs.pages import load_program


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    return load_program("generate")


def test_every_table_is_up_to_date(generate: ModuleType) -> None:
    assert generate.main(["--check"]) == 0


def test_an_old_table_is_found_and_written_again(
    generate: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "errors.md"
    page.write_text("Before\n<!-- generated: errors -->\n| old |\n<!-- end -->\nafter\n")

    assert generate.main(["--check", "--folder", str(tmp_path)]) == 1
    assert "errors.md is out of date" in capsys.readouterr().out

    assert generate.main(["--folder", str(tmp_path)]) == 0
    assert "`stale_version`" in page.read_text()
    assert page.read_text().startswith("Before\n")
    assert page.read_text().endswith("<!-- end -->\nafter\n")
    assert generate.main(["--check", "--folder", str(tmp_path)]) == 0


def test_every_error_code_has_a_meaning_and_a_use(generate: ModuleType) -> None:
    def unused(codes: Iterable[str]) -> list[str]:
        return [code for code in codes if code not in used]

    used = {
        node.value
        for source in sources("src/deepagents")
        if source.path != PurePosixPath("src/deepagents/errors.py")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant)
    }

    assert sorted(generate.ERROR_MEANINGS) == sorted(get_args(ErrorCode))
    assert unused(get_args(ErrorCode)) == []
    assert unused(["never_heard_of"]) == ["never_heard_of"]

"""Every module has tests where its name says they are."""

from __future__ import annotations

from pathlib import PurePosixPath

from tests.architecture.rules import expected_tests
from tests.architecture.source import ROOT, sources

TESTED_ELSEWHERE: dict[str, str] = {
    "src/deepagents/_version.py": "a constant, read by the build",
}


def test_every_module_has_a_test_file_or_a_reason() -> None:
    files = {path.name.replace("test__", "test_") for path in (ROOT / "tests").rglob("test_*.py")}
    lonely = {
        str(source.path)
        for source in sources("src")
        if source.path.stem != "__init__" and files.isdisjoint(expected_tests(source.path))
    }

    untested = sorted(lonely - TESTED_ELSEWHERE.keys())
    assert not untested, "\n".join(["", *untested])


def test_no_reason_outlives_its_module() -> None:
    assert [path for path in TESTED_ELSEWHERE if not (ROOT / path).exists()] == []


def test_a_module_is_tested_by_its_name_or_by_the_name_of_its_folder() -> None:
    assert expected_tests(PurePosixPath("src/deepagents/_flow.py")) == ["test_flow.py"]
    assert expected_tests(PurePosixPath("src/deepagents/middleware/filesystem/eviction.py")) == [
        "test_eviction.py",
        "test_filesystem.py",
    ]

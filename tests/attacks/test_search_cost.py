"""What lies in a file costs a search, a read or a failed edit only bounded work and memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.testing import ScriptedModel, call
from tests import programs
from tests.backends.sandboxes import rooted

pytestmark = pytest.mark.slow

TEXT_HEAD = b"password=hunter2 " * 1000
"""Longer than what is looked at to tell text from anything else."""
HUNDRED_GB = 100 << 30


def make_huge(path: Path) -> None:
    """Make a file of 100 GB that takes no room on disk, and whose first bytes are text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(TEXT_HEAD)
        file.truncate(HUNDRED_GB)


COST_OF_A_SEARCH = """
import resource, sys
from pathlib import Path
from tests.backends.sandboxes import rooted
from deepagents.backends import FilesystemBackend
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for make in (FilesystemBackend, rooted):
    found = make(Path(sys.argv[1])).grep("needle")
    assert [match["path"] for match in found.matches] == ["/small.txt"]
    assert "/huge.log: may match" in found.error, found.error
after = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print((after - before) >> 10)
"""


def test_a_search_on_disk_or_in_a_sandbox_holds_no_large_file_in_memory_and_names_it(tmp_path: Path) -> None:
    make_huge(tmp_path / "huge.log")
    (tmp_path / "small.txt").write_text("needle\n")

    done = programs.run(COST_OF_A_SEARCH, str(tmp_path))

    assert done.stderr == ""
    assert int(done.stdout) < 200


@pytest.mark.parametrize("guess", ["password=hunter2", "password=hunter3"])
def test_a_denied_file_tells_no_guess_by_time_or_truncation(guess: str, tmp_path: Path) -> None:
    make_huge(tmp_path / "secrets" / "huge.log")
    (tmp_path / "zebra.txt").write_text(f"{guess}\n")
    deny = FilesystemPermission(operations=["read"], paths=["/secrets/**"], mode="deny")
    searches = [
        call("grep", pattern=guess, output_mode="content"),
        call("grep", pattern=guess, path="/secrets", output_mode="content"),
    ]
    with ScriptedModel(*searches, "Done.") as model:
        agent = create_deep_agent(model, backend=FilesystemBackend(tmp_path), permissions=[deny])
        began = time.process_time()
        messages = agent.invoke({"messages": "Search."})["messages"]

    found, below = [each.text for each in messages if each.type == "tool"]
    assert found == f"/zebra.txt:\n  1: {guess}"
    assert guess not in below
    assert time.process_time() - began < 10


SEARCH_WITH_LITTLE_MEMORY = """
import resource, sys
from deepagents.backends import FilesystemBackend
backend = FilesystemBackend(sys.argv[1])
backend.grep("x", regex=True)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (120 << 20), resource.RLIM_INFINITY))
print(backend.grep("(?:a|ab|abc|abcd)*$", regex=True).code)
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs Linux to say how much memory is in use"
)
def test_an_expression_that_needs_too_much_memory_is_an_error_result(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("abcd" * 2_250_000 + "\n")

    program = [sys.executable, "-c", SEARCH_WITH_LITTLE_MEMORY, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("too_large\n", "")


@pytest.mark.parametrize("make_backend", [FilesystemBackend, rooted])
def test_a_page_beyond_gigabytes_of_one_line_is_given_up(
    make_backend: Callable[[Path], BackendProtocol], tmp_path: Path
) -> None:
    make_huge(tmp_path / "huge.log")

    page = make_backend(tmp_path).read("/huge.log", 1, 1)

    assert page.code == "too_large"
    assert "grep" in str(page.error)


MARKS = "\u0316\u0301"
OF_TWO_MEGABYTES = {
    "combining marks": "a" + MARKS * 1_000_000,
    "half-width sound marks": "a" + "\uff9e\u0316" * 1_000_000,
    "marks parted by invisible characters": "a" + "\u0316\u200b\u0301" * 700_000,
    "marks in many lines": ("a" + MARKS * 9_999 + "\n") * 100,
    "ligatures that stand for many letters": "\ufdfa" * 1_000_000,
    "one long line": "x" * 2_000_000,
    "blanks": " \t" * 1_000_000,
    "blank lines": "\n" * 2_000_000,
    "one word again and again": "value = 1\n" * 200_000,
    "words": "the quick brown fox " * 100_000,
    "nearly what is looked for": "zebra_crossinf(one, two)\n" * 80_000,
}


@pytest.mark.parametrize("old", ["zebra_crossing(one, two)", f"a{MARKS * 500_000}b", "value = 2\n" * 1000])
def test_a_failed_edit_of_two_megabytes_is_explained_in_bounded_time(old: str, tmp_path: Path) -> None:
    for kind, content in OF_TWO_MEGABYTES.items():
        (tmp_path / "a.txt").write_text(content)
        began = time.process_time()

        result = FilesystemBackend(tmp_path).edit("/a.txt", old, "new")

        assert result.code == "no_match", kind
        assert len(str(result.error)) < 20_000, kind
        assert time.process_time() - began < 10, kind

"""What a disk can do to a run: it answers with errors in bounded time, and no file is torn."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.testing import Asked, ScriptedModel
from deepagents.testing.scripted import ScriptedAnswer, calls
from tests import programs
from tests.conftest import CallMode
from tests.tools.bench import code_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="these are faults of POSIX systems")

BOUNDED = 30.0
KILOBYTE = "x" * 1023 + "\n"

RUN = """
import asyncio, json, os, resource, signal, sys
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.testing import ScriptedModel
from deepagents.testing.scripted import calls

script, roots = json.loads(sys.argv[1]), sys.argv[2:]

def run(call_mode, root, script):
    model = ScriptedModel(*(calls((tool, arguments)) for tool, arguments in script), "Done.")
    agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=root))
    given = {"messages": "Go"}
    result = agent.invoke(given) if call_mode == "sync" else asyncio.run(agent.ainvoke(given))
    assert result["messages"][-1].text == "Done."
    told = [each for each in result["messages"] if each.type == "tool"]
    return [(each.text, each.additional_kwargs.get("error_code")) for each in told]

SETTING
print(json.dumps([run(call_mode, root, script) for call_mode, root in zip(("sync", "async"), roots)]))
"""
FULL = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
"""
NOBODY = """
import tempfile
with tempfile.TemporaryDirectory() as warm:
    run("sync", warm, [["write_file", {"file_path": "/a", "content": "a"}], *script])
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""

CHURN_A_FILE = """
import os, sys
path = sys.argv[1]
print("ready", flush=True)
letter = 0
while True:
    letter = (letter + 1) % 2
    with open(path + ".next", "w") as file:
        file.write(("ab"[letter] * 99 + "\\n") * 5000)
    os.replace(path + ".next", path)
    if letter:
        os.unlink(path)
"""
CHURN_A_TREE = """
import contextlib, pathlib, shutil, sys
root = pathlib.Path(sys.argv[1])
print("ready", flush=True)
while True:
    for number in range(10):
        with contextlib.suppress(FileNotFoundError):
            (root / f"d{number}" / "deep").mkdir(parents=True, exist_ok=True)
            (root / f"d{number}" / "deep" / "a.md").write_text("needle")
    for number in range(10):
        shutil.rmtree(root / f"d{number}", ignore_errors=True)
"""


def run_in_child(
    setting: str, blocking: Path, awaiting: Path, *script: Any
) -> list[list[tuple[str, str | None]]]:
    """Run one agent blocking and one awaiting, in a process whose setting would trouble this one."""
    program = RUN.replace("SETTING", setting)
    ended = programs.run(program, json.dumps(script), str(blocking), str(awaiting))
    assert ended.returncode == 0, ended.stderr
    return [[(text, code) for text, code in told] for told in json.loads(ended.stdout.splitlines()[-1])]


@contextmanager
def process(program: str, path: Path) -> Generator[None]:
    """Run a program beside the test, for as long as it takes."""
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            yield
            assert other.poll() is None, "it was to go on all the time"
        finally:
            other.kill()


def run(call_mode: CallMode, root: Path, *script: Any, **options: Any) -> list[ToolMessage]:
    with ScriptedModel(*script, profile={"max_input_tokens": 10**9}, **options) as model:
        agent = create_deep_agent(model, backend=FilesystemBackend(root_dir=root))
        began = time.monotonic()
        result = call_mode.invoke(agent, {"messages": "Go"})
    assert time.monotonic() - began < BOUNDED
    assert result["messages"][-1].text == "Done."
    return [message for message in result["messages"] if message.type == "tool"]


def test_a_full_disk_fails_the_write_and_keeps_the_file(tmp_path: Path) -> None:
    roots = [tmp_path / each for each in ("blocking", "awaiting")]
    for root in roots:
        root.mkdir()
        (root / "a.md").write_text("before")
    both = run_in_child(
        FULL,
        *roots,
        ("write_file", {"file_path": "/a.md", "content": KILOBYTE * 30}),
        ("edit_file", {"file_path": "/a.md", "old_string": "before", "new_string": KILOBYTE * 30}),
        ("write_file", {"file_path": "/b.md", "content": KILOBYTE * 30}),
        ("write_file", {"file_path": "/c.md", "content": "small"}),
        ("read_file", {"file_path": "/a.md"}),
    )

    for root, told in zip(roots, both, strict=True):
        assert [code for _, code in told] == ["io_error", "io_error", "io_error", None, None]
        assert "File too large" in told[0][0]
        assert not any(str(tmp_path) in text for text, _ in told)
        assert "before" in told[4][0]
        assert {each.name: each.read_text() for each in root.iterdir()} == {"a.md": "before", "c.md": "small"}


def lock_up(root: Path) -> None:
    """Make files and a directory that only their owner may read, in one that nobody else may change."""
    (root / "locked").mkdir(parents=True)
    (root / "locked" / "in.md").write_text("needle")
    (root / "mine.md").write_text("needle")
    (root / "mine.md").chmod(0o000)
    (root / "seen.md").write_text("needle")
    (root / "locked").chmod(0o000)
    root.chmod(0o555)


@pytest.fixture
def public_path() -> Iterator[Path]:
    """A directory that other users may pass through; each pytest that starts closes the one of all tests."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


def test_what_the_system_forbids_is_said_and_left_alone(public_path: Path) -> None:
    roots = [public_path / each for each in ("blocking", "awaiting")]
    for root in roots:
        lock_up(root)
    both = run_in_child(
        NOBODY,
        *roots,
        ("read_file", {"file_path": "/mine.md"}),
        ("read_file", {"file_path": "/locked/in.md"}),
        ("write_file", {"file_path": "/new.md", "content": "x"}),
        ("write_file", {"file_path": "/mine.md", "content": "x"}),
        ("edit_file", {"file_path": "/mine.md", "old_string": "needle", "new_string": "x"}),
        ("delete", {"file_path": "/mine.md"}),
        ("ls", {"path": "/locked"}),
        ("grep", {"pattern": "needle"}),
        ("glob", {"pattern": "*.md"}),
    )
    for root, told in zip(roots, both, strict=True):
        for each in (root, root / "locked", root / "mine.md"):
            each.chmod(0o755)
        assert [code for _, code in told] == [*["permission_denied"] * 7, None, None]
        assert "(incomplete: " in told[7][0]
        assert not any(str(public_path) in text for text, _ in told)
        assert "/seen.md" in told[7][0]
        assert "/seen.md" in told[8][0]
        assert sorted(each.name for each in root.iterdir()) == ["locked", "mine.md", "seen.md"]
        assert (root / "mine.md").read_text() == "needle"


def test_a_file_that_comes_and_goes_is_read_whole_or_not_at_all(call_mode: CallMode, tmp_path: Path) -> None:
    reads = [("read_file", {"file_path": "/a.md", "limit": 5000})] * 5

    def read_until_it_was_there(asked: Asked) -> ScriptedAnswer:
        return "Done." if len(there(asked.messages)) >= 10 else calls(*reads)

    with process(CHURN_A_FILE, tmp_path / "a.md"):
        told = run(call_mode, tmp_path, always=read_until_it_was_there)

    assert {code_of(each) for each in told} <= {None, "file_not_found"}
    assert all(("\taa" in text) != ("\tbb" in text) for text in there(told))


def there(messages: Iterable[BaseMessage]) -> list[str]:
    """Return what was read of a file where it was there."""
    return [each.text for each in messages if isinstance(each, ToolMessage) and each.status == "success"]


def test_directories_that_come_and_go_do_not_stop_a_search(call_mode: CallMode, tmp_path: Path) -> None:
    stays = tmp_path / "zz.md"
    stays.write_text("needle")
    searches = [
        ("glob", {"pattern": "**/*.md"}),
        ("grep", {"pattern": "needle"}),
        ("ls", {"path": "/"}),
        ("ls", {"path": "/d5/deep"}),
        ("delete", {"file_path": "/d5"}),
    ]
    with process(CHURN_A_TREE, tmp_path):
        told = run(call_mode, tmp_path, *(calls(*searches) for _ in range(8)), "Done.")

    for each in told[0::5] + told[1::5] + told[2::5]:
        assert "/zz.md" in each.text
    assert {code_of(each) for each in told} <= {None, "file_not_found", "io_error"}
    assert not any(str(tmp_path) in each.text for each in told)
    assert stays.read_text() == "needle"

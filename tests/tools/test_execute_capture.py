"""A sandbox keeps long output where it was made: nothing of it is carried out but a preview."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deepagents import FilesystemMiddleware, create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend
from deepagents.testing import ScriptedModel, call
from tests.backends.sandboxes import DirectorySandbox
from tests.conftest import CallMode

MANY = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 3"
WHOLE = "".join(f"line {number}\n" for number in range(3000))


class Keeping(DirectorySandbox):
    """A sandbox that may keep output in files, below a directory of its own."""

    enable_capture_offload = True
    artifacts_root = "/kept"


@pytest.fixture
def sandbox(tmp_path: Path) -> Keeping:
    """A sandbox whose paths start at a temporary directory."""
    return Keeping(tmp_path, virtual_root=str(tmp_path))


def ran(backend: Any, call_mode: CallMode, *script: Any, limit: int | None = 1000) -> list[Any]:
    files = FilesystemMiddleware(backend=backend, tool_token_limit_before_evict=limit)
    with ScriptedModel(*script, "Done.") as model:
        agent = create_deep_agent(model, backend=backend, middleware=[files])
        result = call_mode.invoke(agent, {"messages": "Go"})
    return [message for message in result["messages"] if message.type == "tool"]


def test_long_output_stays_in_the_sandbox_and_can_be_read_on(sandbox: Keeping, call_mode: CallMode) -> None:
    def read_on(asked: Any) -> Any:
        return call("read_file", file_path=asked.messages[-1].artifact["output_file"], offset=1500, limit=1)

    done, page = ran(sandbox, call_mode, call("execute", command=MANY), read_on)
    path = done.artifact["output_file"]

    assert done.text.startswith(f"Tool result too large, so all of it was saved to the file {path}\n")
    assert all(f"line {number}\n" in done.text for number in range(10))
    assert "line 2999" in done.text
    assert done.text.endswith("[Command failed with exit code 3]")
    assert path.startswith("/kept/large_tool_results/call_")
    assert (sandbox.directory / path.lstrip("/")).read_text() == WHOLE
    assert "line 1500" in page.text


BYTES = "import os; os.write(1, (bytes(range(128, 256)) + bytes([10])) * 1000)"


def test_output_that_is_no_text_is_not_said_to_be_read_in_parts(
    sandbox: Keeping, call_mode: CallMode
) -> None:
    done = ran(sandbox, call_mode, call("execute", command=f"python3 -c '{BYTES}'"))[0]

    assert "output_file" in done.artifact
    assert "not text, so read_file cannot show it in parts" in done.text
    assert "Read it in parts" not in done.text


def test_short_output_comes_as_it_is_and_leaves_no_file(sandbox: Keeping, call_mode: CallMode) -> None:
    done = ran(sandbox, call_mode, call("execute", command="printf hello"))[0]

    assert done.text == "hello\n[Command succeeded with exit code 0]"
    assert "output_file" not in done.artifact
    assert [path for path in sandbox.directory.rglob("*") if path.is_file()] == []


def test_it_is_kept_by_a_default_backend_behind_routes(
    sandbox: Keeping, call_mode: CallMode, tmp_path: Path
) -> None:
    backend = CompositeBackend(
        default=sandbox, routes={"/memories/": FilesystemBackend(root_dir=tmp_path / "m")}
    )
    done = ran(backend, call_mode, call("execute", command=MANY))[0]

    assert (sandbox.directory / done.artifact["output_file"].lstrip("/")).read_text() == WHOLE


def test_where_another_backend_has_the_folder_output_is_moved_there(
    sandbox: Keeping, call_mode: CallMode, tmp_path: Path
) -> None:
    kept = tmp_path / "elsewhere"
    backend = CompositeBackend(
        default=sandbox, routes={"/kept/large_tool_results/": FilesystemBackend(root_dir=kept)}
    )
    done = ran(backend, call_mode, call("execute", command=MANY))[0]

    assert "Tool result too large" in done.text
    assert done.artifact["output_file"].startswith("/kept/large_tool_results/")
    assert [file.read_text().startswith(WHOLE) for file in kept.iterdir()] == [True]


@pytest.mark.parametrize("off", ["limit", "sandbox"])
def test_it_can_be_turned_off(sandbox: Keeping, call_mode: CallMode, off: str) -> None:
    sandbox.enable_capture_offload = off != "sandbox"
    done = ran(sandbox, call_mode, call("execute", command=MANY), limit=None if off == "limit" else 1000)[0]

    assert ("output_file" in done.artifact) is (off == "sandbox")
    assert done.text.startswith(WHOLE) is (off == "limit")

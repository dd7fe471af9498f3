"""An agent works on storage backends and sandboxes of other packages, blocking and awaiting."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from blob_service import Service, blob_service
from deepagents_okf_backend import OKFBackend
from langchain_azure_storage.deepagents import AzureBlobBackend
from langchain_core.messages import ToolMessage
from langchain_runloop import RunloopSandbox

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from deepagents.testing import ScriptedModel, call

TIDES = "---\ntype: note\n---\nlow tide\nhigh tide\n"
AWAITED = [False, True]


def work(backend: Any, awaited: bool, *steps: Any) -> tuple[list[ToolMessage], list[str]]:
    """Run an agent through a script of calls; return the results, and the tools that were offered."""
    with ScriptedModel(*steps, "Done.") as model:
        agent = create_deep_agent(model, backend=backend)
        question = {"messages": "Go"}
        result = asyncio.run(agent.ainvoke(question)) if awaited else agent.invoke(question)
    return [each for each in result["messages"] if each.type == "tool"], model.asked[0].tool_names


def story(home: str) -> list[Any]:
    """Write, read, edit, list, find, search and write again below a directory."""
    tides = f"{home}sea/tides.md"
    return [
        call("write_file", file_path=tides, content=TIDES),
        call("read_file", file_path=tides),
        call("edit_file", file_path=tides, old_string="low tide", new_string="spring tide"),
        call("edit_file", file_path=tides, old_string="neap tide", new_string="x"),
        call("ls", path=f"{home}sea"),
        call("ls", path=home),
        call("glob", pattern="**/*.md", path=home),
        call("grep", pattern="tide", path=home, output_mode="content"),
        call("read_file", file_path=f"{home}sea/none.md"),
        call("write_file", file_path=tides, content=TIDES.replace("low", "ebb")),
        call("grep", pattern="ebb", path=home),
    ]


def check(results: list[ToolMessage], home: str) -> None:
    """Compare what a model reads after each step of the story."""
    tides = f"{home}sea/tides.md"
    wrote, read, edited, missed, sea, root, found, searched, absent, rewrote, again = results
    assert [each.status for each in results] == [
        "error" if each in (missed, absent) else "success" for each in results
    ]
    assert wrote.text.removesuffix(f", in the new folder {home}sea").endswith(f"file {tides}")
    assert rewrote.text.endswith(f"file {tides}")
    assert "low tide" in read.text
    assert edited.text == f"Successfully replaced 1 instance(s) of the string in '{tides}'"
    assert "none.md" in absent.text
    assert sea.text.startswith(f"{tides}  ")
    assert f"{home}sea/" in root.text.split("\n")
    assert found.text == tides
    assert searched.text.startswith(f"{tides}:\n")
    assert "spring tide" in searched.text
    assert again.text == tides


@pytest.fixture
def service() -> Iterator[Service]:
    with blob_service() as running:
        yield running


@pytest.mark.parametrize("awaited", AWAITED)
@pytest.mark.parametrize("home", ["/", "/books/"])
def test_files_of_a_knowledge_bundle(awaited: bool, home: str, tmp_path: Path) -> None:
    bundle = OKFBackend(tmp_path)
    tree = bundle if home == "/" else CompositeBackend(default=StateBackend(), routes={home: bundle})
    invalid = call("write_file", file_path=f"{home}plain.md", content="no front matter")
    results, offered = work(tree, awaited, *story(home), invalid)

    check(results[:-1], home)
    assert results[-1].status == "error"
    assert "OKF validation failed" in results[-1].text
    assert "ebb tide" in (tmp_path / "sea" / "tides.md").read_text()
    assert ("delete" in offered) == (home != "/")


def test_blobs_of_azure(service: Service) -> None:
    with AzureBlobBackend.from_connection_string(service.connection_string, "files", prefix="agent") as blobs:
        delete = call("delete", file_path="/sea")
        results, offered = work(blobs, False, *story("/"), delete, call("ls", path="/"))

    check(results[:-2], "/")
    assert "delete" in offered
    assert results[-2].text == "Deleted /sea"
    assert service.blobs == {}


async def test_blobs_of_azure_awaited_on_a_route(service: Service) -> None:
    async with AzureBlobBackend.from_connection_string(service.connection_string, "files") as blobs:
        tree = CompositeBackend(default=StateBackend(), routes={"/blobs/": blobs})
        with ScriptedModel(*story("/blobs/"), "Done.") as model:
            result = await create_deep_agent(model, backend=tree).ainvoke({"messages": "Go"})

    check([each for each in result["messages"] if each.type == "tool"], "/blobs/")
    assert list(service.blobs) == ["sea/tides.md"]


class Box:
    """What a Runloop devbox offers, on this machine."""

    id = "box"

    def __init__(self) -> None:
        self.cmd = SimpleNamespace(exec=self.run)
        self.file = SimpleNamespace(download=self.read, upload=self.write)

    def run(self, command: str, timeout: float) -> Any:
        ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=timeout)
        return SimpleNamespace(
            stdout=lambda: ended.stdout, stderr=lambda: ended.stderr, exit_code=ended.returncode
        )

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write(self, path: str, file: bytes) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(file)


def test_a_sandbox_that_inherits_its_file_operations(tmp_path: Path) -> None:
    home = f"{tmp_path}/"
    run = call("execute", command=f"wc -l {home}sea/tides.md")
    delete = call("delete", file_path=f"{home}sea")
    results, _ = work(RunloopSandbox(devbox=Box()), True, *story(home), run, delete)

    check(results[:-2], home)
    assert results[-2].text.startswith("5 ")
    assert not (tmp_path / "sea").exists()

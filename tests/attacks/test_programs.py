"""What library and terminal start on this machine is never a program that an agent could have written."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from deepagents import create_deep_agent
from deepagents._programs import find_program
from deepagents.backends import CompositeBackend, FilesystemBackend, LocalSandbox
from deepagents.mcp import MCPServers
from deepagents.testing import ScriptedModel, call, calls
from deepagents_cli.views.chat.input.composer import Composer
from deepagents_cli.views.terminal.editor import edit_text
from tests.conftest import CallMode
from tests.mcp.servers import crooked
from tests.sandbox.users import UNAVAILABLE

needs_sandbox = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))


@pytest.fixture(name="project")
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a project whose directories come first on the search path: by name, by link, by a relative one."""
    project = tmp_path / "project"
    for each in (".venv/bin", "node_modules/.bin", "tools"):
        (project / each).mkdir(parents=True)
    (project / "notes").write_text("a needle\n")
    (tmp_path / "linked").symlink_to(project / "tools")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/rg").symlink_to(project / "tools/rg")
    monkeypatch.chdir(project)
    first = ("node_modules/.bin", project / ".venv/bin", tmp_path / "linked", tmp_path / "own")
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, first), os.environ["PATH"]]))
    return project


def plant(project: Path, name: str, owned: Path) -> None:
    for each in (".venv/bin", "node_modules/.bin", "tools"):
        program = project / each / name
        program.write_text(f"#!/bin/sh\necho {name} >> {owned}\n")
        program.chmod(0o755)


def test_a_server_is_not_the_program_that_an_agent_has_put_first(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_mode: CallMode
) -> None:
    owned = tmp_path / "owned"
    entry = crooked("echo")
    meant = tmp_path / "meant"
    meant.mkdir()
    command = shlex.join([entry["command"], *entry["args"]])
    (meant / "clock-server").write_text(f"#!/bin/sh\nexec {command}\n")
    (meant / "clock-server").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], str(meant)]))
    plant(project, "clock-server", owned)
    servers = MCPServers({"one": {"command": "clock-server"}})
    backend = FilesystemBackend(project, virtual_mode=True)
    agent = create_deep_agent(ScriptedModel("Done."), backend=backend, mcp=servers)
    call_mode.invoke(agent, {"messages": "Go"})
    status = servers.status()["one"]
    servers.close()

    assert status.status == "ready"
    assert not owned.exists()


@needs_sandbox
def test_a_search_runs_nothing_that_a_confined_command_has_written(project: Path, tmp_path: Path) -> None:
    owned = tmp_path / "owned"
    with LocalSandbox(project) as sandbox:
        script = f"#!/bin/sh\\nid >> {owned}\\n"
        for each in (".venv/bin", "node_modules/.bin", "tools"):
            planted = sandbox.execute(f"printf '{script}' > {each}/rg; chmod +x {each}/rg")
            assert planted.exit_code == 0
        found = sandbox.grep("needle")

    assert [each["text"] for each in found.matches or []] == ["a needle"]
    assert not owned.exists()


def test_a_search_runs_nothing_that_the_file_tools_have_written(
    project: Path, tmp_path: Path, call_mode: CallMode
) -> None:
    owned = tmp_path / "owned"
    plant(project, "rg", tmp_path / "nothing")
    script = f"#!/bin/sh\nid >> {owned}\n"
    paths = ("/.venv/bin/rg", "/node_modules/.bin/rg", "/tools/rg")
    written = calls(*(("write_file", {"file_path": each, "content": script}) for each in paths))
    model = ScriptedModel(written, call("grep", pattern="needle", path="/"), "Done.")
    agent = create_deep_agent(model, backend=FilesystemBackend(project))

    call_mode.invoke(agent, {"messages": "Look for the needle."})

    assert (project / "tools/rg").read_text() == script
    assert not owned.exists()


def test_a_search_in_one_directory_runs_nothing_that_was_written_by_the_route_of_another(
    project: Path, tmp_path: Path, call_mode: CallMode
) -> None:
    owned = tmp_path / "owned"
    plant(project, "rg", tmp_path / "nothing")
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories/notes").write_text("another needle\n")
    script = f"#!/bin/sh\nid >> {owned}\n"
    written = call("write_file", file_path="/.venv/bin/rg", content=script)
    routes = {"/memories/": FilesystemBackend(tmp_path / "memories")}
    backend = CompositeBackend(FilesystemBackend(project), routes)
    model = ScriptedModel(written, call("grep", pattern="needle", path="/memories"), "Done.")

    call_mode.invoke(create_deep_agent(model, backend=backend), {"messages": "Look for the needle."})

    assert (project / ".venv/bin/rg").read_text() == script
    assert not owned.exists()


def test_a_directory_that_became_a_loop_of_links_stops_no_search_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a").write_text("a needle\n")
    held = FilesystemBackend(tmp_path / "other")
    assert held.grep("needle").matches == []

    (tmp_path / "other").rmdir()
    (tmp_path / "other").symlink_to("other")
    found = FilesystemBackend(tmp_path / "notes").grep("needle")

    assert [each["text"] for each in found.matches or []] == ["a needle"]


def test_keys_of_the_terminal_start_no_program_of_the_directory(project: Path, tmp_path: Path) -> None:
    owned = tmp_path / "owned"
    for name in ("wl-paste", "xclip", "pngpaste", "vi-of-the-project"):
        plant(project, name, owned)

    pasted = Composer(project, (), {"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}).paste_picture()
    with pytest.raises(ValueError, match="no program .* outside of what the agent can change"):
        edit_text("vi-of-the-project", "text", ".txt", (project,))

    assert pasted is None
    assert not owned.exists()


def test_a_program_is_found_behind_those_that_are_passed_over(project: Path, tmp_path: Path) -> None:
    plant(project, "sh", tmp_path / "owned")

    assert find_program("sh", [project]) in ("/bin/sh", "/usr/bin/sh", "/usr/local/bin/sh")
    assert find_program("sh", [tmp_path / "elsewhere"]) == str(project / ".venv/bin/sh")
